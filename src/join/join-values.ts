import type { CfTimeScale } from "../cf/cf-time.js";
import type { JsonObject } from "../json/json-value.js";
import { type DataType, parseDataType } from "../model/data-type.js";
import { parseFillValue } from "../model/fill-value.js";
import { DEFAULT_COMPRESSOR, type ItemConversion } from "../zarr/codec-step.js";
import type { StoredArray, StoredFill } from "../zarr/stored-array.js";
import { joinForms } from "./join-packing.js";
import type { JoinScope } from "./join-scopes.js";
import { joinTimes } from "./join-times.js";
import {
  differingScales,
  formError,
  groupForms,
  type PartArrays,
  type PartForm,
  type PartForms,
} from "./part-forms.js";
import { type Item, type Items, readItems, writeItems } from "./part-items.js";
import { type PartStored, packingOfStored } from "./stored-form.js";

/** A coordinate in the parts that have steps, with the joined axis in front. */
export interface PartValues extends PartArrays {
  readonly values: readonly Uint8Array[];
}

/** A coordinate of all parts. */
export interface JoinedValues {
  readonly stored: Omit<StoredArray, "chunks">;
  readonly values: Uint8Array;
  /** True if numbers are counted from another time, or in another unit, than in some parts. */
  readonly isRetimed: boolean;
  /** Line for people, without the array's path; undefined if nothing was changed. */
  readonly warning: string | undefined;
}

/**
 * Bytes of a served chunk. It does not depend on the length of the coordinate: clients with older metadata can read the chunks of a
 * dataset that has grown.
 */
const CHUNK_BYTES = 128 * 1024;

/**
 * Puts the values of a coordinate in a row.
 * @param dims Names of the axes, the joined one first.
 * @throws ZpublishError `invalid-metadata`, naming two parts, if their values cannot be in one array
 */
export function joinValues(
  arrays: PartValues,
  { steps, presentOf }: JoinScope,
  dims: readonly string[],
): JoinedValues {
  const grouped = groupForms(arrays);
  const scales = differingScales(grouped.forms);
  const joined = scales === undefined ? undefined : retime(arrays, grouped, scales);
  const { dataType, attrs, fill, items, change } = joined ?? bringTogether(arrays, grouped);
  const first = arrays.stored[0] as PartStored;
  const others = first.shape.slice(1);
  const stride = others.reduce((product, length) => product * length, 1);
  const total = steps.reduce((sum, { length }) => sum + length, 0);
  const ranges = steps.map(({ from, length }, run) => ({
    member: presentOf[run] as number,
    begin: from * stride,
    end: (from + length) * stride,
  }));
  const values =
    items === undefined
      ? concatBytes(arrays.values, ranges, dataType.itemSize)
      : writeItems(
          ranges.flatMap(({ member, begin, end }) => Array.from(items(member).slice(begin, end) as Item[])),
          dataType,
        );
  const shape = [total, ...others];
  const stored = {
    name: first.name,
    path: first.path,
    shape,
    chunkShape: shape.map((length) => Math.max(1, length)),
    dataType,
    axisOrder: shape.map((_, axis) => axis),
    codecs: [],
    compressorCount: 0 as const,
    fill: { ...fill, absentIsServed: true },
    dimNames: dims,
    attrs,
    servedChunks: [Math.max(1, Math.floor(CHUNK_BYTES / Math.max(1, stride * dataType.itemSize))), ...others],
    servedCompressor: dataType.itemSize === 0 ? null : DEFAULT_COMPRESSOR,
  };
  return { stored, values, isRetimed: joined?.change !== undefined, warning: change };
}

/** Values of all members in one type; `items` is undefined if they are that as they are stored. */
interface Together {
  readonly dataType: DataType;
  readonly attrs: JsonObject;
  readonly fill: StoredFill;
  readonly items: ((member: number) => Items | readonly Item[]) | undefined;
  readonly change: string | undefined;
}

