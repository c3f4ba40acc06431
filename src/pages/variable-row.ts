import { isLosslessNumber } from "lossless-json";
import { firstText } from "../cf/dataset-facts.js";
import { type CfDecoding, cfDecodingOf, isDecoded } from "../cf/decoded-type.js";
import { missingMarkOf } from "../cf/image-data.js";
import { packingOf } from "../cf/packing.js";
import type { ServedArray } from "../dataset/dataset.js";
import { isJsonArray, type JsonObject, type JsonValue } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import { elementCount, gridShapeOf, type Variable } from "../model/data-tree.js";
import type { CodecSpec } from "../zarr/codec-step.js";
import {
  formatByteLength,
  formatCount,
  formatCounted,
  type Markup,
  markup,
  NO_MARKUP,
  shortened,
  trustedMarkup,
} from "./page.js";
import type { PageBudget } from "./page-place.js";
import type { PreviewValues } from "./preview-service.js";

interface VariableRow {
  readonly variable: Variable;
  /** Undefined if the variable is described but not served. */
  readonly array: ServedArray | undefined;
  readonly preview: PreviewValues | undefined;
  /** Picture beside it; empty if there is none. */
  readonly picture: Markup;
  /** Returns the last part of its fold. */
  readonly code: () => Markup;
}

/**
 * Renders a variable as a list item. One line has name, dimensions, type, first values (or description, shape and chunks) and
 * size. A fold has everything else, while the page's budget lasts.
 */
export function renderVariableRow(row: VariableRow, budget: PageBudget): Markup {
  const cells = rowCells(row);
  const { picture } = row;
  if (budget.detailedVariables <= 0) return markup`<li>${picture}<div class="row">${cells}</div></li>`;
  budget.detailedVariables--;
  return markup`<li>${picture}<details><summary class="row">${cells}</summary><div class="more">${renderDetails(row, budget)}</div></details></li>
`;
}

function rowCells({ variable, array, preview }: VariableRow): Markup {
  const name = isIndexCoordinate(variable)
    ? markup`<b class="name">${variable.name}</b>`
    : markup`<span class="name">${variable.name}</span>`;
  const byteLength = variableByteLength(variable);
  const values =
    preview === undefined
      ? markup`<span class="values muted" dir="auto"><span class="label">${describe(variable)}</span> <span class="layout" dir="ltr">${layoutOf(variable)}</span></span>`
      : markup`<span class="values mono" dir="auto">${formatPreview(preview).map((value) => markup`<span class="v">${value}</span> `)}</span>`;
  return markup`${name}<span class="dims">(${variable.dims.join(", ")})</span><span class="type">${typeText(variable, decodingOf(variable, array, preview))}</span>${values}<span class="size">${byteLength === undefined ? "" : formatByteLength(byteLength)}</span>`;
}

function decodingOf(variable: Variable, array: ServedArray | undefined, preview?: PreviewValues): CfDecoding {
  const dates = preview === undefined ? [] : [...preview.first, ...preview.last];
  const fillValue = missingMarkOf(variable, array?.document.fill_value) ?? null;
  return cfDecodingOf(variable.dataType, variable.attrs, fillValue, dates);
}

const MAX_UNITS_CHARS = 40;

/** Writes the stored type, the decoded one and the units: `int16 → float32, K`. */
function typeText({ dataType, attrs }: Variable, { dtype, time }: CfDecoding): Markup {
  const decoded = dtype !== dataType.numpyStr && ` → ${dtype}`;
  const units = time === undefined ? firstText(attrs, ["units"]) : undefined;
  const hasUnits = units !== undefined && units.trim() !== "" && units !== "1";
  return markup`${dataType.numpyStr}${decoded}${hasUnits && markup`, <bdi>${shortened(units, MAX_UNITS_CHARS)}</bdi>`}`;
}

