import { ZpublishError } from "../errors.js";
import { stringifyJson } from "../json/stringify-json.js";
import { parseFillValue } from "../model/fill-value.js";
import { DEFAULT_COMPRESSOR, type ItemConversion } from "../zarr/codec-step.js";
import type { StoredArray, StoredFill } from "../zarr/stored-array.js";
import type { PartDescription } from "./describe-part.js";
import {
  differingScales,
  groupForms,
  type JoinedForm,
  joinForms,
  type PartArrays,
  type PartForm,
  type PartStored,
  packingOfStored,
  unitsError,
} from "./item-forms.js";
import { joinValues } from "./join-values.js";
import type { JoinScope, PartColumn, PartSteps } from "./order-parts.js";

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
interface JoinedColumn {
  readonly array: JoinedArray;
  /** Line for people, without the array's path; undefined if nothing was changed. */
  readonly warning?: string | undefined;
  /** Path of the bounds of times that were converted to other units; undefined if there are none. */
  readonly bounds?: string | undefined;
}

/** Joins the arrays of one path. @throws ZpublishError `invalid-metadata`, `unsupported`, naming two parts, if they cannot be one array */
export function joinColumn(
  column: PartColumn,
  parts: readonly PartDescription[],
  scope: JoinScope,
  dimension: string,
): JoinedColumn {
  const isAlong = column.arrays.some((array) => array?.dims.includes(dimension));
  if (!isAlong) return { array: arrayOfPart(assertEqualChunks(column), scope) };
  const { dims, axis, arrays } = membersOf(column, parts, scope, dimension);
  const stored = arrays.map((array) => array.stored);
  const values = arrays.flatMap((array) => array.values ?? []);
  const { names, weights } = scope;
  if (axis === 0 && values.length === arrays.length) {
    const joined = joinValues({ stored, values, names, weights }, dims);
    const bounds = joined.stored.attrs.bounds ?? joined.stored.attrs.climatology;
    const prefix = column.path.slice(0, column.path.length - column.name.length);
    return {
      array: { kind: "values", stored: joined.stored, values: joined.values },
      warning: joined.warning,
      bounds: joined.isRetimed && typeof bounds === "string" ? `${prefix}${bounds}` : undefined,
    };
  }
  assertEqualChunks(column);
  const joined = joinChunks({ stored, names, weights }, scope, axis, dims);
  return {
    array: { kind: "joined", stored: joined.stored, axis, spans: joined.spans },
    warning: joined.warning,
  };
}

/** Refuses arrays whose chunks are made of pieces already. Values of coordinates have been read. @throws ZpublishError `unsupported` */
function assertEqualChunks(column: PartColumn): PartColumn {
  if (column.arrays.every((array) => array?.stored.axes === undefined)) return column;
  const expected = "expected chunks of equal lengths in one of several files, received unequal ones";
  throw new ZpublishError("unsupported", expected);
}

/** Returns an array without the joined dimension: that of the first part that has it. */
function arrayOfPart({ arrays }: PartColumn, { present, order }: JoinScope): JoinedArray {
  const part = [...present, ...order].find((each) => arrays[each] !== undefined) as number;
  const { stored, dims } = arrays[part]!;
  return { kind: "part", part, stored: { ...stored, dimNames: dims } };
}