function retime(arrays: PartValues, { forms, formOf }: PartForms, scales: readonly CfTimeScale[]): Together {
  const first = arrays.stored[0] as PartStored;
  const times = arrays.stored.map((stored, index) => ({
    name: arrays.names[index] as string,
    units: String(stored.attrs.units),
    scale: scales[formOf[index] as number] as CfTimeScale,
    items: readItems(arrays.values[index] as Uint8Array, stored.dataType),
    missing: packingOfStored(stored).missing,
  }));
  const { items, units, dataType } = joinTimes(times, first.dataType);
  const fill = parseFillValue(first.fill.served, dataType);
  const odd = forms.find(({ stored }) => stored.attrs.units !== units);
  const count = arrays.stored.filter(({ attrs }) => attrs.units !== units).length;
  return {
    dataType,
    attrs: { ...first.attrs, units },
    fill: { served: fill.json, item: fill.item, absentIsServed: true },
    items: (member) => items[member] as readonly Item[],
    change:
      odd &&
      `times of ${count} of ${arrays.stored.length} files are converted to '${units}', the first of ${odd.name}, which has '${odd.stored.attrs.units}'`,
  };
}

function bringTogether(arrays: PartValues, { forms, formOf, heaviest }: PartForms): Together {
  const { stored: first } = forms[0] as PartForm;
  const { fill, attrs, dataType } = first;
  const isText = (type: DataType) => type.kind === "S" || type.kind === "U" || type.kind === "O";
  if (dataType.kind !== "O" && forms.every(({ stored }) => stored.dataType.zarr === dataType.zarr)) {
    if (forms.length === 1) return { dataType, attrs, fill, items: undefined, change: undefined };
  }
  const itemsOf = (member: number, type?: DataType) => {
    const { dataType: own } = arrays.stored[member] as PartStored;
    return readItems(arrays.values[member] as Uint8Array, type ?? own);
  };
  if (forms.every(({ stored }) => isText(stored.dataType))) {
    const type = widestText(arrays, forms);
    const noFill = { served: null, item: null, absentIsServed: true };
    return { dataType: type, attrs, fill: noFill, items: (member) => itemsOf(member), change: undefined };
  }
  const odd = forms.find(({ stored }) => isText(stored.dataType) !== isText(dataType));
  if (odd !== undefined) throw formError(forms[0] as PartForm, odd);
  const joined = joinForms(forms, heaviest);
  const served = joined.fill ?? { ...fill, item: parseFillValue(fill.served, joined.dataType).item };
  return {
    ...{ dataType: joined.dataType, attrs: joined.attrs, fill: served, change: joined.change },
    items: (member) => {
      const conversion = joined.conversions[formOf[member] as number];
      if (conversion?.kind !== "unpack") return itemsOf(member);
      return unpack(itemsOf(member, parseDataType(conversion.from)), conversion);
    },
  };
}

/** Returns the type that has the texts of all parts. */
function widestText(arrays: PartValues, forms: readonly PartForm[]): DataType {
  const { dataType } = (forms[0] as PartForm).stored;
  if (forms.every(({ stored }) => stored.dataType.kind === "S")) {
    return parseDataType(`|S${Math.max(...forms.map(({ stored }) => stored.dataType.itemSize))}`);
  }
  const odd = forms.find(({ stored }) => (stored.dataType.kind === "S") !== (dataType.kind === "S"));
  if (odd !== undefined) throw formError(forms[0] as PartForm, odd);
  let width = 1;
  arrays.values.forEach((values, member) => {
    for (const text of readItems(
      values,
      (arrays.stored[member] as PartStored).dataType,
    ) as readonly string[]) {
      width = Math.max(width, Array.from(text).length);
    }
  });
  return parseDataType(`<U${width}`);
}

/** Unpacks items as workers do those of chunks. */
function unpack(
  items: Items,
  { to, scale, offset, missing }: Extract<ItemConversion, { kind: "unpack" }>,
): Float64Array {
  const round = to === "<f4" ? Math.fround : Number;
  return Float64Array.from(items as Iterable<Item>, Number).map((item) => {
    if (missing.includes(item)) return Number.NaN;
    const scaled = round(round(item) * round(scale));
    return offset === 0 ? scaled : round(scaled + round(offset));
  });
}

function concatBytes(
  values: readonly Uint8Array[],
  ranges: readonly { readonly member: number; readonly begin: number; readonly end: number }[],
  itemSize: number,
): Uint8Array {
  return Buffer.concat(
    ranges.map(({ member, begin, end }) =>
      (values[member] as Uint8Array).subarray(begin * itemSize, end * itemSize),
    ),
  );
}
