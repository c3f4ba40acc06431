import { basename } from "node:path";
import type { CollectionConfig, Config, DatasetConfig } from "../config/config.js";
import { DEFAULT_OVERVIEWS } from "../config/dataset-schema.js";
import { resolveArguments } from "../config/resolve-config.js";
import { formatByteSize } from "../config/value-schemas.js";
import { createCollectionProvider } from "../dataset/collection/collection-provider.js";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import type { DatasetProvider } from "../dataset/dataset-provider.js";
import { describeLevels } from "../dataset/overviews/overviews.js";
import { createSnapshot } from "../dataset/snapshot.js";
import { openJoin } from "../join/open-join.js";
import type { JsonObject, JsonValue } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import { elementCount } from "../model/data-tree.js";
import { openSource } from "../open/open-source.js";
import { separateFolders } from "../server/open-app.js";
import { allStoreStats } from "../stores/http-store.js";
import { type ChunkPiece, type PartChunks, PIECED } from "../zarr/chunk-reader.js";
import type { CodecSpec } from "../zarr/codec-step.js";
import type { StoredArray } from "../zarr/stored-array.js";
import type { Refusal, StoredJoin, StoredTree } from "../zarr/stored-tree.js";
import { createOpenReporter } from "./progress.js";

/** Chunks of an array of a joined dataset. */
interface InspectedPieces {
  /** Chunks that are served as a file has them. */
  readonly passed: number;
  /** Chunks that are put together from chunks of files. */
  readonly joined: number;
  /** Why chunks are put together, from the first of them. Empty if none is. */
  readonly reasons: readonly string[];
}

/** Chunks put together of which the reason is found: it opens their files. */
const MAX_SAMPLES = 4;

/**
 * Counts the chunks of the arrays of a joined dataset, by path. Arrays that are no parts of files one behind the other are left out.
 * @throws ZpublishError `source-unreadable`, naming the file
 */
export async function inspectPieces({ groups }: StoredTree): Promise<ReadonlyMap<string, InspectedPieces>> {
  const found = new Map<string, InspectedPieces>();
  for (const array of groups.flatMap(({ arrays }) => arrays)) {
    // Those of one part have no such axis.
    if (array.chunks.kind === "parts" && array.chunks.axis >= 0)
      found.set(array.path, await piecesOfArray(array, array.chunks));
  }
  return found;
}

async function piecesOfArray(array: StoredArray, { axis, openReader }: PartChunks): Promise<InspectedPieces> {
  const { parts } = openReader();
  const gridShape = array.shape.map((length, index) => Math.ceil(length / array.chunkShape[index]!));
  const length = gridShape[axis]!;
  // A chunk is passed through or not with all others of the same steps.
  const coordsOf = (index: number) => gridShape.map((_, each) => (each === axis ? index : 0));
  const joined: number[] = [];
  for (let index = 0; index < length; index++) {
    if (parts.variantOf(coordsOf(index)) === PIECED) joined.push(index);
  }
  const across = elementCount(gridShape.filter((_, each) => each !== axis));
  const samples = await Promise.all(
    joined.slice(0, MAX_SAMPLES).map((index) => parts.piecesOf(coordsOf(index))),
  );
  return {
    passed: (length - joined.length) * across,
    joined: joined.length * across,
    reasons: reasonsOf(array, axis, samples.flat(), joined.length < length),
  };
}

