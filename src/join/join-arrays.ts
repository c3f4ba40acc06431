import { ZpublishError } from "../errors.js";
import { stringifyJson } from "../json/stringify-json.js";
import { parseFillValue } from "../model/fill-value.js";
import { type CodecSpec, DEFAULT_COMPRESSOR, type ItemConversion } from "../zarr/codec-step.js";
import type { StoredArray, StoredFill } from "../zarr/stored-array.js";
import type { PartArray, PartDescription } from "./describe-part.js";
import {
  differingScales,
  groupForms,
  isSameJson,
  type JoinedForm,
  joinForms,
  type PartArrays,
  type PartForm,
  type PartStored,
  packingOfStored,
  unitsError,
} from "./item-forms.js";
import { joinValues } from "./join-values.js";
import type { JoinScope, JoinScopes, PartColumn, PartSteps } from "./order-parts.js";

/** An array of a {@link JoinedTree}: its shape, type and attributes as they are served. */
export type JoinedArray = {
  readonly stored: Omit<StoredArray, "chunks">;
} & (
  | {
      /** A coordinate of all parts, which is served from memory. */
      readonly kind: "values";
      /** Items in C order, in the type of `stored`. */
      readonly values: Uint8Array;
    }
  | {
      /** An array without the joined dimension: that of one part, as it is. */
      readonly kind: "part";
      readonly part: number;
    }
  | {
      /** An array along the joined dimension. `stored` has the grid of chunks as it is served if nothing else is asked. */
      readonly kind: "joined";
      /** The joined axis. */
      readonly axis: number;
      /** In order, without gaps: one per run of steps of a part. */
      readonly spans: readonly PartSpan[];
    }
);

/** A run of steps of one part in a joined array. */
export interface PartSpan extends PartSteps {
  /** Path of the array in the part. */
  readonly path: string;
  /** Whether a chunk of the joined grid that is one chunk of the part may be passed through: type, fill, order, codecs and chunk shape are equal. */
  readonly isPassed: boolean;
  /** Change of the part's items to those of the joined array. Default: they are the same. */
  readonly conversion?: ItemConversion;
}

/** One array of the joined tree. */
export interface JoinedColumn {
  readonly array: JoinedArray;
  /** Line for people, without the array's path; undefined if nothing was changed. */
  readonly warning?: string | undefined;
  /** Path of the bounds of times that were converted to other units; undefined if there are none. */
  readonly bounds?: string | undefined;
}

/**
 * Joins the arrays of one path.
 * @throws ZpublishError `invalid-metadata`, `unsupported`, naming two parts, if they cannot be one array
 */
export function joinColumn(
  column: PartColumn,
  parts: readonly PartDescription[],
  scopes: JoinScopes,
  dimension: string,
): JoinedColumn {
  const isAlong = column.arrays.some((array) => array?.dims.includes(dimension));
  const scope = isAlong ? scopes.scopeOf(column.group) : undefined;
  if (scope === undefined) return { array: arrayOfPart(column, scopes.main) };
  if (typeof scope === "string") throw new ZpublishError("invalid-metadata", scope);
  const { dims, axis, arrays } = membersOf(column, parts, scope, dimension);
  const stored = arrays.map((array) => array.stored);
  const values = arrays.flatMap((array) => array.values ?? []);
  const { names, weights } = scope;
  if (axis === 0 && values.length === arrays.length) {
    const joined = joinValues({ stored, values, names, weights }, scope, dims);
    const bounds = joined.stored.attrs.bounds ?? joined.stored.attrs.climatology;
    const prefix = column.path.slice(0, column.path.length - column.name.length);
    return {
      array: { kind: "values", stored: joined.stored, values: joined.values },
      warning: joined.warning,
      bounds: joined.isRetimed && typeof bounds === "string" ? `${prefix}${bounds}` : undefined,
    };
  }
  const joined = joinChunks({ stored, names, weights }, scope, axis, dims);
  return {
    array: { kind: "joined", stored: joined.stored, axis, spans: joined.spans },
    warning: joined.warning,
  };
}

