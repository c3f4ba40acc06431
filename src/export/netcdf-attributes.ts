import { isLosslessNumber } from "lossless-json";
import type { JsonObject, JsonValue } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";

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

/** An attribute as the header has it. */
export interface NcAttribute {
  readonly name: string;
  readonly type: NcType;
  readonly bytes: Uint8Array;
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
    if (numbers === undefined) {
      const text = typeof value === "string" ? value : stringifyJson(value);
      return { name, type: NC.char, bytes: Buffer.from(text) };
    }
    const type = isTyped && fits(numbers, variableType) ? variableType : typeOfNumbers(numbers);
    const view = new DataView(new ArrayBuffer(numbers.length * type.itemSize));
    for (const [index, number] of numbers.entries()) type.write(view, index * type.itemSize, number);
    return { name, type, bytes: new Uint8Array(view.buffer) };
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