/** Formats shape and chunks: `2,920 × 25 × 53 in chunks of 100 × 25 × 53`. */
function layoutOf({ shape, chunkShape }: Variable): string {
  if (shape.length === 0) return "scalar";
  const isWhole = shape.every((length, axis) => length <= chunkShape[axis]!);
  return isWhole ? `${timesOf(shape)} in one chunk` : `${timesOf(shape)} in chunks of ${timesOf(chunkShape)}`;
}

/** Describes a variable by its attributes: `Air temperature`. */
function describe({ attrs }: Variable): string {
  return shortened(firstText(attrs, ["long_name", "standard_name", "description", "title"]) ?? "", 200);
}

const MIDNIGHT = /T00:00:00(?:\.0+)?$/;
const EMPTY_FRACTION = /(T\d\d:\d\d:\d\d)\.0+$/;

/** Characters of first values that a row has room for. */
const PREVIEW_CHARS = 48;

/**
 * Formats as many first and last values as fit into a row: `75.0 72.5 70.0 … 17.5 15.0`. Times are shown as days if all are
 * midnight, and without fractions of seconds that are zero.
 */
export function formatPreview({ first, last }: Omit<PreviewValues, "stored">): readonly string[] {
  const all = [...first, ...last];
  const days = all.every((value) => MIDNIGHT.test(value) || value === "NaT");
  const shorten = (value: string) =>
    days ? value.replace(MIDNIGHT, "") : value.replace(EMPTY_FRACTION, "$1");
  const start = first.map(shorten);
  const end = last.map(shorten);
  let omitted = end.length > 0;
  while (start.length + end.length > 2 && lengthOf(start) + lengthOf(end) > PREVIEW_CHARS) {
    omitted = true;
    if (end.length > 0 && end.length >= start.length) end.shift();
    else start.pop();
  }
  return omitted ? [...start, "…", ...end] : start;
}

function lengthOf(values: readonly string[]): number {
  return values.reduce((length, value) => length + value.length + 1, 0);
}

function renderDetails(row: VariableRow, budget: PageBudget): Markup {
  const { variable, code } = row;
  const { shape, chunkShape, dims } = variable;
  const attributes =
    Object.keys(variable.attrs).length === 0
      ? markup`<p class="muted">No attributes</p>`
      : renderAttributes(variable.attrs, budget);
  const diagram = renderChunkDiagram(dims, shape, chunkShape);
  return markup`<div class="wide"><h3>Attributes</h3>${attributes}</div><div class="wide"><h3>Storage</h3><dl>${storageFacts(
    row,
  ).map(
    ([term, fact]) => markup`<div><dt>${term}</dt><dd>${fact}</dd></div>`,
  )}</dl></div>${diagram.html !== "" && markup`<figure>${diagram}${shape.length > 3 && markup`<figcaption>last three of ${shape.length} dimensions</figcaption>`}</figure>`}${code()}`;
}

const DELIVERY = {
  passthrough: "as stored",
  files: "as stored",
  recompress: "recompressed when served",
  rechunk: "rechunked when served",
} as const;

function storageFacts({ variable, array, preview }: VariableRow): [string, string][] {
  const { shape, chunkShape, dataType } = variable;
  const byteLength = variableByteLength(variable);
  const chunkCount = elementCount(gridShapeOf(shape, chunkShape));
  const chunkBytes = dataType.kind === "O" ? undefined : elementCount(chunkShape) * dataType.itemSize;
  const { numpyStr, numpyName } = dataType;
  const items = formatCounted(elementCount(shape), "item");
  const of = shape.length === 0 ? "" : ` of ${timesOf(chunkShape)}`;
  const each = chunkCount > 1 ? " each" : "";
  const bytes = chunkBytes === undefined ? "" : `, ${formatByteLength(chunkBytes)}${each}`;
  const facts: [string, string][] = [
    ["Stored type", numpyStr === numpyName ? numpyStr : `${numpyStr} (${numpyName})`],
    ...decodedFacts(variable, array, preview),
    ["Shape", shape.length === 0 ? "scalar" : timesOf(shape)],
    ["Size", byteLength === undefined ? items : formatByteLength(byteLength)],
    ["Chunks", `${formatCount(chunkCount)}${of}${bytes}`],
  ];
  if (array === undefined) return facts;
  const { compressor, filters, fill_value, order } = array.document;
  facts.push(["Compressor", compressor === null ? "none" : codecText(compressor)]);
  if (filters !== null && filters.length > 0) facts.push(["Filters", filters.map(codecText).join(", ")]);
  facts.push(["Fill value", formatFillValue(fill_value)]);
  if (order === "F" && shape.length > 1) facts.push(["Order", "F (first axis fastest)"]);
  facts.push(["Served", deliveryOf(array.plan)]);
  return facts;
}

