import { cfTimeFormatter, datetimeText } from "../cf/cf-time.js";
import { unpacked } from "../cf/packing.js";
import { toNumbers } from "../json/json-value.js";
import { shortestFloat } from "../json/stringify-json.js";
import type { DataType } from "../model/data-type.js";
import { NOT_A_TIME } from "../model/fill-value.js";
import type { VariableDescription } from "./protocol.js";
import type { ChunkValues } from "./worker/array-reader.js";

/** What is shown of a missing value. */
export const MISSING_TEXT = "missing";

/** Formats one value of a chunk with as many digits as its type and packing have. */
export function valueText(
  variable: VariableDescription,
  chunk: ChunkValues | undefined,
  offset: number,
): string {
  if (chunk === undefined) return MISSING_TEXT;
  if (chunk.texts !== undefined) return chunk.texts[offset] ?? "";
  const { dataType, packing, attrs } = variable;
  const stored = chunk.numbers![offset]!;
  const value = unpacked(stored, packing);
  if (dataType.kind === "M") return datetimeText(chunk.exact![offset] as bigint, dataType.timeUnit ?? "");
  const exact = chunk.exact?.[offset];
  const flags = flagMeanings(variable, exact ?? stored);
  // A flag may say why there is no number.
  if (Number.isNaN(value)) return flags ?? MISSING_TEXT;
  if (dataType.kind === "b") return stored === 0 ? "false" : "true";
  if (dataType.kind === "c") return complexText(chunk.exact as Float32Array | Float64Array, offset, dataType);
  if (dataType.kind === "m" && exact === NOT_A_TIME) return "NaT";
  const time = cfTimeFormatter(attrs);
  if (time !== undefined) return time(exact ?? value);
  if (flags !== undefined) return flags;
  const isPacked = packing.scale !== 1 || packing.offset !== 0;
  if (typeof exact === "bigint" && !isPacked)
    return `${exact}${dataType.kind === "m" ? ` ${dataType.timeUnit ?? ""}` : ""}`;
  return unpackedText(variable, value);
}

/** Formats a number that is unpacked already with as many digits as the variable's type and packing have. NaN is a missing value. */
export function unpackedText(variable: VariableDescription, value: number): string {
  const { dataType, packing, attrs } = variable;
  if (Number.isNaN(value)) return MISSING_TEXT;
  if (dataType.kind === "M") return datetimeText(BigInt(Math.round(value)), dataType.timeUnit ?? "");
  const time = cfTimeFormatter(attrs);
  if (time !== undefined) return time(value);
  const { scale, offset } = packing;
  if (scale !== 1 || offset !== 0) return packedText(value, scale, offset);
  return numberText(value, dataType);
}

/** Returns the shortest text that reads as the same number of the type. */
export function numberText(value: number, { kind, itemSize }: DataType): string {
  return String(kind === "f" ? shortestFloat(value, itemSize) : value);
}

function complexText(parts: Float32Array | Float64Array, offset: number, dataType: DataType): string {
  const [real, imaginary] = [parts[2 * offset]!, parts[2 * offset + 1]!];
  const sign = imaginary < 0 || Object.is(imaginary, -0) ? "-" : "+";
  const textOf = (part: number) => String(shortestFloat(part, dataType.itemSize / 2));
  return `${textOf(real)}${sign}${textOf(Math.abs(imaginary))}j`;
}

/** Packed values are multiples of the scale: further digits are rounding. */
function packedText(value: number, scale: number, offset: number): string {
  if (!Number.isFinite(value)) return String(value);
  const decimals = Math.max(decimalsOf(scale), decimalsOf(offset));
  return decimals > 12 ? String(Number(value.toPrecision(9))) : String(Number(value.toFixed(decimals)));
}

function decimalsOf(value: number): number {
  const [digits = "", exponent = "0"] = String(value).split("e");
  return Math.max(0, (digits.split(".")[1]?.length ?? 0) - Number(exponent));
}

/** Returns the meanings of a flag (CF section 3.5); undefined if it has none, or is not finite. */
function flagMeanings({ attrs }: VariableDescription, stored: number | bigint): string | undefined {
  const { flag_meanings: meanings, flag_values: values, flag_masks: masks } = attrs;
  if (typeof meanings !== "string") return undefined;
  const names = meanings.trim().split(/\s+/);
  const [valueList, maskList] = [toNumbers(values), toNumbers(masks)];
  if (!Number.isFinite(Number(stored))) return undefined;
  const number = BigInt.asIntN(64, BigInt(Math.trunc(Number(stored))));
  const found = names.filter((_, index) => {
    const value = valueList[index];
    const mask = maskList[index];
    if (mask === undefined) return value !== undefined && value === Number(stored);
    const masked = number & BigInt(Math.trunc(mask));
    return value === undefined ? masked !== 0n : masked === BigInt(Math.trunc(value));
  });
  return found.length === 0 ? undefined : `${found.join(", ")} (${stored})`;
}