/** Returns an array without the joined dimension: that of the first part that has it. */
function arrayOfPart({ arrays }: PartColumn, { present, order }: JoinScope): JoinedArray {
  const part = [...present, ...order].find((each) => arrays[each] !== undefined) as number;
  const { stored, dims } = arrays[part] as PartArray;
  return { kind: "part", part, stored: { ...stored, dimNames: dims } };
}

/** The arrays of one path in the parts that have steps, with equal dimensions. */
interface Members {
  readonly dims: readonly string[];
  readonly axis: number;
  readonly arrays: readonly PartArray[];
}

function membersOf(
  { path, arrays: all }: PartColumn,
  parts: readonly PartDescription[],
  { present, lengths }: JoinScope,
  dimension: string,
): Members {
  const nameOf = (part: number) => (parts[part] as PartDescription).name;
  const first = present.find((part) => all[part] !== undefined);
  if (first === undefined) {
    throw invalid(`expected an array in a file with steps along '${dimension}', received none`);
  }
  const { dims } = all[first] as PartArray;
  const dimsError = (part: number) =>
    invalid(
      `expected dimensions [${dims.join(", ")}] in ${nameOf(part)}, as in ${nameOf(first)}, received [${all[part]?.dims.join(", ")}]`,
    );
  const axis = dims.indexOf(dimension);
  if (axis < 0) throw dimsError(all.findIndex((array) => array?.dims.includes(dimension)));
  const arrays = present.map((part) => {
    const array = all[part];
    if (array === undefined) throw missingError(path, parts[part] as PartDescription, nameOf(first));
    if (array.dims.length !== dims.length || array.dims.some((dim, index) => dim !== dims[index])) {
      throw dimsError(part);
    }
    if (array.stored.shape[axis] === lengths[part]) return array;
    throw invalid(
      `expected ${lengths[part]} steps along '${dimension}' in ${nameOf(part)}, as its other arrays have, received ${array.stored.shape[axis]}`,
    );
  });
  return { dims, axis, arrays };
}

function missingError(path: string, { refused, name }: PartDescription, other: string): ZpublishError {
  const refusal = refused.find((each) => path === each.path || path.startsWith(`${each.path}/`));
  if (refusal !== undefined) return invalid(`${name}: ${refusal.reason}`);
  return invalid(`expected an array in ${name}, as in ${other}, received none`);
}

function invalid(message: string): ZpublishError {
  return new ZpublishError("invalid-metadata", message);
}

/** An array along the joined dimension, whose chunks lie in the parts. */
export interface JoinedChunks {
  readonly stored: Omit<StoredArray, "chunks">;
  readonly spans: readonly PartSpan[];
  /** Line for people, without the array's path; undefined if nothing was changed. */
  readonly warning: string | undefined;
}

/**
 * Puts arrays one behind the other along an axis.
 * @throws ZpublishError `invalid-metadata`, `unsupported`, naming two parts, if they cannot be one array
 */
export function joinChunks(
  arrays: PartArrays,
  { steps, presentOf }: JoinScope,
  axis: number,
  dims: readonly string[],
): JoinedChunks {
  const { forms, formOf, heaviest } = groupForms(arrays);
  const scales = differingScales(forms);
  const first = forms[0] as PartForm;
  if (scales !== undefined) {
    const odd = scales.findIndex(
      ({ unit, reference }) => unit !== scales[0]?.unit || reference !== scales[0]?.reference,
    );
    throw unitsError(first, forms[Math.max(odd, 1)] as PartForm);
  }
  const form = joinForms(forms, heaviest);
  const conversionOf = (index: number) => form.conversions[formOf[index] as number];
  const grid = joinGrid(arrays, axis, (index) => conversionOf(index) === undefined);
  const { path } = first.stored;
  const spans = steps.map(({ part, start, length, from }, index): PartSpan => {
    const at = presentOf[index] as number;
    const conversion = conversionOf(at);
    const isPassed = grid.isPassed[at] as boolean;
    if (conversion === undefined) return { part, start, length, from, path, isPassed };
    return { part, start, length, from, path, isPassed, conversion };
  });
  const nameOf = (run: number) => arrays.names[presentOf[run] as number] as string;
  if (form.dataType.kind === "O") assertAligned(spans, grid.chunkShape[axis] as number, nameOf);
  const total = steps.reduce((sum, { length }) => sum + length, 0);
  const stored = storedOf(arrays.stored, form, grid, dims);
  const shape = stored.shape.map((length, index) => (index === axis ? total : length));
  const warning = form.change === undefined ? undefined : warningOf(forms, form, formOf);
  return { stored: { ...stored, shape }, spans, warning };
}