/** Returns the arrays of one path in the parts that have steps. @throws ZpublishError `invalid-metadata` if their dimensions differ */
function membersOf(
  { path, arrays: all }: PartColumn,
  parts: readonly PartDescription[],
  { present, lengths }: JoinScope,
  dimension: string,
) {
  const nameOf = (part: number) => parts[part]!.name;
  const first = present.find((part) => all[part] !== undefined);
  if (first === undefined) {
    throw invalid(`expected an array in a file with steps along '${dimension}', received none`);
  }
  const { dims } = all[first]!;
  const dimsError = (part: number) =>
    invalid(
      `expected dimensions [${dims.join(", ")}] in ${nameOf(part)}, as in ${nameOf(first)}, received [${all[part]?.dims.join(", ")}]`,
    );
  const axis = dims.indexOf(dimension);
  if (axis < 0) throw dimsError(all.findIndex((array) => array?.dims.includes(dimension)));
  const arrays = present.map((part) => {
    const array = all[part];
    if (array === undefined) throw missingError(path, parts[part]!, nameOf(first));
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

/**
 * Concatenates arrays along an axis.
 * @throws ZpublishError `invalid-metadata`, `unsupported`, naming two parts, if they cannot be one array
 */
function joinChunks(arrays: PartArrays, { steps }: JoinScope, axis: number, dims: readonly string[]) {
  const { forms, formOf, heaviest } = groupForms(arrays);
  const scales = differingScales(forms);
  const first = forms[0]!;
  if (scales !== undefined) {
    const odd = scales.findIndex(
      ({ unit, reference }) => unit !== scales[0]?.unit || reference !== scales[0]?.reference,
    );
    throw unitsError(first, forms[Math.max(odd, 1)]!);
  }
  const form = joinForms(forms, heaviest);
  const conversionOf = (index: number) => form.conversions[formOf[index]!];
  const grid = joinGrid(arrays, axis, (index) => conversionOf(index) === undefined);
  const { path } = first.stored;
  const spans = steps.map((run, member): PartSpan => {
    const conversion = conversionOf(member);
    return { ...run, path, isPassed: grid.isPassed[member]!, ...(conversion && { conversion }) };
  });
  if (form.dataType.kind === "O") assertAligned(spans, grid.chunkShape[axis]!, arrays.names);
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
  const first = arrays[0]!;
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
  const first = arrays[0]!;
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
function assertAligned(spans: readonly PartSpan[], chunkLength: number, names: readonly string[]): void {
  const odd = spans.findIndex(({ start, length, isPassed }, index) => {
    const isWhole = index === spans.length - 1 || length % chunkLength === 0;
    return !isPassed || start % chunkLength !== 0 || !isWhole;
  });
  if (odd < 0) return;
  throw new ZpublishError(
    "unsupported",
    `expected items without a fixed size in whole chunks of ${chunkLength} steps and equal codecs, received ${spans[odd]!.length} steps in ${names[odd]}`,
  );
}

function warningOf(forms: readonly PartForm[], { change }: JoinedForm, formOf: readonly number[]): string {
  const count = formOf.filter((form) => form !== 0).length;
  const [first, odd] = [forms[0]!, forms[1]!];
  return `${change}: ${count} of ${formOf.length} files are stored otherwise than ${first.name}, the first of them ${odd.name}`;
}

/** Grid and codecs of a joined array. */
interface JoinedGrid {
  /** The array whose codecs the joined one has; undefined if items of all are converted, so that no chunk is passed through. */
  readonly model: PartStored | undefined;
  readonly chunkShape: readonly number[];
  readonly axisOrder: readonly number[];
  /** Whether chunks of an array may be those of the joined one as they are: one per array. */
  readonly isPassed: readonly boolean[];
}

/**
 * Chooses the grid of a joined array. Chunk shape along the other axes, axis order and codecs are those that most steps have, among the
 * arrays whose items are not converted.
 * The chunk length along the joined axis is the one that most steps of these have. For an array that is shorter than its only chunk, it
 * is the length of the array: that chunk decodes to more than the array has, and cannot be passed through.
 */
function joinGrid(
  { stored, weights }: PartArrays,
  axis: number,
  isPlain: (index: number) => boolean,
): JoinedGrid {
  const keys = layoutKeys(stored, axis);
  const hasPlain = stored.some((_, index) => isPlain(index));
  const isCandidate = (index: number) => !hasPlain || isPlain(index);
  const layout = heaviest(weights, (index) => (isCandidate(index) ? keys[index] : undefined));
  const model = stored[keys.indexOf(layout)]!;
  const length = heaviest(weights, (index) =>
    isCandidate(index) && keys[index] === layout ? effectiveLength(stored[index]!, axis) : undefined,
  );
  return {
    model: hasPlain ? model : undefined,
    chunkShape: model.chunkShape.with(axis, length),
    axisOrder: model.axisOrder,
    isPassed: stored.map(
      ({ chunkShape }, index) =>
        chunkShape[axis] === length && keys[index] === layout && hasPlain && isPlain(index),
    ),
  };
}

function effectiveLength({ shape, chunkShape }: PartStored, axis: number): number {
  return Math.max(1, Math.min(shape[axis]!, chunkShape[axis]!));
}

/** Returns the value of the greatest weight; the first of several. At least one value is not undefined. */
function heaviest<T>(weights: readonly number[], readValue: (index: number) => T | undefined): T {
  const sums = new Map<T, number>();
  weights.forEach((weight, index) => {
    const value = readValue(index);
    if (value !== undefined) sums.set(value, (sums.get(value) ?? 0) + weight);
  });
  return [...sums].reduce((best, each) => (each[1] > best[1] ? each : best))[0];
}

/** Returns a text for each array, which is equal if their chunks are alike but for their length along an axis. */
function layoutKeys(arrays: readonly PartStored[], axis: number): string[] {
  let last: { readonly stored: PartStored; readonly key: string } | undefined;
  return arrays.map((stored) => {
    // Arrays of most parts are one object.
    if (last?.stored === stored) return last.key;
    const { chunkShape, axisOrder, codecs, compressorCount, fill, dataType } = stored;
    const others = chunkShape.toSpliced(axis, 1);
    // An item of zero bytes is the same as none.
    const item = fill.item?.some((byte) => byte !== 0) ? Buffer.from(fill.item).toString("base64") : null;
    const layout = [others, axisOrder, codecs, dataType.zarr, fill.served, item, compressorCount];
    last = { stored, key: stringifyJson(layout) };
    return last.key;
  });
}