/** @param isPassed Whether other chunks of the array are passed through: then these have its chunk length and codecs. */
function reasonsOf(
  array: StoredArray,
  axis: number,
  pieces: readonly ChunkPiece[],
  isPassed: boolean,
): string[] {
  if (pieces.length === 0) return [];
  const own = isPassed ? [array] : [];
  const layouts = pieces.map(({ layout }) => layout);
  const reasons: string[] = [];
  const differ = (what: string, texts: readonly string[]): void => {
    const distinct = [...new Set(texts)];
    if (distinct.length > 1) reasons.push(`${what} differ: ${listOf(distinct)}`);
  };
  const shapes = [...own, ...layouts].map(({ chunkShape }) => chunkShape);
  const across = shapes.map((shape) => shape.filter((_, each) => each !== axis).join());
  if (new Set(across).size > 1) differ("chunk shapes", shapes.map(formatShape));
  else
    differ(
      "chunk lengths",
      shapes.map((shape) => String(shape[axis])),
    );
  const codecs = layouts.map(({ decode }) => decode.map(({ codec }) => formatCodec(codec)).toReversed());
  differ(
    "codecs",
    [...own.map((each) => each.codecs.map(formatCodec)), ...codecs].map((each) => each.join(" → ") || "none"),
  );
  differ(
    "orders of axes",
    [...own, ...layouts].map(({ axisOrder }) => formatShape(axisOrder)),
  );
  if (layouts.some(({ conversion }) => conversion !== undefined)) reasons.push("values are converted");
  return reasons.length > 0 ? reasons : ["files begin or end within chunks"];
}

const MAX_LISTED = 3;

function listOf(texts: readonly string[]): string {
  const shown = texts.slice(0, MAX_LISTED);
  const rest = texts.length - shown.length;
  if (rest > 0) return `${shown.join(", ")} and ${rest} more`;
  return `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}`;
}

/** Content of a location, and how it would be served, as `inspect --json` prints it. */
export interface Inspection {
  readonly location: string;
  /** Name of the file format; null for a Zarr store. */
  readonly format: string | null;
  /** Files of a joined dataset, and the steps that each gives; null if it is one file or store. */
  readonly join: StoredJoin | null;
  readonly groups: readonly InspectedGroup[];
  readonly refused: readonly Refusal[];
  readonly warnings: readonly string[];
  /** Levels of overviews, as `--overviews` would publish them, of the largest variable; the first is the variable itself. */
  readonly overviews: readonly InspectedLevel[];
  /** Remote stores that were asked. Default: none. */
  readonly stores?: readonly InspectedStore[];
}

/** One level of the overviews of a variable. */
interface InspectedLevel {
  readonly level: number;
  /** Path of the variable at that level, below the root of the overviews. */
  readonly path: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly chunks: readonly number[];
  readonly byteLength: number;
}

/** Cost of reading the metadata from one remote store. */
interface InspectedStore {
  readonly store: string;
  readonly requests: number;
  readonly retries: number;
  readonly receivedBytes: number;
  /** Time of all requests together, of which many are under way at once. */
  readonly seconds: number;
}

/** One group of a location. */
interface InspectedGroup {
  readonly path: string;
  readonly attrs: JsonObject;
  readonly variables: readonly InspectedVariable[];
}

/** One variable of a group. */
export interface InspectedVariable {
  readonly name: string;
  readonly path: string;
  /** As numpy writes it: `float32`, `>f4`, `<U4`. */
  readonly dtype: string;
  readonly dims: readonly string[];
  readonly shape: readonly number[];
  /** Elements per axis of a stored chunk. */
  readonly storedChunks: readonly number[];
  /** Elements per axis of a shard; null if each chunk is a file. */
  readonly shards: readonly number[] | null;
  /** Elements per axis of a served chunk. */
  readonly servedChunks: readonly number[];
  /** Stored codecs in order of encoding. */
  readonly codecs: readonly CodecSpec[];
  /** Decoded size of the whole array; null for objects, whose size is unknown. */
  readonly byteLength: number | null;
  readonly served: "passthrough" | "transcoded";
  /** Reason of transcoding; null for passthrough. */
  readonly reason: string | null;
  /** Remark about the way of chunks that lie in a file of another format, or in several files; null for those of Zarr stores. */
  readonly way: string | null;
  /** Chunks of a joined array; null for all others. */
  readonly pieces: InspectedPieces | null;
  /** Served below `zarr3/`: the chunks of v2, or the stored files if v2 cannot describe those; null if it is left out there. */
  readonly zarr3: "chunks" | "files" | null;
  readonly attrs: JsonObject;
}