function storedOf(
  arrays: readonly PartStored[],
  form: JoinedForm,
  { model, chunkShape, axisOrder }: JoinedGrid,
  dims: readonly string[],
): Omit<StoredArray, "chunks"> {
  const first = arrays[0] as PartStored;
  const codecs =
    model === undefined
      ? { codecs: [], compressorCount: 0 as const, servedCompressor: DEFAULT_COMPRESSOR }
      : {
          codecs: model.codecs,
          compressorCount: model.compressorCount,
          ...(model.servedFilters && { servedFilters: model.servedFilters }),
          ...(model.servedCompressor !== undefined && { servedCompressor: model.servedCompressor }),
        };
  return {
    ...{ name: first.name, path: first.path, shape: first.shape },
    ...{ chunkShape, dataType: form.dataType, axisOrder, dimNames: dims, attrs: form.attrs },
    ...codecs,
    // Chunks that are made of pieces are decoded already.
    variants: [[]],
    fill: form.fill ?? commonFill(arrays, form, model ?? first),
  };
}

/**
 * Returns the fill value of the array whose chunks are passed through, unless values that mean "missing" would get lost with it. Absent
 * chunks are filled by the server as soon as those of one part have to be.
 */
function commonFill(arrays: readonly PartStored[], { dataType }: JoinedForm, model: PartStored): StoredFill {
  const first = arrays[0] as PartStored;
  const expected = packingOfStored(first).missing;
  const { missing } = packingOfStored({ ...model, attrs: first.attrs });
  const keeps = expected.length === missing.length && expected.every((value) => missing.includes(value));
  const { fill } = keeps ? model : first;
  const isOther = !keeps && first.dataType.zarr !== dataType.zarr;
  const item = isOther ? parseFillValue(fill.served, dataType).item : fill.item;
  const absentIsServed = arrays.every(({ fill: each }) => each.absentIsServed);
  return { served: fill.served, item, absentIsServed };
}

/** Items without a fixed size are never taken apart: every chunk has to be one of a part. */
function assertAligned(
  spans: readonly PartSpan[],
  chunkLength: number,
  nameOf: (run: number) => string,
): void {
  const odd = spans.findIndex(({ start, from, length, isPassed }, index) => {
    const isWhole = index === spans.length - 1 || length % chunkLength === 0;
    return !isPassed || start % chunkLength !== 0 || from % chunkLength !== 0 || !isWhole;
  });
  if (odd < 0) return;
  throw new ZpublishError(
    "unsupported",
    `expected items without a fixed size in whole chunks of ${chunkLength} steps and equal codecs, received ${spans[odd]?.length} steps in ${nameOf(odd)}`,
  );
}

function warningOf(forms: readonly PartForm[], { change }: JoinedForm, formOf: readonly number[]): string {
  const count = formOf.filter((form) => form !== 0).length;
  const [first, odd] = [forms[0] as PartForm, forms[1] as PartForm];
  return `${change}: ${count} of ${formOf.length} files are stored otherwise than ${first.name}, the first of them ${odd.name}`;
}

/** Grid and codecs of a joined array. */
export interface JoinedGrid {
  /** The array whose codecs the joined one has; undefined if items of all are converted, so that no chunk is passed through. */
  readonly model: PartStored | undefined;
  readonly chunkShape: readonly number[];
  readonly axisOrder: readonly number[];
  /** Whether chunks of an array may be those of the joined one as they are: one per array. */
  readonly isPassed: readonly boolean[];
}

/**
 * Chooses the grid of a joined array.
 *
 * Chunk shape along the other axes, axis order and codecs are those that most steps have, among the arrays whose items are not converted.
 * The chunk length along the joined axis is the one that most steps of these have. For an array that is shorter than its only chunk, it
 * is the length of the array: that chunk decodes to more than the array has, and cannot be passed through.
 * @param isPlain Tells whether items of an array stay as they are.
 */
