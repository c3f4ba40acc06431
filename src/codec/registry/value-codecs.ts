import { packingOf } from "../../cf/packing.js";
import { type DataType, parseDataType } from "../../model/data-type.js";
import { encodeFillItem } from "../../model/fill-value.js";
import type { CodecStep } from "../../zarr/codec-step.js";
import { integerBounds } from "../../zarr/v3/value-codecs.js";
import { type Codec, corrupt } from "../codec.js";
import { openRows, openRowsForWriting } from "../item-rows.js";
import { type KernelMemory, OWN_MEMORY } from "../kernel/kernel-memory.js";
import { fixedScaleOffset } from "../small-codecs.js";
import { type Rounding, roundInteger, roundToFloat } from "./rounding.js";

/**
 * `scale_offset` of Zarr v3's registry, decoding only: `encoded / scale + offset` in the arithmetic of the type. Integers have to be
 * multiples of the scale, and stay within their type.
 */
export const scaleOffset: Codec = {
  decode(bytes, step, memory) {
    const { kind, itemSize } = parseDataType(step.codec.dtype as string);
    if (kind !== "f") return convertRows(bytes, step, unscaleIntegers(step), memory);
    const [scale, offset] = [Number(step.codec.scale), Number(step.codec.offset)];
    if (itemSize > 2) {
      return fixedScaleOffset.decode(bytes, { ...step, codec: { ...step.codec, scale, offset } }, memory);
    }
    const round = (value: number) =>
      roundToFloat(value, 2, "nearest-even") ?? value * Number.POSITIVE_INFINITY;
    const item = (value: Scalar) => round(round(Number(value) / scale) + offset);
    return convertRows(bytes, step, { item }, memory);
  },
};

/** `cast_value` of Zarr v3's registry, decoding only: numbers of one type become those of another, or what `scalar_map` says. */
export const castValue: Codec = {
  decode: (bytes, step, memory) => convertRows(bytes, step, castNumbers(step), memory),
};

/** A number; integers that no double holds are big ones. */
type Scalar = number | bigint;

/** A change of numbers. */
interface Conversion {
  /** Changes doubles in place. Undefined if there is no quick way. */
  readonly row?: ((values: Float64Array) => void) | undefined;
  readonly item: (value: Scalar) => Scalar;
}

/** Items that are worked on together: 16 KiB of doubles, half of a first-level cache. */
const ROW_ITEMS = 2048;

function convertRows(
  bytes: Uint8Array,
  { codec }: CodecStep,
  { row: convertRow, item: convertItem }: Conversion,
  memory: KernelMemory = OWN_MEMORY,
): Uint8Array {
  const [from, to] = [parseDataType(codec.astype as string), parseDataType(codec.dtype as string)];
  const rows = openRows(bytes, from, packingOf({}));
  const count = bytes.length / from.itemSize;
  const nan = to.kind === "f" ? encodeFillItem("NaN", to) : null;
  const writer = openRowsForWriting(memory.allocate(count * to.itemSize), to, packingOf({}), nan);
  const buffer = new Float64Array(ROW_ITEMS);
  for (let first = 0; first < count; first += ROW_ITEMS) {
    const values = buffer.subarray(0, Math.min(ROW_ITEMS, count - first));
    const wide: [index: number, value: bigint][] = [];
    const isExact = rows.read(values, first, values.length);
    if (isExact && convertRow !== undefined) convertRow(values);
    else {
      for (let i = 0; i < values.length; i++) {
        const isDouble = isExact || Number.isSafeInteger(values[i]);
        const value = convertItem(isDouble ? values[i]! : rows.wide![first + i]!);
        if (typeof value === "bigint") wide.push([first + i, value]);
        values[i] = Number(value);
      }
    }
    writer.write(values, first, values.length);
    for (const [index, value] of wide) writer.writeWide(index, value);
  }
  return writer.finish();
}