/** Inspects a stored tree as the server would open it without any configured encoding. */
export async function inspectTree(location: string, tree: StoredTree): Promise<Inspection> {
  const config = { id: "inspect", location, immutable: false, encoding: {}, variables: {} };
  const overviews = DEFAULT_OVERVIEWS;
  const snapshot = createSnapshot({ ...config, overviews }, tree, "");
  const pieces = await inspectPieces(tree);
  const groups = [...snapshot.tree.groups.values()].map(
    (group): InspectedGroup => ({
      path: group.path,
      attrs: group.attrs,
      variables: [...group.variables.values()].map(({ path }) =>
        inspectArray(snapshot.arrays.get(path) as ServedArray, pieces.get(path) ?? null),
      ),
    }),
  );
  const { refused, warnings, format = null } = snapshot;
  const { join = null } = tree;
  return { location, format, join, groups, refused, warnings, overviews: inspectLevels(snapshot) };
}

function inspectLevels({ overviews }: DatasetSnapshot): InspectedLevel[] {
  if (overviews === undefined) return [];
  return describeLevels(overviews).map(({ level, variable, byteLength }) => ({
    level,
    path: level === 0 ? `0/${variable.path}` : variable.path,
    dtype: variable.dataType.numpyStr,
    shape: variable.shape,
    chunks: variable.chunkShape,
    byteLength,
  }));
}

/** Returns what was asked of remote stores since the program started. */
function inspectStores(): InspectedStore[] {
  return [...allStoreStats()].map(([store, { answers, failures, retries, bytes, seconds }]) => ({
    store,
    requests: failures + [...answers.values()].reduce((sum, count) => sum + count, 0),
    retries,
    receivedBytes: bytes,
    seconds: Math.round(seconds.sum * 1_000) / 1_000,
  }));
}

function inspectArray(
  { variable, plan, stored, v3Problem, describeV3 }: ServedArray,
  pieces: InspectedPieces | null,
): InspectedVariable {
  const { itemSize, numpyStr } = variable.dataType;
  const isPassthrough = plan.kind === "passthrough";
  return {
    name: variable.name,
    path: variable.path,
    dtype: numpyStr,
    dims: variable.dims,
    shape: variable.shape,
    storedChunks: stored.chunkShape,
    shards: shardShapeOf(stored),
    servedChunks: variable.chunkShape,
    codecs: stored.codecs,
    byteLength: stored.dataType.kind === "O" ? null : elementCount(variable.shape) * itemSize,
    served: isPassthrough ? "passthrough" : "transcoded",
    reason: isPassthrough ? null : transcodingReason(plan),
    way: pieces === null ? wayOf(stored, plan) : wayOfPieces(pieces),
    pieces,
    zarr3: v3Problem !== undefined ? null : describeV3().plan === plan ? "chunks" : "files",
    attrs: variable.attrs,
  };
}

function shardShapeOf({ chunks, chunkShape }: ServedArray["stored"]): number[] | null {
  if (chunks.kind !== "shards") return null;
  return chunkShape.map((length, axis) =>
    chunks.levels.reduce((product, level) => product * level.chunksPerShard[axis]!, length),
  );
}

/** Ways of chunks of files, by `RangeChunks.form`. */
const WAYS = {
  ranges: "by range",
  kept: "from the index",
  made: "put together from parts of the file",
} as const;

function wayOf({ chunks }: ServedArray["stored"], { stored }: ServedArray["plan"]): string | null {
  if (chunks.kind !== "ranges") return null;
  const { form, differing } = chunks;
  if (differing === 0) return WAYS[form];
  const count = elementCount(stored.gridShape);
  return `${WAYS[form]}, ${differing} of ${count} chunks have other codecs and are made`;
}

function wayOfPieces({ passed, joined, reasons }: InspectedPieces): string {
  if (joined === 0) return "each chunk from one file";
  const of = passed === 0 ? "all chunks are" : `${joined} of ${passed + joined} chunks are`;
  return `${of} put together from several files, since ${reasons.join(", ")}`;
}

