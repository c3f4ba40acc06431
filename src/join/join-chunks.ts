import { ZpublishError } from "../errors.js";
import { parseFillValue } from "../model/fill-value.js";
import { DEFAULT_COMPRESSOR } from "../zarr/codec-step.js";
import type { StoredArray, StoredFill } from "../zarr/stored-array.js";
import { type JoinedGrid, joinGrid } from "./join-grid.js";
import { type JoinedForm, joinForms } from "./join-packing.js";
import type { JoinScope } from "./join-scopes.js";
import type { PartSpan } from "./joined-tree.js";
import { differingScales, groupForms, type PartArrays, type PartForm, unitsError } from "./part-forms.js";
import { type PartStored, packingOfStored } from "./stored-form.js";

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
