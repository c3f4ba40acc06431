import { createHash } from "node:crypto";
import { encoderRevision } from "../codec/encoder-revision.js";
import { isSameList } from "../collections/sorted-lists.js";
import type { DatasetConfig, EncodingConfig } from "../config/config.js";
import { ZpublishError } from "../errors.js";
import { type CooperativeTask, runNow } from "../event-loop/cooperative-task.js";
import { stringifyJson } from "../json/stringify-json.js";
import {
  dataTreeSteps,
  dimensionConflicts,
  type GroupContent,
  nameDimensions,
  type Variable,
} from "../model/data-tree.js";
import { createEncodingPlan, type EncodingRequest } from "../zarr/plan/create-encoding-plan.js";
import type { StoredArray } from "../zarr/stored-array.js";
import type { Refusal, StoredTree } from "../zarr/stored-tree.js";
import type { PlanWithCodecs } from "../zarr/v3/portable.js";
import { createServedArray, type DatasetSnapshot, type ServedArray, type VersionConfig } from "./dataset.js";
import { configOfEncoding, withEncodings } from "./encodings.js";
import { type OverviewOptions, withOverviews } from "./overviews/overviews.js";

/** An array for which an encoding is asked. */
interface EncodingTarget {
  readonly path: string;
  readonly dims: readonly string[];
  readonly shape: readonly number[];
  /** Chunk lengths of dimensions that are not named. */
  readonly chunkShape: readonly number[];
}

/**
 * Resolves the encoding that is asked of one array: the variable's own over the dataset's. Converts chunks by dimension
 * name to chunks by axis.
 * @throws ZpublishError `unsupported`, naming the array, if `chunks` do not fit its dimensions.
 */
function resolveEncoding(
  target: EncodingTarget,
  ofDataset: EncodingConfig,
  ofVariable: EncodingConfig | undefined,
): EncodingRequest {
  const { chunks, ...codecs } = { ...ofDataset, ...ofVariable };
  if (chunks === undefined) return codecs;
  // A dataset's `encoding` may name dimensions that not every array has; a variable's own must fit.
  const mustFit = ofVariable?.chunks !== undefined;
  return { ...codecs, chunkShape: chunkShapeOf(target, chunks, mustFit) };
}

function chunkShapeOf(
  { path, dims, shape, chunkShape }: EncodingTarget,
  chunks: NonNullable<EncodingConfig["chunks"]>,
  mustFit: boolean,
): number[] {
  const wholeAxis = (axis: number) => Math.max(1, shape[axis]!);
  if (isList(chunks)) {
    if (chunks.length !== dims.length) {
      throw new ZpublishError(
        "unsupported",
        `array '${path}': chunks: expected a length for each of (${dims.join(", ")}), received ${chunks.length}`,
      );
    }
    return chunks.map((length, axis) => (length === -1 ? wholeAxis(axis) : length));
  }
  const unknown = Object.keys(chunks).filter((name) => !dims.includes(name));
  if (mustFit && unknown.length > 0) {
    throw new ZpublishError(
      "unsupported",
      `array '${path}': chunks: expected dimension names among ${dims.join(", ")}, received ${unknown.join(", ")}`,
    );
  }
  return dims.map((name, axis) => {
    const length = Object.hasOwn(chunks, name) ? chunks[name] : undefined;
    if (length === undefined) return chunkShape[axis]!;
    return length === -1 ? wholeAxis(axis) : length;
  });
}

function isList(chunks: NonNullable<EncodingConfig["chunks"]>): chunks is readonly number[] {
  return Array.isArray(chunks);
}

/** Options of {@link createSnapshot}. */
interface SnapshotOptions extends OverviewOptions, VersionConfig {
  /** The snapshot before; undefined when the dataset is opened. */
  readonly before?: DatasetSnapshot;
}

/**
 * Makes a snapshot of a stored tree: dimension names, encoding plans and documents. An array that cannot be served as asked
 * goes to `refused`.
 * @throws ZpublishError `invalid-config` if `variables` names an array that the tree does not have. With `before`, it
 * was removed from the tree, which is only a warning.
 */
export function createSnapshot(
  config: DatasetConfig,
  tree: StoredTree,
  cacheControlDefault: string,
  options: SnapshotOptions = {},
): DatasetSnapshot {
  return runNow(snapshotSteps(config, tree, cacheControlDefault, options));
}

