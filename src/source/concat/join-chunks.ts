import { ZpublishError } from "../../errors.js";
import { parseFillValue } from "../../model/fill-value.js";
import { DEFAULT_COMPRESSOR } from "../../zarr/codec-spec.js";
import type { StoredArray, StoredFill } from "../../zarr/stored-array.js";
import { type GridMember, type JoinedGrid, joinGrid } from "./join-grid.js";
import { type JoinedForm, joinForms } from "./join-packing.js";
import type { PartSpan, PartSteps } from "./joined-tree.js";
import { differingScales, type FormMember, groupForms, type PartForm, unitsError } from "./part-forms.js";
import { type PartStored, packingOfStored } from "./stored-form.js";

/** An array of one part that has the joined axis. */
export interface ChunksMember extends FormMember {
  readonly part: number;
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
 * @param members One per part that has steps, in order.
 * @param steps Runs of steps of these parts.
 * @throws ZpublishError `invalid-metadata`, `unsupported`, naming two parts, if they cannot be one array
 */
export function joinChunks(
  members: readonly ChunksMember[],
  steps: readonly PartSteps[],
  axis: number,
  dims: readonly string[],
): JoinedChunks {
  const { forms, formOf, heaviest } = groupForms(members);
  const scales = differingScales(forms);
  const first = forms[0] as PartForm;
  if (scales !== undefined) {
    const odd = scales.findIndex(
      ({ unit, reference }) => unit !== scales[0]?.unit || reference !== scales[0]?.reference,
    );
    throw unitsError(first, forms[Math.max(odd, 1)] as PartForm);
  }
  const form = joinForms(forms, heaviest);
  const gridMembers = members.map(
    ({ stored, weight }, index): GridMember => ({
      ...{ stored, weight },
      conversion: form.conversions[formOf[index] as number],
    }),
  );
  const grid = joinGrid(gridMembers, axis);
  const memberOf = new Map(members.map(({ part }, index) => [part, index]));
  const spans = steps.map((run): PartSpan => {
    const member = gridMembers[memberOf.get(run.part) as number] as GridMember;
    const { stored, conversion } = member;
    const isPassed = grid.isPassed(member);
    return { ...run, path: stored.path, isPassed, ...(conversion && { conversion }) };
  });
  const total = steps.reduce((sum, { length }) => sum + length, 0);
  if (form.dataType.kind === "O") assertAligned(spans, grid.chunkShape[axis] as number, members);
  const stored = storedOf(members, form, grid, dims);
  const shape = stored.shape.map((length, index) => (index === axis ? total : length));
  const warning = form.change === undefined ? undefined : warningOf(members, forms, form, formOf);
  return { stored: { ...stored, shape }, spans, warning };
}

function storedOf(
  members: readonly ChunksMember[],
  form: JoinedForm,
  { model, chunkShape, axisOrder }: JoinedGrid,
  dims: readonly string[],
): Omit<StoredArray, "chunks"> {
  const { stored: first } = members[0] as ChunksMember;
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
    fill: form.fill ?? commonFill(members, form, model ?? first),
  };
}

/**
 * Returns the fill value of the array whose chunks are passed through, unless values that mean "missing" would get lost with it. Absent
 * chunks are filled by the server as soon as those of one part have to be.
 */
function commonFill(
  members: readonly ChunksMember[],
  { dataType }: JoinedForm,
  model: PartStored,
): StoredFill {
  const { stored: first } = members[0] as ChunksMember;
  const expected = packingOfStored(first).missing;
  const { missing } = packingOfStored({ ...model, attrs: first.attrs });
  const keeps = expected.length === missing.length && expected.every((value) => missing.includes(value));
  const { fill } = keeps ? model : first;
  const isOther = !keeps && first.dataType.zarr !== dataType.zarr;
  const item = isOther ? parseFillValue(fill.served, dataType).item : fill.item;
  const absentIsServed = members.every(({ stored }) => stored.fill.absentIsServed);
  return { served: fill.served, item, absentIsServed };
}

/** Items without a fixed size are never taken apart: every chunk has to be one of a part. */
function assertAligned(
  spans: readonly PartSpan[],
  chunkLength: number,
  members: readonly ChunksMember[],
): void {
  const odd = spans.find(({ start, from, length, isPassed }, index) => {
    const isWhole = index === spans.length - 1 || length % chunkLength === 0;
    return !isPassed || start % chunkLength !== 0 || from % chunkLength !== 0 || !isWhole;
  });
  if (odd === undefined) return;
  const name = members.find(({ part }) => part === odd.part)?.name;
  throw new ZpublishError(
    "unsupported",
    `expected items without a fixed size in whole chunks of ${chunkLength} steps and equal codecs, received ${odd.length} steps in ${name}`,
  );
}

function warningOf(
  members: readonly ChunksMember[],
  forms: readonly PartForm[],
  { change }: JoinedForm,
  formOf: readonly number[],
): string {
  const count = formOf.filter((form) => form !== 0).length;
  const [first, odd] = [forms[0] as PartForm, forms[1] as PartForm];
  return `${change}: ${count} of ${members.length} files are packed otherwise than ${first.name}, the first of them ${odd.name}`;
}
