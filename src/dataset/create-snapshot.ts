import { createHash } from "node:crypto";
import { encoderRevision } from "../codec/encoder-revision.js";
import type { DatasetConfig } from "../config/config.js";
import { ZpublishError } from "../errors.js";
import { dataTreeSteps, dimensionConflictSteps, type GroupContent } from "../model/create-data-tree.js";
import type { Variable } from "../model/data-tree.js";
import type { JsonObject } from "../model/json-value.js";
import { nameDimensionsSteps } from "../model/name-dimensions.js";
import { stringifyJson } from "../model/stringify-json.js";
import { runNow, type Steps } from "../sliced-work.js";
import type { Refusal, StoredArray, StoredTree } from "../source/source.js";
import { createEncodingPlan } from "../zarr/create-encoding-plan.js";
import type { DatasetSnapshot, ServedArray } from "./dataset.js";
import { resolveEncoding } from "./resolve-encoding.js";

/** The name under which Zarr v2 keeps dimension names, by xarray's convention. */
const DIMENSIONS_ATTRIBUTE = "_ARRAY_DIMENSIONS";

export interface SnapshotOptions {
  /** What was served until now; undefined when the dataset is opened. */
  readonly before?: DatasetSnapshot;
  /** What a chunk that is not served as stored may decode to. Default 1 GiB. */
  readonly maxChunkBytes?: number | undefined;
}

/**
 * What is served of a stored tree: settles dimension names, encoding plans and documents, once. An array that cannot be
 * served as asked goes to `refused`, by name.
 * @throws ZpublishError `invalid-config` where `variables` names an array the tree does not have; with
 * `before` it went away, which is a warning and keeps nothing else from being served.
 */
export function createSnapshot(
  config: DatasetConfig,
  tree: StoredTree,
  cacheControlDefault: string,
  options: SnapshotOptions = {},
): DatasetSnapshot {
  return runNow(snapshotSteps(config, tree, cacheControlDefault, options));
}

/** {@link createSnapshot} as work that can be interrupted. */
export function* snapshotSteps(
  config: DatasetConfig,
  tree: StoredTree,
  cacheControlDefault: string,
  { before, maxChunkBytes }: SnapshotOptions = {},
): Steps<DatasetSnapshot> {
  const arrays = new Map<string, ServedArray>();
  const refused: Refusal[] = [...tree.refused];
  const warnings: string[] = [...tree.warnings];
  const contents: GroupContent[] = [];
  /** Of all arrays, refused ones too. */
  const dimNames = new Set<string>();

  for (const group of tree.groups) {
    const dims = yield* nameDimensionsSteps(group.arrays);
    const variables: Variable[] = [];
    for (const [index, stored] of group.arrays.entries()) {
      yield;
      const dimsOfArray = dims[index] as string[];
      for (const name of dimsOfArray) dimNames.add(name);
      try {
        const served = serveArray(
          config,
          stored,
          dimsOfArray,
          before?.arrays.get(stored.path),
          maxChunkBytes,
        );
        arrays.set(stored.path, served);
        variables.push(served.variable);
      } catch (error) {
        if (!(error instanceof ZpublishError)) throw error;
        refused.push({ path: stored.path, reason: error.message });
      }
    }
    const content = { path: group.path, attrs: group.attrs, variables };
    warnings.push(...(yield* dimensionConflictSteps(content)));
    contents.push(content);
  }
  for (const problem of [
    ...unknownVariables(config, arrays, refused),
    ...unknownDimensions(config, dimNames),
  ]) {
    if (before === undefined) throw new ZpublishError("invalid-config", problem);
    warnings.push(problem);
  }

  return Object.freeze({
    id: config.id,
    location: config.location,
    revision: yield* revisionSteps(contents, arrays),
    identity: tree.identity,
    tree: yield* dataTreeSteps(contents),
    arrays,
    refused,
    withdrawn: withdrawnOf(refused, before),
    warnings,
    cacheControl: config.cacheControl ?? cacheControlDefault,
    immutable: config.immutable,
  });
}

function withdrawnOf(refused: readonly Refusal[], before: DatasetSnapshot | undefined): ReadonlySet<string> {
  const wasServed = (path: string) => before?.arrays.has(path) || before?.withdrawn.has(path);
  return new Set(refused.map(({ path }) => path).filter(wasServed));
}

/** @param before What was served of the path until now: need not be made again where the array is the same. */
function serveArray(
  config: DatasetConfig,
  stored: StoredArray,
  dims: readonly string[],
  before: ServedArray | undefined,
  maxChunkBytes: number | undefined,
): ServedArray {
  // Another object all the same: what is kept of an array elsewhere holds for its snapshot only.
  if (before?.stored === stored && isSameList(before.variable.dims, dims))
    return Object.freeze({ ...before });
  const target = {
    path: stored.path,
    dims,
    shape: stored.shape,
    chunkShape: stored.servedChunks ?? stored.chunkShape,
  };
  const ofVariable = Object.hasOwn(config.variables, stored.path) ? config.variables[stored.path] : undefined;
  const asked = resolveEncoding(target, config.encoding, ofVariable);
  const { plan, document } = createEncodingPlan(stored, asked, { encoderRevision, maxChunkBytes });
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
  const digest = digestOf(stringifyJson([stored.path, { ...document }, zattrs, plan.id]));
  return Object.freeze({ variable, document, zattrs, plan, stored, digest });
}

function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index]);
}

/** One line for every path that `variables` names and the tree does not have. */
function unknownVariables(
  config: DatasetConfig,
  arrays: ReadonlyMap<string, ServedArray>,
  refused: readonly Refusal[],
): string[] {
  return Object.keys(config.variables)
    .filter((path) => !arrays.has(path) && !refused.some((refusal) => refusal.path === path))
    .map((path) => `variables: expected the path of an array (${some(arrays.keys())}), received '${path}'`);
}

/** One line for every dimension in the `chunks` of the dataset's `encoding` that no array has. */
function unknownDimensions(config: DatasetConfig, dimNames: ReadonlySet<string>): string[] {
  const { chunks = [] } = config.encoding;
  return Object.keys(Array.isArray(chunks) ? {} : chunks)
    .filter((name) => !dimNames.has(name))
    .map(
      (name) => `encoding.chunks: expected a dimension of some array (${some(dimNames)}), received '${name}'`,
    );
}

/** The first of some names, for a message. */
function some(names: Iterable<string>): string {
  const known = [...names];
  return `${known.slice(0, 8).join(", ")}${known.length > 8 ? ", …" : ""}`;
}

/** Hash of all metadata that is served and of how chunks are made: no path, no time, the same on every instance whose encoders write the same. */
function* revisionSteps(
  contents: readonly GroupContent[],
  arrays: ReadonlyMap<string, ServedArray>,
): Steps<string> {
  const hash = createHash("sha256");
  for (const { path, attrs, variables } of contents) {
    hash.update(`${stringifyJson([path, attrs])}\n`);
    for (const variable of variables) {
      yield;
      hash.update((arrays.get(variable.path) as ServedArray).digest);
    }
  }
  return hash.digest("hex").slice(0, 24);
}

/** 128 bits of a hash. */
function digestOf(text: string): string {
  return createHash("sha256").update(text).digest().toString("base64url", 0, 16);
}
