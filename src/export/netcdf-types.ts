import { cfTimeAttributes } from "../cf/cf-time.js";
import { wrongParameter } from "../http/query.js";
import { isJsonArray, type JsonObject, type JsonValue, toNumber } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import { type DataType, parseDataType } from "../model/data-type.js";
import { encodeFillItem, floatOf } from "../model/fill-value.js";
import type { ExportedVariable } from "./exported-dataset.js";

/** A version of the classic format: the byte behind `CDF`. */
export type NcVersion = 1 | 2 | 5;

/** A type of the classic format. */
export interface NcType {
  /** Only version 5 has those above 6. */
  readonly code: number;
  readonly itemSize: number;
  /** The same as numpy has it, big-endian. */
  readonly dataType: DataType;
}

function ncType(code: number, dtype: string): NcType {
  const dataType = parseDataType(dtype);
  return { code, itemSize: dataType.itemSize, dataType };
}

/** Types by their names in the specification. */
export const NC = {
  byte: ncType(1, "|i1"),
  char: ncType(2, "|S1"),
  short: ncType(3, ">i2"),
  int: ncType(4, ">i4"),
  float: ncType(5, ">f4"),
  double: ncType(6, ">f8"),
  ubyte: ncType(7, "|u1"),
  ushort: ncType(8, ">u2"),
  uint: ncType(9, ">u4"),
  int64: ncType(10, ">i8"),
  uint64: ncType(11, ">u8"),
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
  const values = isJsonArray(value) ? value : [value];
  const numbers = values.map((each) => {
    if (typeof each === "boolean" || Number.isSafeInteger(each)) return BigInt(each as number | boolean);
    return typeof each === "bigint" ? each : withTexts ? floatOf(each) : toNumber(each);
  });
  const known = numbers.filter((each) => each !== undefined);
  return known.length === 0 || known.length < numbers.length ? undefined : known;
}

/** Tells whether a type holds numbers, floats rounded. */
function fits(numbers: readonly (number | bigint)[], { dataType }: NcType): boolean {
  try {
    for (const each of numbers) encodeFillItem(each, dataType);
    return true;
  } catch {
    return false;
  }
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
  const { kind, itemSize } = dataType;
  if (kind === "b") return { type: NC.byte, more: { dtype: "bool" } };
  if (kind === "f" && itemSize === 2) return { type: NC.float };
  const same = Object.values(NC).find(
    ({ dataType: { kind: own }, itemSize: size }) => own === kind && size === itemSize,
  );
  if (same !== undefined && kind !== "S") return { type: same };
  // Characters have the axis of their texts already.
  if (kind === "S" && itemSize === 1 && dims.length > 0) return { type: NC.char };
  if (kind === "S") return { type: NC.char, charCount: Math.max(1, itemSize) };
  if (kind === "U" || kind === "O")
    return { type: NC.char, charCount: textBytes, more: { _Encoding: "utf-8" } };
  const time = cfTimeAttributes(dataType);
  if (time !== undefined) return { type: NC.int64, more: time };
  const expected = `a type that NetCDF has; variable '${name}' is ${dataType.numpyName}, which f=npy has`;
  throw wrongParameter("f", "unsupported_type", expected, "nc");
}