/** Says how values are decoded, and what the first ones are as they are stored. */
function decodedFacts(
  variable: Variable,
  array: ServedArray | undefined,
  preview: PreviewValues | undefined,
): [string, string][] {
  const decoding = decodingOf(variable, array, preview);
  if (!isDecoded(decoding)) return [];
  const { attrs } = variable;
  const { missing, scale, offset } = packingOf(attrs, missingMarkOf(variable, array?.document.fill_value));
  const scaled = `stored${scale === 1 ? "" : ` × ${scale}`}${offset === 0 ? "" : ` ${offset < 0 ? "−" : "+"} ${Math.abs(offset)}`}`;
  const parts = [
    decoding.dtype,
    ...(scaled === "stored" ? [] : [scaled]),
    ...(decoding.time === undefined ? [] : [shortened(String(attrs.units), MAX_UNITS_CHARS)]),
    ...(missing.length === 0
      ? []
      : [`${missing.join(" and ")} ${missing.length === 1 ? "means" : "mean"} missing`]),
  ];
  const stored = preview?.stored && formatPreview(preview.stored).join(" ");
  return [
    ["Decoded as", parts.join(", ")],
    ...(stored === undefined ? [] : [["Stored values", stored] as [string, string]]),
  ];
}

function deliveryOf({ kind, source, stored, variants }: ServedArray["plan"]): string {
  if (kind === "rechunk") return `${DELIVERY.rechunk}, stored as ${timesOf(stored.chunkShape)}`;
  if (kind === "passthrough" && source.kind === "parts" && source.axis !== -1 && variants !== undefined)
    return `${DELIVERY.passthrough}, or put together from chunks${source.axis === undefined ? "" : " of several files"}`;
  if (kind !== "passthrough" || source.kind !== "ranges") return DELIVERY[kind];
  if (source.form === "made") return "put together when served";
  return source.differing === 0
    ? DELIVERY.passthrough
    : `${DELIVERY.passthrough}, ${formatCount(source.differing)} of ${formatCount(elementCount(stored.gridShape))} chunks recompressed`;
}

function timesOf(shape: readonly number[]): string {
  return shape.map(formatCount).join(" × ");
}

/** Returns the uncompressed bytes of a variable; undefined if items have no fixed size. */
export function variableByteLength(variable: Variable): number | undefined {
  const { itemSize, kind } = variable.dataType;
  return kind === "O" ? undefined : elementCount(variable.shape) * itemSize;
}

/** Tells whether a coordinate indexes its dimension: its only dimension has its name. */
export function isIndexCoordinate(variable: Variable): boolean {
  return variable.dims.length === 1 && variable.dims[0] === variable.name;
}

/**
 * Formats an attribute value for people: strings unquoted, numbers with all their digits, lists of numbers with commas,
 * other values as JSON.
 */
