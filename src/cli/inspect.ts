import { basename } from "node:path";
import type { CollectionConfig, Config, DatasetConfig } from "../config/config.js";
import { resolveArguments } from "../config/resolve-config.js";
import { formatByteSize } from "../config/value-schemas.js";
import { createCollectionProvider } from "../dataset/collection/collection-provider.js";
import type { ServedArray } from "../dataset/dataset.js";
import type { DatasetProvider } from "../dataset/dataset-provider.js";
import { createSnapshot } from "../dataset/snapshot.js";
import { openJoin } from "../join/open-join.js";
import type { JsonObject, JsonValue } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import { lengthRangeOf } from "../model/chunk-axis.js";
import { elementCount, gridShapeOf } from "../model/data-tree.js";
import { printable } from "../observe/log.js";
import { openSource } from "../open/open-source.js";
import { separateFolders } from "../server/open-app.js";
import { PIECED } from "../zarr/chunk-reader.js";
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
}

/** Counts the chunks of an array of a joined dataset; null if it is not made of files one behind the other. */
function inspectPieces({ shape, chunkShape, chunks }: StoredArray): InspectedPieces | null {
  if (chunks.kind !== "parts" || chunks.axis === undefined || chunks.axis < 0) return null;
  const { parts } = chunks.openReader();
  const gridShape = gridShapeOf(shape, chunkShape);
  // A chunk is passed through or not with all others of the same steps.
  const coordsOf = (index: number) => gridShape.map((_, axis) => (axis === chunks.axis ? index : 0));
  const length = gridShape[chunks.axis]!;
  let steps = 0;
  for (let index = 0; index < length; index++) if (parts.variantOf(coordsOf(index)) === PIECED) steps++;
  const joined = (elementCount(gridShape) / length) * steps;
  return { passed: elementCount(gridShape) - joined, joined };
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
}

/** One group of a location. */
interface InspectedGroup {
  readonly path: string;
  readonly attrs: JsonObject;
  readonly variables: readonly InspectedVariable[];
}

/** One variable of a group. */
interface InspectedVariable {
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
  /** Remark about the way of chunks that lie in a file of another format, in several files or in unequal chunks; else null. */
  readonly way: string | null;
  /** What became of codecs on values, and why; null if there are none. */
  readonly values: string | null;
  /** Chunks of a joined array; null for all others. */
  readonly pieces: InspectedPieces | null;
  /** Served below `zarr3/`: the chunks of v2, or the stored files if v2 cannot describe those; null if it is left out there. */
  readonly zarr3: "chunks" | "files" | null;
  /** What a portable store costs below `zarr3/`: why chunks are transcoded there alone, or left out; null if neither. */
  readonly portable: string | null;
  readonly attrs: JsonObject;
}

/** Inspects a stored tree as the server would open it without any configured encoding. */
export function inspectTree(location: string, tree: StoredTree): Inspection {
  const config = { id: "inspect", location, immutable: false, encoding: {}, variables: {} };
  const { refused, warnings, format = null, ...snapshot } = createSnapshot(config, tree, "");
  const portable = createSnapshot({ ...config, zarr3: { portable: true } }, tree, "");
  const groups = [...snapshot.tree.groups.values()].map(
    ({ path, attrs, variables }): InspectedGroup => ({
      path,
      attrs,
      variables: [...variables.values()].map((variable) =>
        inspectArray(snapshot.arrays.get(variable.path)!, portable.arrays.get(variable.path)!),
      ),
    }),
  );
  return { location, format, join: tree.join ?? null, groups, refused, warnings };
}

function inspectArray(
  { variable, plan, stored, v3Problem, describeV3 }: ServedArray,
  portable: ServedArray,
): InspectedVariable {
  const pieces = inspectPieces(stored);
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
    values: stored.remark ?? null,
    pieces,
    zarr3: v3Problem !== undefined ? null : describeV3().plan === plan ? "chunks" : "files",
    portable: portableCost(portable),
    attrs: variable.attrs,
  };
}