function transcodingReason({ kind, stored, served, decode, encode }: ServedArray["plan"]): string {
  const reasons: string[] = [];
  if (stored.chunkShape.join() !== served.chunkShape.join()) {
    reasons.push(`chunks ${formatShape(stored.chunkShape)} become ${formatShape(served.chunkShape)}`);
  }
  if (stored.axisOrder.join() !== served.axisOrder.join()) reasons.push("the order of axes changes");
  const from = decode.map(({ codec }) => formatCodec(codec)).join(", ") || "no codec";
  const to = encode.map(({ codec }) => formatCodec(codec)).join(", ") || "no codec";
  if (from !== to || reasons.length === 0) reasons.push(`${from} becomes ${to}`);
  return `${kind}: ${reasons.join("; ")}`;
}

const HEAD = ["variable", "type", "dimensions", "chunks", "codecs", "size", "served"] as const;

/** Writes an inspection as aligned text, one line per variable. */
export function formatInspection(inspection: Inspection): string {
  const { location, format, join, groups, refused, warnings, overviews, stores = [] } = inspection;
  const rows = groups.map(({ variables }) => variables.map(formatVariable));
  const widths = columnWidths([HEAD, ...rows.flat()]);
  const lines = [format === null ? printable(location) : printable(`${location}: ${format}`), ""];
  if (join !== null) lines.push(...formatJoin(join), "");
  groups.forEach((group, index) => {
    lines.push(...formatGroup(group, rows[index] as readonly (readonly string[])[], widths), "");
  });
  for (const { path, reason } of refused) lines.push(`refused: ${printable(path)}: ${printable(reason)}`);
  for (const warning of warnings) lines.push(`warning: ${printable(warning)}`);
  if (refused.length + warnings.length > 0) lines.push("");
  lines.push(summaryOf(groups, refused.length));
  if (overviews.length > 1) lines.push(overviewsOf(overviews));
  for (const { store, requests, retries, receivedBytes, seconds } of stores)
    lines.push(
      `${printable(store)}: ${countOf(requests, "request")}, ${retries} of them again, ${formatByteSize(receivedBytes)}, ${seconds} s`,
    );
  return `${lines.join("\n")}\n`;
}

function formatGroup(
  { path, attrs }: InspectedGroup,
  rows: readonly (readonly string[])[],
  widths: readonly number[],
): string[] {
  const attributes = Object.keys(attrs).length;
  const title = attributes === 0 ? path : `${path}  (${countOf(attributes, "attribute")})`;
  const table = rows.length === 0 ? [] : [HEAD, ...rows];
  return [printable(title), ...table.map((row) => `  ${alignRow(row, widths)}`)];
}

/** Files that are shown at the beginning and at the end. */
const SHOWN_PARTS = 4;

/** Lists which file gives which steps: the first ones and the last ones. */
function formatJoin({ kind, dimension, parts }: StoredJoin): string[] {
  const steps = parts.reduce((sum, { length }) => sum + length, 0);
  const how = kind === "concat" ? "one behind the other along" : "one step each along";
  const rest = parts.length - 2 * SHOWN_PARTS;
  const rows = parts.map(({ name, start, length }) => [stepsOf(start, length), name] as const);
  const isCut = rest > 1;
  const shown = isCut ? [...rows.slice(0, SHOWN_PARTS), ...rows.slice(-SHOWN_PARTS)] : rows;
  const width = Math.max("steps".length, ...shown.map(([text]) => text.length));
  const lines = [["steps", "file"] as const, ...shown].map(([text, name]) =>
    printable(`  ${text.padEnd(width)}  ${name}`),
  );
  if (isCut) lines.splice(1 + SHOWN_PARTS, 0, `  … ${rest} more`);
  const files = new Set(parts.map(({ name }) => name)).size;
  return [printable(`${countOf(files, "file")} ${how} ${dimension}, ${countOf(steps, "step")}`), ...lines];
}

/** Writes the steps that a file gives: `0–30`, `5`, or `none` if others give all of its steps. */
function stepsOf(start: number, length: number): string {
  if (length === 0) return "none";
  return length === 1 ? String(start) : `${start}–${start + length - 1}`;
}

