import type { CoordinateAxis } from "../../cf/axis-labels.js";
import { type RegularAxis, regularAxis } from "../../cf/axis-order.js";
import { cfTimeScale, datetimeScale } from "../../cf/cf-time.js";
import { cfDecodingOf, type NumberDecoding } from "../../cf/decoded-type.js";
import { coordinateMark } from "../../cf/packing.js";
import type { JsonObject, JsonValue } from "../../json/json-value.js";
import { type DataType, parseDataType } from "../../model/data-type.js";
import { NOT_A_TIME } from "../../model/fill-value.js";
import { decodeNumbers } from "./decode-numbers.js";
import { itemValues, type NumericArray } from "./item-values.js";

/** What the values of a coordinate say of its axis. */
export type DecodedCoordinate = Omit<CoordinateAxis, "dim" | "length" | "role" | "variable">;

/** An axis that is labelled by index. */
export const NO_COORDINATE: DecodedCoordinate = {
  ...{ values: undefined, regular: undefined, units: undefined, calendar: undefined, floatBytes: undefined },
  isLongitude: false,
};

/** Stored values of a coordinate, and the same as bytes in this machine's byte order. */
interface StoredCoordinate {
  readonly values: NumericArray | readonly string[] | undefined;
  readonly bytes: Uint8Array;
  readonly dataType: DataType;
}

/** Decodes stored values of a coordinate. @param fillValue `fill_value` of the array's document. */
export function decodeCoordinate(
  { values, bytes, dataType }: StoredCoordinate,
  attrs: JsonObject,
  fillValue: JsonValue | undefined,
): DecodedCoordinate {
  const units = typeof attrs.units === "string" ? attrs.units : undefined;
  const common = { ...NO_COORDINATE, units };
  if (values === undefined || Array.isArray(values))
    return { ...common, values: values as readonly string[] | undefined };
  if (dataType.kind === "M") {
    const scale = datetimeScale(dataType.timeUnit ?? "");
    const counts = (values as BigInt64Array).map((stored) =>
      scale === undefined || stored === NOT_A_TIME ? stored : scale.countOf(stored),
    );
    const time = scale && { units: scale.units, calendar: "proleptic_gregorian" };
    return { ...common, ...withStep(plainNumbers(counts)), ...time };
  }
  const { numbers, time, itemSize, dtype } = cfDecodingOf(dataType, attrs, coordinateMark(fillValue));
  const decoded = plainNumbers(
    numbers === undefined ? (values as NumericArray) : decodedValues(bytes, dataType, numbers),
  );
  const { calendar = "standard" } = attrs;
  const isTime = time === "date" && cfTimeScale({ units: units ?? null, calendar }) !== undefined;
  return {
    ...common,
    ...withStep(decoded),
    calendar: isTime ? String(calendar).toLowerCase() : undefined,
    floatBytes: time === undefined && dtype.startsWith("float") ? itemSize : undefined,
  };
}

function decodedValues(bytes: Uint8Array, dataType: DataType, decoding: NumberDecoding): NumericArray {
  const { kind, itemSize } = decoding.to;
  const target = new Uint8Array((bytes.length / dataType.itemSize) * itemSize);
  decodeNumbers(bytes, dataType, decoding, target);
  return itemValues(target, parseDataType(`${itemSize === 1 ? "|" : "<"}${kind}${itemSize}`)) as NumericArray;
}

/** Returns floats, unless some integers are beyond 2⁵³. */
function plainNumbers(numbers: NumericArray): Float64Array | BigInt64Array {
  if (numbers instanceof Float64Array) return numbers;
  // Without a function, of millions of cells in a few milliseconds.
  if (!(numbers instanceof BigInt64Array || numbers instanceof BigUint64Array))
    return new Float64Array(numbers);
  const isWide = !numbers.every((value: bigint) => Number.isSafeInteger(Number(value)));
  return isWide ? BigInt64Array.from(numbers) : Float64Array.from(numbers, Number);
}

function withStep(values: Float64Array | BigInt64Array): Pick<DecodedCoordinate, "values" | "regular"> {
  if (values instanceof Float64Array) return { values, regular: regularAxis(values) };
  const step = values.length < 2 ? 0n : values[1]! - values[0]!;
  const isRegular =
    step !== 0n && values.every((value, index) => value === values[0]! + BigInt(index) * step);
  const regular: RegularAxis | undefined = isRegular
    ? { first: Number(values[0]), step: Number(step) }
    : undefined;
  return { values, regular };
}
