import { createHash } from "node:crypto";
import type { DatasetConfig } from "../config/config.js";
import { ZpublishError } from "../errors.js";
import { createDataTree, dimensionConflicts, type GroupContent } from "../model/create-data-tree.js";
import type { Variable } from "../model/data-tree.js";
import type { JsonObject } from "../model/json-value.js";
import { nameDimensions } from "../model/name-dimensions.js";
import { stringifyJson } from "../model/stringify-json.js";
import type { Refusal, StoredArray, StoredTree } from "../source/source.js";
import { createEncodingPlan } from "../zarr/create-encoding-plan.js";
import type { DatasetSnapshot, ServedArray } from "./dataset.js";
import { resolveEncoding } from "./resolve-encoding.js";

/** The name under which Zarr v2 keeps dimension names, by xarray's convention. */
const DIMENSIONS_ATTRIBUTE = "_ARRAY_DIMENSIONS";

/**
 * What is served of a stored tree: settles dimension names, encoding plans and documents, once. An array that cannot be
 * served as asked goes to `refused`, by name.
 * @throws ZpublishError `invalid-config` where `variables` names an array the tree does not have.
 */
export function createSnapshot(
  config: DatasetConfig,
  tree: StoredTree,
  cacheControlDefault: string,
): DatasetSnapshot {
  const arrays = new Map<string, ServedArray>();
  const refused: Refusal[] = [...tree.refused];
  const warnings: string[] = [...tree.warnings];
  const contents: GroupContent[] = [];

  for (const group of tree.groups) {
    const dims = nameDimensions(group.arrays);
    const variables: Variable[] = [];
    group.arrays.forEach((stored, index) => {
      try {
        const served = serveArray(config, stored, dims[index] as string[]);
        arrays.set(stored.path, served);
        variables.push(served.variable);
      } catch (error) {
        if (!(error instanceof ZpublishError)) throw error;
        refused.push({ path: stored.path, reason: error.message });
      }
    });
    const content = { path: group.path, attrs: group.attrs, variables };
    warnings.push(...dimensionConflicts(content));
    contents.push(content);
  }
  refuseUnknownVariables(config, arrays, refused);

  return Object.freeze({
    id: config.id,
    location: config.location,
    revision: revisionOf(contents, arrays),
    identity: tree.identity,
    tree: createDataTree(contents),
    arrays,
    refused,
    warnings,
    cacheControl: config.cacheControl ?? cacheControlDefault,
    immutable: config.immutable,
  });
}

function serveArray(config: DatasetConfig, stored: StoredArray, dims: readonly string[]): ServedArray {
  const target = {
    path: stored.path,
    dims,
    shape: stored.shape,
    chunkShape: stored.servedChunks ?? stored.chunkShape,
  };
  const ofVariable = Object.hasOwn(config.variables, stored.path) ? config.variables[stored.path] : undefined;
  const { plan, document } = createEncodingPlan(stored, resolveEncoding(target, config.encoding, ofVariable));
  const variable: Variable = Object.freeze({
    name: stored.name,
    path: stored.path,
    dims,
    shape: stored.shape,
    chunkShape: document.chunks,
    dataType: stored.dataType,
    attrs: stored.attrs,
  });
  const zattrs: JsonObject = { ...stored.attrs, [DIMENSIONS_ATTRIBUTE]: dims };
  return Object.freeze({ variable, document, zattrs, plan, stored });
}

function refuseUnknownVariables(
  config: DatasetConfig,
  arrays: ReadonlyMap<string, ServedArray>,
  refused: readonly Refusal[],
): void {
  for (const path of Object.keys(config.variables)) {
    if (arrays.has(path) || refused.some((refusal) => refusal.path === path)) continue;
    const known = [...arrays.keys()];
    throw new ZpublishError(
      "invalid-config",
      `dataset '${config.id}': variables: expected the path of an array ` +
        `(${known.slice(0, 8).join(", ")}${known.length > 8 ? ", …" : ""}), received '${path}'`,
    );
  }
}

/** Hash of all metadata that is served and of how chunks are made: no path, no time, the same on every instance. */
function revisionOf(contents: readonly GroupContent[], arrays: ReadonlyMap<string, ServedArray>): string {
  const hash = createHash("sha256");
  for (const { path, attrs, variables } of contents) {
    hash.update(`${stringifyJson([path, attrs])}\n`);
    for (const variable of variables) {
      const { document, zattrs, plan } = arrays.get(variable.path) as ServedArray;
      hash.update(`${stringifyJson([variable.path, { ...document }, zattrs, plan.id])}\n`);
    }
  }
  return hash.digest("hex").slice(0, 24);
}