function formatVariable(variable: InspectedVariable): readonly string[] {
  const { name, dtype, dims, shape, storedChunks, shards, codecs, byteLength, served, reason, way, zarr3 } =
    variable;
  const remarks = [reason, way].filter((remark) => remark !== null);
  return [
    name,
    dtype,
    `(${dims.map((dim, axis) => `${dim}: ${shape[axis]}`).join(", ")})`,
    shards === null
      ? formatShape(storedChunks)
      : `${formatShape(storedChunks)} in shards ${formatShape(shards)}`,
    codecs.map(formatCodec).join(" → ") || "none",
    byteLength === null ? "unknown" : formatByteSize(byteLength),
    `${remarks.length === 0 ? served : `${served} (${remarks.join("; ")})`}${IN_V3[zarr3 ?? "none"]}`,
  ].map(printable);
}

/** Remarks about Zarr v3. */
const IN_V3 = { chunks: "", files: "; in v3 as stored", none: "; not in v3" } as const;

function summaryOf(groups: readonly InspectedGroup[], refused: number): string {
  const variables = groups.flatMap((group) => group.variables);
  const passthrough = variables.filter(({ served }) => served === "passthrough").length;
  const byteLength = variables.reduce((sum, variable) => sum + (variable.byteLength ?? 0), 0);
  return [
    `${countOf(groups.length, "group")}, ${countOf(variables.length, "variable")}, ${formatByteSize(byteLength)}:`,
    `${passthrough} passthrough, ${variables.length - passthrough} transcoded, ${refused} refused`,
  ].join(" ");
}

/** Lists the levels that overviews would have: `0/t2m (721, 1440) 4 MiB → 1/t2m (361, 720) 1 MiB`. */
function overviewsOf(levels: readonly InspectedLevel[]): string {
  const texts = levels.map(
    ({ path, shape, byteLength }) => `${path} ${formatShape(shape)} ${formatByteSize(byteLength)}`,
  );
  return printable(`overviews, if they are asked for: ${texts.join(" → ")}`);
}

function columnWidths(rows: readonly (readonly string[])[]): number[] {
  return HEAD.map((_, column) => Math.max(...rows.map((row) => (row[column] as string).length)));
}

function alignRow(row: readonly string[], widths: readonly number[]): string {
  return row
    .map((cell, column) => cell.padEnd(widths[column]!))
    .join("  ")
    .trimEnd();
}

/** Writes a shape: `(1464, 25, 53)`, or `()` for a scalar. */
function formatShape(shape: readonly number[]): string {
  return `(${shape.join(", ")})`;
}

/** Writes a codec with its inner codec: `blosc(lz4)`, `zstd`. */
function formatCodec({ id, cname }: CodecSpec): string {
  return typeof cname === "string" ? `${id}(${cname})` : id;
}