export function formatAttribute(value: JsonValue): string {
  const scalar = formatScalar(value);
  if (scalar !== undefined) return scalar;
  if (isJsonArray(value) && value.length > 0) {
    const items = value.map((item) => (typeof item === "string" ? undefined : formatScalar(item)));
    if (!items.includes(undefined)) return items.join(", ");
  }
  const compact = stringifyJson(value);
  return compact.length <= 80 ? compact : stringifyJson(value, 2);
}

/** Formats a codec on one line: `blosc (cname lz4, clevel 5, shuffle 1)`. */
export function codecText(codec: CodecSpec): string {
  const parameters = Object.entries(codec)
    .filter(([name]) => name !== "id")
    .map(([name, value]) => `${name} ${formatAttribute(value)}`);
  return parameters.length === 0 ? codec.id : `${codec.id} (${parameters.join(", ")})`;
}

/** Formats the fill value of a metadata document: `NaN`, `0`, `none`. */
export function formatFillValue(value: JsonValue): string {
  return value === null ? "none" : (formatScalar(value) ?? stringifyJson(value));
}

function formatScalar(value: JsonValue): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "number") return Object.is(value, -0) ? "-0" : String(value);
  if (isLosslessNumber(value)) return value.value;
  return typeof value === "object" && value !== null ? undefined : String(value);
}

/** Characters and lines of a value that are shown before it folds. */
const SHORT_CHARS = 300;
const SHORT_LINES = 5;