function scalarOf(value: bigint): Scalar {
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

function unscaleIntegers({ codec }: CodecStep): Conversion {
  const type = parseDataType(codec.dtype as string);
  const [least, greatest] = integerBounds(type);
  const [wideScale, wideOffset] = [BigInt(codec.scale as string), BigInt(codec.offset as string)];
  const [scale, offset, min, max] = [wideScale, wideOffset, least, greatest].map(Number) as Four;
  const isSmall = Number.isSafeInteger(scale) && Number.isSafeInteger(offset);
  const item = (value: Scalar) => {
    if (isSmall && typeof value === "number" && value % scale === 0) {
      const unscaled = value / scale + offset;
      if (unscaled >= min && unscaled <= max && Number.isSafeInteger(unscaled)) return unscaled;
    }
    const unscaled = BigInt(value) / wideScale + wideOffset;
    const isWhole = BigInt(value) % wideScale === 0n;
    if (isWhole && unscaled >= least && unscaled <= greatest) return scalarOf(unscaled);
    throw corrupt(`scale_offset: expected a ${type.numpyName}, received ${value} / ${scale} + ${offset}`);
  };
  return { item };
}

type Four = [number, number, number, number];

function castNumbers({ codec }: CodecStep): Conversion {
  const [from, to] = [parseDataType(codec.astype as string), parseDataType(codec.dtype as string)];
  const rounding = codec.rounding as Rounding;
  const asScalar = (text: string, { kind }: DataType) =>
    kind === "f" ? Number(text) : scalarOf(BigInt(text));
  const entries = (codec.decode as [string, string][]).map(
    ([key, value]) => [asScalar(key, from), asScalar(value, to)] as const,
  );
  // Zeros are equal, and so are all NaN. Of equal keys the first counts.
  const mapped = new Map<Scalar, Scalar>([...entries].reverse());
  const cast = to.kind === "f" ? castToFloat(to, rounding, codec) : castToInteger(to, rounding, codec);
  const item = (value: Scalar) => mapped.get(value) ?? cast(value);
  const [[key, value] = [undefined, undefined], ...others] = entries;
  const isQuick =
    others.length === 0 &&
    typeof key !== "bigint" &&
    typeof value !== "bigint" &&
    isWritten(from, to, rounding);
  return isQuick ? { row: (values) => setMapped(values, key, value), item } : { item };
}

/** Whether writing doubles casts them: the type has them all, or rounds them to the nearest and is large enough. */
function isWritten(from: DataType, to: DataType, rounding: Rounding): boolean {
  if (from.kind === "f") return to.kind === "f" && from.itemSize <= to.itemSize;
  if (to.kind === "f")
    return to.itemSize === 8 || (to.itemSize === 4 && (from.itemSize < 4 || rounding === "nearest-even"));
  const [inner, outer] = [integerBounds(from), integerBounds(to)];
  return inner[0] >= outer[0] && inner[1] <= outer[1];
}

function setMapped(values: Float64Array, key: number | undefined, value: number | undefined): void {
  if (key === undefined || value === undefined) return;
  if (Number.isNaN(key))
    for (let i = 0; i < values.length; i++) values[i] = Number.isNaN(values[i]) ? value : values[i]!;
  else for (let i = 0; i < values.length; i++) if (values[i] === key) values[i] = value;
}

function castToFloat(to: DataType, rounding: Rounding, { out_of_range }: CodecStep["codec"]) {
  return (value: Scalar): number => {
    const rounded = roundToFloat(value, to.itemSize, rounding);
    if (rounded === undefined && out_of_range !== "clamp") throw outside(value, to);
    return rounded ?? (value < 0 ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY);
  };
}

function castToInteger(to: DataType, rounding: Rounding, { out_of_range }: CodecStep["codec"]) {
  const [least, greatest] = integerBounds(to);
  const wrap = to.kind === "u" ? BigInt.asUintN : BigInt.asIntN;
  return (value: Scalar): Scalar => {
    const whole = typeof value === "bigint" ? value : roundInteger(value, rounding);
    if (typeof whole === "number" && !Number.isFinite(whole)) throw outside(value, to);
    const integer = BigInt(whole);
    if (integer >= least && integer <= greatest) return scalarOf(integer);
    if (out_of_range === "refuse") throw outside(value, to);
    const clamped = integer < least ? least : greatest;
    return scalarOf(out_of_range === "wrap" ? wrap(8 * to.itemSize, integer) : clamped);
  };
}

function outside(value: Scalar, to: DataType): Error {
  return corrupt(`cast_value: expected a number that ${to.numpyName} has, received ${value}`);
}