/** Returns why chunks of a portable array are transcoded below `zarr3/` alone, or that it is left out there; null if neither. */
function portableCost({ v3Problem, describeV3, plan }: ServedArray): string | null {
  if (v3Problem !== undefined) return `left out: ${v3Problem}`;
  const own = describeV3().plan;
  return own.id === plan.id || own.kind === "files" ? null : transcodingReason(own);
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

function wayOf(
  { chunks, axes, variants }: ServedArray["stored"],
  { stored }: ServedArray["plan"],
): string | null {
  const lengths = axes?.map((axis) => [...new Set(lengthRangeOf(axis))].join("–")).join(", ");
  if (lengths !== undefined)
    return variants === undefined
      ? `each chunk from one shard of (${lengths})`
      : `stored in chunks of (${lengths}), from which others are put together`;
  if (chunks.kind !== "ranges") return null;
  const { form, differing } = chunks;
  if (differing === 0) return WAYS[form];
  const count = elementCount(stored.gridShape);
  return `${WAYS[form]}, ${differing} of ${count} chunks have other codecs and are made`;
}

function wayOfPieces({ passed, joined }: InspectedPieces): string {
  if (joined === 0) return "each chunk from one file";
  const of = passed === 0 ? "all chunks are" : `${joined} of ${passed + joined} chunks are`;
  return `${of} put together from several files`;
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
  const { location, format, join, groups, refused, warnings } = inspection;
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

/** Lists which file gives which steps: the first ones and the last ones. */
function formatJoin({ kind, dimension, parts }: StoredJoin): string[] {
  const steps = parts.reduce((sum, { length }) => sum + length, 0);
  const how = kind === "concat" ? "one behind the other along" : "one step each along";
  const rows = parts.map(({ name, start, length }) => [stepsOf(start, length), name] as const);
  const width = rows.reduce((longest, [text]) => Math.max(longest, text.length), "steps".length);
  const [head, ...lines] = [["steps", "file"] as const, ...rows].map(([text, name]) =>
    printable(`  ${text.padEnd(width)}  ${name}`),
  );
  const files = new Set(parts.map(({ name }) => name)).size;
  const title = printable(`${countOf(files, "file")} ${how} ${dimension}, ${countOf(steps, "step")}`);
  return [title, head!, ...firstAndLast(lines)];
}

/** Writes the steps that a file gives: `0–30`, `5`, or `none` if others give all of its steps. */
function stepsOf(start: number, length: number): string {
  if (length === 0) return "none";
  return length === 1 ? String(start) : `${start}–${start + length - 1}`;
}

function formatVariable(variable: InspectedVariable): readonly string[] {
  const { name, dtype, dims, shape, storedChunks, shards, codecs, byteLength, served } = variable;
  const { reason, way, values, zarr3 } = variable;
  const remarks = [reason, way, values].filter((remark) => remark !== null);
  const portable = variable.portable === null ? "" : `; in portable v3 ${variable.portable}`;
  return [
    name,
    dtype,
    `(${dims.map((dim, axis) => `${dim}: ${shape[axis]}`).join(", ")})`,
    shards === null
      ? formatShape(storedChunks)
      : `${formatShape(storedChunks)} in shards ${formatShape(shards)}`,
    codecs.map(formatCodec).join(" → ") || "none",
    byteLength === null ? "unknown" : formatByteSize(byteLength),
    `${remarks.length === 0 ? served : `${served} (${remarks.join("; ")})`}${IN_V3[zarr3 ?? "none"]}${portable}`,
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

/** Lists the datasets of a collection, and opens none. @throws ZpublishError `source-unreadable` if it cannot be listed. */
async function inspectCollection(location: string, provider: DatasetProvider): Promise<CollectionInspection> {
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
  const shown = new Set(firstAndLast(datasets.map(({ id }) => id)));
  const width = Math.max(...["id", ...shown].map((id) => printable(id).length));
  const rows = [{ id: "id", location: "location" }, ...datasets].map(
    ({ id, location }) => `  ${printable(id).padEnd(width)}  ${printable(location)}`,
  );
  const lines = problems.map(({ name, reason }) => `  ${printable(name)}: ${printable(reason)}`);
  return [
    `${printable(location)}: ${countOf(datasets.length, "dataset")}, listed in ${seconds} s`,
    ...(datasets.length === 0 ? [] : ["", rows[0], ...firstAndLast(rows.slice(1))]),
    ...(lines.length === 0 ? [] : ["", `${countOf(problems.length, "problem")}:`, ...firstAndLast(lines)]),
    "",
  ].join("\n");
}

/** Lines that are shown at the beginning and at the end of a list. */
const SHOWN = 10;

/** Shortens a list to its first and last lines, with a line about the others between them. */
function firstAndLast(lines: readonly string[]): readonly string[] {
  const rest = lines.length - 2 * SHOWN;
  return rest <= 1 ? lines : [...lines.slice(0, SHOWN), `  … ${rest} more`, ...lines.slice(-SHOWN)];
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
  const { datasets, collections } = await separateFolders(configOfLocation(location, options));
  for (const dataset of datasets) await printDataset(location, dataset, options);
  for (const collection of collections) await printCollection(location, collection, options);
}

/** Resolves a location as `serve` does, without its variables. */
export function configOfLocation(
  location: string,
  { concat, stack }: Pick<InspectOptions, "concat" | "stack">,
): Config {
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
    const inspection = inspectTree(said, tree);
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