/** {@link createSnapshot} in steps. */
export function* snapshotSteps(
  config: DatasetConfig,
  tree: StoredTree,
  cacheControlDefault: string,
  { before, ...options }: SnapshotOptions = {},
): CooperativeTask<DatasetSnapshot> {
  const { maxChunkBytes, version, versions } = options;
  // A version may be older than what the configuration names.
  const isNew = before === undefined && version === undefined;
  const encode = (of: DatasetConfig, place: string, last: DatasetSnapshot | undefined) =>
    plainSteps(of, { place, ofDataset: config, isNew }, tree, cacheControlDefault, last, maxChunkBytes);
  const plain = {
    ...(yield* encode(config, "encoding", before)),
    ...offeredFile(config, tree, before),
    ...{ version, versions },
  };
  const encodings = new Map<string, DatasetSnapshot>();
  for (const name of Object.keys(config.encodings ?? {}))
    encodings.set(
      name,
      yield* encode(configOfEncoding(config, name), `encodings.${name}`, before?.encodings?.get(name)),
    );
  const encoded = yield* withEncodings(plain, encodings, options, () => snapshot);
  const { portable } = config.zarr3 ?? {};
  const snapshot = withOverviews(encoded, config.overviews, { ...options, portable });
  return snapshot;
}

/**
 * Returns the file of a dataset that is to be offered.
 * @throws ZpublishError `invalid-config` if the dataset is opened and is no single file
 */
function offeredFile(
  config: DatasetConfig,
  { file, format, join }: StoredTree,
  before: DatasetSnapshot | undefined,
): Pick<DatasetSnapshot, "file"> {
  if (config.file !== true) return {};
  if (file !== undefined) return { file: Object.freeze({ ...file, contentType: fileType(format) }) };
  // It is damaged now: a read of the file before says so.
  if (before?.file !== undefined) return { file: before.file };
  const received = join === undefined ? "a store of many objects" : "several files";
  throw new ZpublishError(
    "invalid-config",
    `file: expected a dataset that is one file, received ${received}`,
  );
}

/** Returns the media type of a file. @param format As in `StoredTree`; undefined for a Zarr store in an archive. */
function fileType(format: string | undefined): string {
  if (format === undefined) return "application/zip";
  if (format.startsWith("NetCDF")) return "application/x-netcdf";
  if (format === "HDF5") return "application/x-hdf5";
  return format.startsWith("GeoTIFF") ? "image/tiff; application=geotiff" : "image/tiff";
}

/** Where the configuration of an encoding is from. */
interface EncodingPlace {
  /** Key of the encoding in the configuration. */
  readonly place: string;
  /** Configuration of the dataset: coordinates of dimensions are encoded as it says, because clients read them whole. */
  readonly ofDataset: DatasetConfig;
  /** Whether names in the configuration that the tree does not have are an error. */
  readonly isNew: boolean;
}

/** Makes a snapshot in one encoding, without overviews. */
function* plainSteps(
  config: DatasetConfig,
  { place, ofDataset, isNew }: EncodingPlace,
  tree: StoredTree,
  cacheControlDefault: string,
  before: DatasetSnapshot | undefined,
  maxChunkBytes: number | undefined,
): CooperativeTask<DatasetSnapshot> {
  const arrays = new Map<string, ServedArray>();
  const refused: Refusal[] = [...tree.refused];
  const warnings: string[] = [...tree.warnings];
  const contents: GroupContent[] = [];
  /** Names in all arrays, also in refused ones. */
  const dimNames = new Set<string>();

  for (const group of tree.groups) {
    const dims = yield* nameDimensions(group.arrays);
    const variables: Variable[] = [];
    for (const [index, stored] of group.arrays.entries()) {
      yield;
      const dimsOfArray = dims[index]!;
      for (const name of dimsOfArray) dimNames.add(name);
      try {
        const last = before?.arrays.get(stored.path);
        const isWhole = dimsOfArray.length === 1 && dimsOfArray[0] === stored.name;
        const served = serveArray(isWhole ? ofDataset : config, stored, dimsOfArray, last, maxChunkBytes);
        arrays.set(stored.path, served);
        variables.push(served.variable);
      } catch (error) {
        if (!(error instanceof ZpublishError)) throw error;
        refused.push({ path: stored.path, reason: error.message });
      }
    }
    contents.push({ path: group.path, attrs: group.attrs, variables });
    warnings.push(...(yield* dimensionConflicts(contents.at(-1)!)));
  }
  const problems = [
    ...unknownVariables(config, arrays, refused),
    ...unknownDimensions(config, place, dimNames),
  ];
  if (isNew && problems.length > 0) throw new ZpublishError("invalid-config", problems.join("\n"));
  warnings.push(...problems, ...replacedCodecs(arrays), ...withoutV3(arrays));

  return {
    id: config.id,
    location: config.location,
    revision: yield* revisionSteps(contents, arrays),
    identity: tree.identity,
    ...{ format: tree.format, join: tree.join, state: tree.fingerprint ?? tree.identity },
    unlimited: tree.join === undefined ? (tree.unlimited ?? []) : [tree.join.dimension],
    tree: yield* dataTreeSteps(contents),
    arrays,
    refused,
    withdrawn: withdrawnOf(refused, before),
    warnings,
    cacheControl: config.cacheControl ?? cacheControlDefault,
    immutable: config.immutable,
  };
}

