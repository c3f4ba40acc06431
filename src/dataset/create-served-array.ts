import { createHash } from "node:crypto";
import { ZpublishError } from "../errors.js";
import type { JsonObject, JsonValue } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import type { Variable } from "../model/data-tree.js";
import { dimensionsAttribute } from "../zarr/dimension-names.js";
import type { PlannedArray } from "../zarr/plan/create-encoding-plan.js";
import type { StoredArray } from "../zarr/stored-array.js";
import { writeV3 } from "../zarr/v3/write-v3.js";
import type { ServedArray } from "./dataset.js";

/**
 * Makes what is served of an array that is planned.
 * @param dims Dimension names.
 * @param isAsked Whether the operator asks for another encoding than the stored one.
 */
export function createServedArray(
  stored: StoredArray,
  planned: PlannedArray,
  dims: readonly string[],
  isAsked: boolean,
): ServedArray {
  const { plan, document, replacedCname } = planned;
  const variable: Variable = Object.freeze({
    name: stored.name,
    path: stored.path,
    dims,
    shape: stored.shape,
    chunkShape: document.chunks,
    dataType: stored.dataType,
    attrs: stored.attrs,
  });
  const zattrs: JsonObject = { ...stored.attrs, [dimensionsAttribute]: dims };
  const describeV3 = () => writeV3(stored, planned, dims, isAsked);
  const v3Problem = problemOf(describeV3);
  const parts: JsonValue[] = [stored.path, { ...document }, zattrs, plan.id];
  // Documents of v2 do not say all of a v3 array.
  if (stored.v3 !== undefined) parts.push({ ...stored.v3, files: null });
  const digest = digestOf(stringifyJson(parts));
  return Object.freeze({
    ...{ variable, document, zattrs, plan, replacedCname, stored, digest },
    ...{ v3Problem, describeV3 },
  });
}

/** Returns the message of what a function throws; undefined if it does not throw. */
function problemOf(check: () => unknown): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof ZpublishError) return error.message;
    throw error;
  }
}

/** Hashes a text to 128 bits. */
function digestOf(text: string): string {
  return createHash("sha256").update(text).digest().toString("base64url", 0, 16);
}
