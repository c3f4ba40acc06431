import { isLosslessNumber } from "lossless-json";
import { wrongParameter } from "../http/query.js";
import type { JsonObject, JsonValue } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import { NOT_A_TIME } from "../model/fill-value.js";
import type { ExportedVariable } from "./exported-dataset.js";

/** A version of the classic format: the byte behind `CDF`. */
export type NcVersion = 1 | 2 | 5;

/** A type of the classic format. */
export interface NcType {
  /** Only version 5 has those above 6. */
  readonly code: number;
  readonly itemSize: 1 | 2 | 4 | 8;
  /** Writes one number, big-endian. */
  readonly write: (view: DataView, at: number, value: number | bigint) => void;
  /** Least and greatest integer; undefined for floats. */
  readonly bounds?: readonly [bigint, bigint];
}

function integer(code: number, itemSize: 1 | 2 | 4 | 8, isSigned: boolean): NcType {
  const end = 1n << BigInt(8 * itemSize - (isSigned ? 1 : 0));
  const bounds = [isSigned ? -end : 0n, end - 1n] as const;
  const write: NcType["write"] = (view, at, value) => {
    const wide = BigInt.asUintN(64, BigInt(value));
    for (let i = 0; i < itemSize; i++)
      view.setUint8(at + i, Number((wide >> BigInt(8 * (itemSize - 1 - i))) & 255n));
  };
  return { code, itemSize, write, bounds };
}

/** Types by their names in the specification. */
export const NC = {
  byte: integer(1, 1, true),
  char: integer(2, 1, false),
  short: integer(3, 2, true),
  int: integer(4, 4, true),
  float: { code: 5, itemSize: 4, write: (view, at, value) => view.setFloat32(at, Number(value)) },
  double: { code: 6, itemSize: 8, write: (view, at, value) => view.setFloat64(at, Number(value)) },
  ubyte: integer(7, 1, false),
  ushort: integer(8, 2, false),
  uint: integer(9, 4, false),
  int64: integer(10, 8, true),
  uint64: integer(11, 8, false),
} satisfies Record<string, NcType>;

/** An attribute as NetCDF has it. */
export interface NcAttribute {
  readonly name: string;
  readonly type: NcType;
  /** Integers are bigints. */
  readonly values: string | readonly (number | bigint)[];
}

/** Attributes whose items have the type of their variable, or of what is packed in it (CF Conventions §2.5.1, §8.1). */
const OF_VARIABLE = /^(?:_FillValue|missing_value|valid_min|valid_max|valid_range|flag_values|flag_masks)$/;
const NUMBER_TEXTS: Readonly<Record<string, number>> = { NaN: Number.NaN, Infinity, "-Infinity": -Infinity };

/**
 * Converts attributes from JSON. Integers are int, or wider where they have to be; other numbers are doubles; a truth value is a byte.
 * What netCDF cannot say (null, objects, lists of other things than numbers) is written as JSON text.
 * @param variableType Type of the variable, for attributes that have it; undefined if it holds no numbers.
 */
export function netcdfAttributes(attrs: JsonObject, variableType: NcType | undefined): NcAttribute[] {
  return Object.entries(attrs).map(([name, value]) => {
    const isTyped = variableType !== undefined && OF_VARIABLE.test(name);
    const numbers = numbersOf(value, isTyped);
    if (numbers === undefined)
      return { name, type: NC.char, values: typeof value === "string" ? value : stringifyJson(value) };
    const type = isTyped && fits(numbers, variableType) ? variableType : typeOfNumbers(numbers);
    return { name, type, values: numbers };
  });
}

/** Returns numbers, integers as bigint; undefined if a value is something else. @param withTexts Whether `"NaN"` is a number. */
function numbersOf(value: JsonValue, withTexts: boolean): (number | bigint)[] | undefined {
  const numbers: (number | bigint)[] = [];
  for (const each of Array.isArray(value) ? (value as readonly JsonValue[]) : [value]) {
    if (typeof each === "bigint") numbers.push(each);
    else if (typeof each === "number") numbers.push(Number.isSafeInteger(each) ? BigInt(each) : each);
    else if (isLosslessNumber(each)) numbers.push(Number(each.value));
    else if (typeof each === "boolean") numbers.push(BigInt(each));
    else if (withTexts && typeof each === "string" && each in NUMBER_TEXTS) numbers.push(NUMBER_TEXTS[each]!);
    else return undefined;
  }
  return numbers.length === 0 ? undefined : numbers;
}

/** Tells whether a type holds numbers exactly; a float type holds all of them. */
function fits(numbers: readonly (number | bigint)[], { bounds }: NcType): boolean {
  if (bounds === undefined) return true;
  const isInteger = (each: number | bigint) => typeof each === "bigint" || Number.isInteger(each);
  return numbers.every((each) => isInteger(each) && each >= bounds[0] && each <= bounds[1]);
}

function typeOfNumbers(numbers: readonly (number | bigint)[]): NcType {
  if (!numbers.every((each) => typeof each === "bigint")) return NC.double;
  return [NC.int, NC.int64, NC.uint64].find((type) => fits(numbers, type)) ?? NC.double;
}

/** How NetCDF holds values. */
export interface NcStorage {
  readonly type: NcType;
  /** Characters of a text. */
  readonly charCount?: number;
  /** Attributes that say what the type does not. */
  readonly more?: JsonObject;
}

/**
 * Returns how NetCDF holds the values of a variable.
 * @param textBytes Greatest length of its texts in bytes of UTF-8.
 * @throws ZpublishError `invalid-query` if it cannot
 */
export function netcdfStorage({ name, dims, dataType }: ExportedVariable, textBytes: number): NcStorage {
  const { kind, itemSize, timeUnit } = dataType;
  if (kind === "b") return { type: NC.byte, more: { dtype: "bool" } };
  if (kind === "i") return { type: [NC.byte, NC.short, NC.int, NC.int64][Math.log2(itemSize)]! };
  if (kind === "u") return { type: [NC.ubyte, NC.ushort, NC.uint, NC.uint64][Math.log2(itemSize)]! };
  if (kind === "f" && itemSize <= 8) return { type: itemSize === 8 ? NC.double : NC.float };
  // Characters have the axis of their texts already.
  if (kind === "S" && itemSize === 1 && dims.length > 0) return { type: NC.char };
  if (kind === "S") return { type: NC.char, charCount: Math.max(1, itemSize) };
  if (kind === "U" || kind === "O")
    return { type: NC.char, charCount: textBytes, more: { _Encoding: "utf-8" } };
  const unit = UNITS[timeUnit ?? ""];
  if ((kind === "M" || kind === "m") && unit !== undefined) {
    const isDate = kind === "M";
    const time = isDate
      ? { units: `${unit} since 1970-01-01`, calendar: "proleptic_gregorian" }
      : { units: unit };
    // Nanoseconds with a fill value are doubles to xarray, which knows NaT among them without one.
    return { type: NC.int64, more: { ...time, ...(timeUnit === "ns" ? {} : { _FillValue: NOT_A_TIME }) } };
  }
  const expected = `a type that NetCDF has; variable '${name}' is ${dataType.numpyName}, which f=npy has`;
  throw wrongParameter("f", "unsupported_type", expected, "nc");
}

const UNITS: Readonly<Record<string, string>> = {
  ...{ D: "days", h: "hours", m: "minutes", s: "seconds" },
  ...{ ms: "milliseconds", us: "microseconds", ns: "nanoseconds" },
};