function withdrawnOf(refused: readonly Refusal[], before: DatasetSnapshot | undefined): ReadonlySet<string> {
  const wasServed = (path: string) => before?.arrays.has(path) || before?.withdrawn.has(path);
  return new Set(refused.map(({ path }) => path).filter(wasServed));
}

/** @param before The array of that path in the snapshot before: its parts are used again if the array is the same. */
function serveArray(
  config: DatasetConfig,
  stored: StoredArray,
  dims: readonly string[],
  before: ServedArray | undefined,
  maxChunkBytes: number | undefined,
): ServedArray {
  // Another object all the same: caches that have the array as key are valid for its snapshot only.
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
  const options = { encoderRevision, maxChunkBytes };
  const planned = createEncodingPlan(stored, asked, options);
  const isAsked = Object.values(asked).some((value) => value !== undefined);
  const planPortable: PlanWithCodecs = (array, codecs) =>
    createEncodingPlan(array, { ...asked, ...codecs }, options);
  const { portable = false } = config.zarr3 ?? {};
  return createServedArray(stored, planned, dims, isAsked, portable ? planPortable : undefined);
}

/** Lists paths that `variables` names and the tree does not have, one line each. */
function unknownVariables(
  config: DatasetConfig,
  arrays: ReadonlyMap<string, ServedArray>,
  refused: readonly Refusal[],
): string[] {
  return Object.keys(config.variables)
    .filter((path) => !arrays.has(path) && !refused.some((refusal) => refusal.path === path))
    .map((path) => `variables: expected the path of an array (${some(arrays.keys())}), received '${path}'`);
}

/** Lists dimensions in the `chunks` of the dataset's encoding that no array has, one line each. @param place Key of the encoding. */
function unknownDimensions(
  { encoding: { chunks = [] } }: DatasetConfig,
  place: string,
  dimNames: ReadonlySet<string>,
): string[] {
  return Object.keys(Array.isArray(chunks) ? {} : chunks)
    .filter((name) => !dimNames.has(name))
    .map(
      (name) => `${place}.chunks: expected a dimension of some array (${some(dimNames)}), received '${name}'`,
    );
}

/** Lists inner codecs of Blosc that are not encoded, and so served as another, one line each. */
function replacedCodecs(arrays: ReadonlyMap<string, ServedArray>): string[] {
  const paths = new Map<string, string[]>();
  for (const [path, { replacedCname }] of arrays) {
    if (replacedCname === undefined) continue;
    const others = paths.get(replacedCname);
    if (others === undefined) paths.set(replacedCname, [path]);
    else others.push(path);
  }
  return [...paths].map(
    ([cname, of]) => `Blosc with ${cname} is decoded but not encoded: served with lz4 (${some(of)})`,
  );
}

/** Lists arrays that Zarr v3 cannot describe, one line each. */
function withoutV3(arrays: ReadonlyMap<string, ServedArray>): string[] {
  return [...arrays.values()].flatMap(({ v3Problem }) =>
    v3Problem === undefined ? [] : [`served as Zarr v2 only: ${v3Problem}`],
  );
}

/** Joins the first of some names, for a message. */
function some(names: Iterable<string>): string {
  const known = [...names];
  return `${known.slice(0, 8).join(", ")}${known.length > 8 ? ", …" : ""}`;
}

/**
 * Hashes all served metadata and all plans. No path and no time goes in: the revision is the same on every instance whose
 * encoders write the same bytes.
 */
function* revisionSteps(
  contents: readonly GroupContent[],
  arrays: ReadonlyMap<string, ServedArray>,
): CooperativeTask<string> {
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