export function joinGrid(
  { stored, weights }: PartArrays,
  axis: number,
  isPlain: (index: number) => boolean,
): JoinedGrid {
  const { layouts, layoutOf } = groupLayouts(stored, axis);
  const hasPlain = stored.some((_, index) => isPlain(index));
  const isCandidate = (index: number) => !hasPlain || isPlain(index);
  const layout = heaviest(weights, (index) => (isCandidate(index) ? layoutOf[index] : undefined));
  const model = layouts[layout] as PartStored;
  const length = heaviest(weights, (index) =>
    isCandidate(index) && layoutOf[index] === layout
      ? effectiveLength(stored[index] as PartStored, axis)
      : undefined,
  );
  return {
    model: hasPlain ? model : undefined,
    chunkShape: model.chunkShape.map((each, index) => (index === axis ? length : each)),
    axisOrder: model.axisOrder,
    isPassed: stored.map(
      ({ chunkShape }, index) =>
        chunkShape[axis] === length && layoutOf[index] === layout && hasPlain && isPlain(index),
    ),
  };
}

function effectiveLength({ shape, chunkShape }: PartStored, axis: number): number {
  return Math.max(1, Math.min(shape[axis] as number, chunkShape[axis] as number));
}

/** Returns the value of the greatest weight; the first of several. Values that are undefined do not count. */
function heaviest(weights: readonly number[], readValue: (index: number) => number | undefined): number {
  const sums = new Map<number, number>();
  weights.forEach((weight, index) => {
    const value = readValue(index);
    if (value !== undefined) sums.set(value, (sums.get(value) ?? 0) + weight);
  });
  let best = 0;
  let most = -1;
  for (const [value, sum] of sums) if (sum > most) [best, most] = [value, sum];
  return best;
}

/** Groups arrays whose chunks are alike, but for their length along an axis. */
function groupLayouts(stored: readonly PartStored[], axis: number) {
  const layouts: PartStored[] = [];
  const byText = new Map<string, number>();
  let last = -1;
  const layoutOf = stored.map((array) => {
    // Most parts are as the one before, which is quicker to tell than to make a text.
    if (last >= 0 && isAlike(layouts[last] as PartStored, array, axis)) return last;
    const text = textOf(array, axis);
    const layout = byText.get(text) ?? layouts.push(array) - 1;
    byText.set(text, layout);
    last = layout;
    return layout;
  });
  return { layouts, layoutOf };
}

function isAlike(a: PartStored, b: PartStored, axis: number): boolean {
  if (a === b) return true;
  return (
    (a.dataType === b.dataType || isSameJson(a.dataType.zarr, b.dataType.zarr)) &&
    a.compressorCount === b.compressorCount &&
    a.chunkShape.length === b.chunkShape.length &&
    a.chunkShape.every((length, index) => index === axis || length === b.chunkShape[index]) &&
    a.axisOrder.every((each, index) => each === b.axisOrder[index]) &&
    isSameFill(a.fill, b.fill) &&
    isSameCodecs(a.codecs, b.codecs)
  );
}

function isSameFill(a: PartStored["fill"], b: PartStored["fill"]): boolean {
  if (a === b) return true;
  if (!isSameJson(a.served, b.served)) return false;
  return a.item !== null && b.item !== null && Buffer.compare(a.item, b.item) === 0;
}

function isSameCodecs(a: readonly CodecSpec[], b: readonly CodecSpec[]): boolean {
  if (a === b) return true;
  return a.length === b.length && a.every((codec, index) => isSameJson(codec, b[index]));
}

function textOf(stored: PartStored, axis: number): string {
  const { chunkShape, axisOrder, codecs, compressorCount, fill, dataType } = stored;
  const others = chunkShape.filter((_, index) => index !== axis);
  // An item of zero bytes is the same as none.
  const item = fill.item?.some((byte) => byte !== 0) ? Buffer.from(fill.item).toString("base64") : null;
  return stringifyJson([others, axisOrder, codecs, dataType.zarr, fill.served, item, compressorCount]);
}