const WEB_ADDRESS = /^https?:\/\/[^\s<>"']+$/;

/** Renders attributes as a description list. Long values fold. */
export function renderAttributes(attrs: JsonObject, budget: PageBudget): Markup {
  return markup`<dl class="attrs">${Object.entries(attrs).map(([name, value]) => renderAttribute(name, formatAttribute(value), budget))}</dl>`;
}

function renderAttribute(name: string, value: string, budget: PageBudget): Markup {
  const room = Math.min(budget.attributeValueChars, budget.attributeChars);
  budget.attributeChars -= Math.min(room, value.length + name.length);
  const shown = value.length <= room ? value : value.slice(0, room);
  const rest =
    shown.length < value.length &&
    markup` <span class="muted">(${formatCount(value.length - shown.length)} more characters in the JSON document <code>info</code>)</span>`;
  return markup`<div><dt><bdi>${name}</bdi></dt><dd dir="auto">${renderValue(shown)}${rest}</dd></div>`;
}

function renderValue(value: string): Markup | string {
  if (WEB_ADDRESS.test(value)) return markup`<a href="${value}" rel="noreferrer nofollow">${value}</a>`;
  const short = startOf(value);
  if (short === value) return value;
  return markup`<details class="long"><summary>${short}</summary><div>${value}</div></details>`;
}

/** Returns the part of a value that is shown before the fold: its first lines. */
function startOf(value: string): string {
  let end = -1;
  for (let line = 0; line < SHORT_LINES; line++) {
    end = value.indexOf("\n", end + 1);
    if (end === -1 || end > SHORT_CHARS) break;
  }
  if (end !== -1 && end <= SHORT_CHARS) return value.slice(0, end);
  // A fold is not worth it for a little more than the limit.
  return value.length <= SHORT_CHARS + 60 && end === -1 ? value : value.slice(0, SHORT_CHARS);
}

/** Pixels of the longest edge, and of the shortest as a share of it. */
const LONGEST = 120;
const SHORTEST_SHARE = 0.22;
/** Maximum of lines drawn across an edge. More would merge. */
const MAX_LINES = 24;
/** Characters of a dimension's name that are shown. */
const MAX_NAME_CHARS = 14;
/** Pixels by which the third axis goes right, and up, per pixel of its length. */
const SLANT = 0.45;

interface Edge {
  readonly name: string;
  readonly length: number;
  readonly pixels: number;
  /** Positions of chunk borders as shares of the edge, without its ends. */
  readonly borders: readonly number[];
}

/** Draws the last three axes of an array as a block cut into its chunks, as inline SVG. Empty for scalars and empty arrays. */
export function renderChunkDiagram(
  dims: readonly string[],
  shape: readonly number[],
  chunkShape: readonly number[],
): Markup {
  if (shape.length === 0 || shape.includes(0)) return NO_MARKUP;
  const first = Math.max(0, shape.length - 3);
  const face = Math.max(...shape.slice(-2));
  const edges = shape
    .slice(first)
    .map((length, index) => edgeOf(dims[first + index] as string, length, chunkShape[first + index]!, face));
  const x = edges.at(-1) as Edge;
  const y = edges.at(-2) ?? { name: "", length: 1, pixels: 26, borders: [] };
  const z = edges.at(-3);
  const depth = z === undefined ? 0 : z.pixels * SLANT;
  const width = x.pixels + depth;
  const height = y.pixels + depth;
  const labelWidth = y.name === "" ? 0 : 7 * labelOf(y).length + 10;
  return markup`<svg width="${Math.ceil(width + Math.max(labelWidth, 8))}" height="${Math.ceil(height + 20 + (z === undefined ? 0 : 16))}" aria-hidden="true">${trustedMarkup(
    `<g transform="translate(1 ${z === undefined ? 1 : 17})">${block(x, y, z, depth)}</g>`,
  )}${label(0, height + (z === undefined ? 16 : 32), x)}${
    y.name !== "" && label(x.pixels + depth + 8, (z === undefined ? 5 : 21) + y.pixels / 2, y)
  }${z !== undefined && label(Math.max(0, depth - 10), 11, z)}</svg>`;
}

/** Computes an edge, which grows with the fourth root of its share of the longer edge: lengths differ by orders of magnitude. */
function edgeOf(name: string, length: number, chunkLength: number, face: number): Edge {
  const share = Math.min(1.2, Math.max(SHORTEST_SHARE, (length / face) ** 0.25));
  const chunks = Math.ceil(length / chunkLength);
  const lines = Math.min(chunks - 1, MAX_LINES);
  const borders = Array.from({ length: lines }, (_, index) =>
    chunks - 1 > MAX_LINES ? (index + 1) / (MAX_LINES + 1) : ((index + 1) * chunkLength) / length,
  );
  return { name, length, pixels: Math.round(LONGEST * share), borders };
}

/** Draws the front face, and the top and right sides if there is a third axis. It writes only numbers: nothing to escape. */
function block(x: Edge, y: Edge, z: Edge | undefined, depth: number): string {
  const w = x.pixels;
  const h = y.pixels;
  let svg = `<rect class="face" x="0" y="${depth}" width="${w}" height="${h}"/>`;
  let lines = "";
  for (const share of x.borders) lines += `M${round(share * w)} ${depth}v${h}`;
  for (const share of y.borders) lines += `M0 ${round(depth + share * h)}h${w}`;
  if (z !== undefined) {
    svg += `<path class="side" d="M0 ${depth}l${depth} ${-depth}h${w}l${-depth} ${depth}zM${w} ${depth}l${depth} ${-depth}v${h}l${-depth} ${depth}z"/>`;
    for (const share of x.borders) lines += `M${round(share * w)} ${depth}l${depth} ${-depth}`;
    for (const share of y.borders) lines += `M${w} ${round(depth + share * h)}l${depth} ${-depth}`;
    for (const share of z.borders) {
      const back = round(share * depth);
      lines += `M${back} ${round(depth - back)}h${w}v${h}`;
    }
  }
  return lines === "" ? svg : `${svg}<path class="line" d="${lines}"/>`;
}

function label(x: number, y: number, edge: Edge): Markup {
  return markup`<text x="${round(x)}" y="${round(y)}">${labelOf(edge)}</text>`;
}

function labelOf({ name, length }: Edge): string {
  return `${shortened(name, MAX_NAME_CHARS)} ${length}`;
}

function round(pixels: number): number {
  return Math.round(pixels * 10) / 10;
}