/** Writes a number and its noun: `1 file`, `2 files`. */
function countOf(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** Escapes characters in a name from a store that could move a terminal's cursor. */
function printable(text: string): string {
  return text.replace(
    /\p{Cc}/gu,
    (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
}

/** Contents of a folder of datasets, as `inspect --json` prints it. */
interface CollectionInspection {
  readonly location: string;
  /** Sorted by id. None of them was opened. */
  readonly datasets: readonly { readonly id: string; readonly location: string }[];
  /** Files and folders that cannot be published, with the reason. */
  readonly problems: readonly { readonly name: string; readonly reason: string }[];
  /** Time of the list. */
  readonly seconds: number;
}

/** Datasets, and problems, that are shown at the beginning and at the end. */
const SHOWN = 10;

/** Lists the datasets of a collection, and opens none. @throws ZpublishError `source-unreadable` if it cannot be listed. */
export async function inspectCollection(
  location: string,
  provider: DatasetProvider,
): Promise<CollectionInspection> {
  const { signal } = new AbortController();
  const beganMs = performance.now();
  const ids = await provider.list(signal);
  const seconds = Math.round(performance.now() - beganMs) / 1_000;
  const datasets: { id: string; location: string }[] = [];
  for (const id of [...ids].sort()) {
    const dataset = await provider.open(id);
    if (dataset !== undefined) datasets.push({ id: `${provider.prefix}${id}`, location: dataset.location });
  }
  return { location, datasets, problems: provider.problems?.() ?? [], seconds };
}

/** Writes what a folder has as text: the first and the last datasets and problems. */
export function formatCollection({ location, datasets, problems, seconds }: CollectionInspection): string {
  const width = Math.max("id".length, ...bounded(datasets).map(({ id }) => printable(id).length));
  const rows = bounded(datasets).map(
    ({ id, location }) => `  ${printable(id).padEnd(width)}  ${printable(location)}`,
  );
  const lines = problems.map(({ name, reason }) => `  ${printable(name)}: ${printable(reason)}`);
  return [
    `${printable(location)}: ${countOf(datasets.length, "dataset")}, listed in ${seconds} s`,
    ...(rows.length === 0
      ? []
      : ["", `  ${"id".padEnd(width)}  location`, ...withRest(rows, datasets.length)]),
    ...(lines.length === 0
      ? []
      : ["", `${countOf(problems.length, "problem")}:`, ...withRest(bounded(lines), lines.length)]),
    "",
  ].join("\n");
}

/** Returns the first and the last items of many. */
function bounded<T>(items: readonly T[]): readonly T[] {
  return items.length <= 2 * SHOWN + 1 ? items : [...items.slice(0, SHOWN), ...items.slice(-SHOWN)];
}

/** Puts a line about those that are left out between the first and the last lines. */
function withRest(lines: readonly string[], total: number): string[] {
  const rest = total - lines.length;
  if (rest === 0) return [...lines];
  return [...lines.slice(0, SHOWN), `  … ${rest} more`, ...lines.slice(SHOWN)];
}

/** Options of `inspect`. */
export interface InspectOptions {
  readonly json: boolean;
  /** Dimension along which the files of the location are one dataset, as in `serve`. */
  readonly concat?: string;
  /** New dimension along which they are. */
  readonly stack?: string;
}

/**
 * Prints the content of a location on standard output, as text or as JSON: of a dataset, of files that are joined, or of a folder.
 * @throws ZpublishError `invalid-config`; `invalid-metadata` or `source-unreadable` if the location cannot be opened.
 */
export async function runInspect(location: string, options: InspectOptions): Promise<void> {
  const { datasets, collections } = await separateFolders(resolveLocation(location, options));
  for (const dataset of datasets) await printDataset(location, dataset, options);
  for (const collection of collections) await printCollection(location, collection, options);
}

/** Resolves a location as `serve` does, without its variables. */
function resolveLocation(location: string, { concat, stack }: InspectOptions): Config {
  const said = { locations: [location], config: undefined, concat, stack, plugins: [], values: {} };
  return resolveArguments(said, { env: {}, cwd: process.cwd() });
}

/** @param said Location as the operator wrote it. */
async function printDataset(
  said: string,
  { location, join }: DatasetConfig,
  { json }: InspectOptions,
): Promise<void> {
  const source = join === undefined ? await openSource(location) : await openJoin(location, join);
  const progress = createOpenReporter(process.stderr, { info: () => {} });
  try {
    const tree = await source.readTree((arrays) =>
      progress.update({ opened: 0, total: 1, id: basename(location), arrays }),
    );
    progress.clear();
    const inspection = { ...(await inspectTree(said, tree)), stores: inspectStores() };
    print(json ? inspection : formatInspection(inspection));
  } finally {
    progress.clear();
    await source.close();
  }
}

/** @param said Location as the operator wrote it. */
async function printCollection(
  said: string,
  config: CollectionConfig,
  { json }: InspectOptions,
): Promise<void> {
  const provider = createCollectionProvider(config);
  try {
    const inspection = await inspectCollection(said, provider);
    print(json ? inspection : formatCollection(inspection));
  } finally {
    await provider.close();
  }
}

/** Writes text, or anything else as JSON. */
function print(content: object | string): void {
  process.stdout.write(typeof content === "string" ? content : `${stringifyJson(content as JsonValue, 2)}\n`);
}
