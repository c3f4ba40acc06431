import type { ServedArray } from "../dataset/dataset.js";
import { elementCount, gridShapeOf, type Variable } from "../model/data-tree.js";
import { renderAttributes } from "./attribute-list.js";
import { renderChunkDiagram } from "./chunk-diagram.js";
import { formatCodec, formatFillValue } from "./format-json.js";
import { formatByteLength, formatCount, formatCounted } from "./format-number.js";
import { type Markup, markup } from "./markup.js";
import type { PageBudget } from "./page-budget.js";
import type { PreviewValues } from "./preview/preview.js";

/** Returns the uncompressed bytes of a variable; undefined if items have no fixed size. */
export function variableByteLength(variable: Variable): number | undefined {
  const { itemSize, kind } = variable.dataType;
  return kind === "O" ? undefined : elementCount(variable.shape) * itemSize;
}

/** Tells whether a coordinate indexes its dimension: its only dimension has its name. */
export function isIndexCoordinate(variable: Variable): boolean {
  return variable.dims.length === 1 && variable.dims[0] === variable.name;
}

/** Content of a row. */
export interface VariableRow {
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
  const { variable, preview, picture } = row;
  const cells = rowCells(variable, preview);
  if (budget.detailedVariables <= 0) return markup`<li>${picture}<div class="row">${cells}</div></li>`;
  budget.detailedVariables--;
  return markup`<li>${picture}<details><summary class="row">${cells}</summary><div class="more">${renderDetails(row, budget)}</div></details></li>
`;
}

function rowCells(variable: Variable, preview: PreviewValues | undefined): Markup {
  const name = isIndexCoordinate(variable)
    ? markup`<b class="name">${variable.name}</b>`
    : markup`<span class="name">${variable.name}</span>`;
  const byteLength = variableByteLength(variable);
  const values =
    preview === undefined
      ? markup`<span class="values muted" dir="auto"><span class="label">${describe(variable)}</span> <span class="layout" dir="ltr">${layoutOf(variable)}</span></span>`
      : markup`<span class="values mono" dir="auto">${formatPreview(preview).map((value) => markup`<span class="v">${value}</span> `)}</span>`;
  return markup`${name}<span class="dims">(${variable.dims.join(", ")})</span><span class="type">${variable.dataType.numpyStr}</span>${values}<span class="size">${byteLength === undefined ? "" : formatByteLength(byteLength)}</span>`;
}

/** Formats shape and chunks: `2,920 × 25 × 53 in chunks of 100 × 25 × 53`. */
function layoutOf({ shape, chunkShape }: Variable): string {
  if (shape.length === 0) return "scalar";
  const isWhole = shape.every((length, axis) => length <= (chunkShape[axis] as number));
  return isWhole ? `${timesOf(shape)} in one chunk` : `${timesOf(shape)} in chunks of ${timesOf(chunkShape)}`;
}

/** Describes a variable by its attributes: `Air temperature [K]`. */
function describe({ attrs }: Variable): string {
  const label = [attrs.long_name, attrs.standard_name, attrs.description, attrs.title].find(
    (value) => typeof value === "string" && value !== "",
  ) as string | undefined;
  const units = typeof attrs.units === "string" && attrs.units !== "" ? `[${attrs.units}]` : "";
  const text = `${label ?? ""} ${units}`.trim();
  return text.length <= 200 ? text : `${text.slice(0, 200)}…`;
}

const MIDNIGHT = /T00:00:00(?:\.0+)?$/;
const EMPTY_FRACTION = /(T\d\d:\d\d:\d\d)\.0+$/;

/** Characters of first values that a row has room for. */
const PREVIEW_CHARS = 48;

/**
 * Formats as many first and last values as fit into a row: `75.0 72.5 70.0 … 17.5 15.0`. Times are shown as days if all are
 * midnight, and without fractions of seconds that are zero.
 */
export function formatPreview({ first, last }: PreviewValues): readonly string[] {
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

function renderDetails({ variable, array, code }: VariableRow, budget: PageBudget): Markup {
  const { shape, chunkShape, dims } = variable;
  const attributes =
    Object.keys(variable.attrs).length === 0
      ? markup`<p class="muted">No attributes</p>`
      : renderAttributes(variable.attrs, budget);
  const diagram = renderChunkDiagram(dims, shape, chunkShape);
  return markup`<div class="wide"><h4>Attributes</h4>${attributes}</div><div class="wide"><h4>Storage</h4><dl>${storageFacts(
    variable,
    array,
  ).map(
    ([term, fact]) => markup`<div><dt>${term}</dt><dd>${fact}</dd></div>`,
  )}</dl></div>${diagram.html !== "" && markup`<figure>${diagram}${shape.length > 3 && markup`<figcaption>last three of ${shape.length} dimensions</figcaption>`}</figure>`}${code()}`;
}

const DELIVERY = {
  passthrough: "as stored",
  files: "as stored",
  recompress: "recompressed on the way out",
  rechunk: "rechunked on the way out",
} as const;

function storageFacts(variable: Variable, array: ServedArray | undefined): [string, string][] {
  const { shape, chunkShape, dataType } = variable;
  const byteLength = variableByteLength(variable);
  const chunkCount = elementCount(gridShapeOf(shape, chunkShape));
  const chunkBytes = dataType.kind === "O" ? undefined : elementCount(chunkShape) * dataType.itemSize;
  const facts: [string, string][] = [
    [
      "Type",
      dataType.numpyStr === dataType.numpyName
        ? dataType.numpyStr
        : `${dataType.numpyStr} (${dataType.numpyName})`,
    ],
    ["Shape", shape.length === 0 ? "scalar" : timesOf(shape)],
    [
      "Size",
      byteLength === undefined ? formatCounted(elementCount(shape), "item") : formatByteLength(byteLength),
    ],
    [
      "Chunks",
      `${formatCount(chunkCount)}${shape.length === 0 ? "" : ` of ${timesOf(chunkShape)}`}${chunkBytes === undefined ? "" : `, ${formatByteLength(chunkBytes)}${chunkCount > 1 ? " each" : ""}`}`,
    ],
  ];
  if (array === undefined) return facts;
  const { compressor, filters, fill_value, order } = array.document;
  facts.push(["Compressor", compressor === null ? "none" : formatCodec(compressor)]);
  if (filters !== null && filters.length > 0) facts.push(["Filters", filters.map(formatCodec).join(", ")]);
  facts.push(["Fill value", formatFillValue(fill_value)]);
  if (order === "F" && shape.length > 1) facts.push(["Order", "F (first axis fastest)"]);
  facts.push(["Served", deliveryOf(array.plan)]);
  return facts;
}

/** Says how chunks are served. */
function deliveryOf({ kind, source, stored }: ServedArray["plan"]): string {
  if (kind === "rechunk") return `${DELIVERY.rechunk}, stored as ${timesOf(stored.chunkShape)}`;
  if (kind === "passthrough" && source.kind === "parts" && source.axis >= 0)
    return `${DELIVERY.passthrough}, or put together from chunks of several files`;
  if (kind !== "passthrough" || source.kind !== "ranges") return DELIVERY[kind];
  if (source.form === "made") return "put together on the way out";
  return source.differing === 0
    ? DELIVERY.passthrough
    : `${DELIVERY.passthrough}, ${formatCount(source.differing)} of ${formatCount(elementCount(stored.gridShape))} chunks recompressed`;
}

function timesOf(shape: readonly number[]): string {
  return shape.map(formatCount).join(" × ");
}
