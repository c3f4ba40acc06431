import { ZpublishError } from "../../errors.js";
import { stringifyJson } from "../../json/stringify-json.js";
import type { CodecSpec } from "../codec-spec.js";
import { type NumericType, parseNumericType } from "./numeric-type.js";

/** End of messages about filters that are never applied. */
export const ASK_OTHER_FILTERS = `ask for other filters ("filters": null serves none)`;

/**
 * Parses `dtype` and `astype` of a codec: the types of its decoded and encoded side.
 * @throws ZpublishError `unsupported` if one is no numeric type.
 */
export function filterTypes(codec: CodecSpec): { readonly dtype: NumericType; readonly astype: NumericType } {
  const dtype = parseNumericType(codec.dtype);
  const astype = parseNumericType(codec.astype ?? codec.dtype);
  if (dtype === undefined || astype === undefined) {
    throw new ZpublishError(
      "unsupported",
      `${codec.id}: expected numeric types, received dtype ${stringifyJson(codec.dtype ?? null)} and astype ${stringifyJson(codec.astype ?? null)}`,
    );
  }
  return { dtype, astype };
}

/** Says why a `delta` cannot be decoded as numpy would; undefined if it can. */
export function deltaDecodeProblem(codec: CodecSpec): string | undefined {
  const dtype = parseNumericType(codec.dtype);
  const astype = parseNumericType(codec.astype ?? codec.dtype);
  if (dtype === undefined || astype === undefined) {
    return `delta of ${stringifyJson(codec.dtype ?? null)} as ${stringifyJson(codec.astype ?? codec.dtype ?? null)} is not decoded here`;
  }
  const bothIntegers = dtype.kind !== "f" && astype.kind !== "f";
  const usesWideInteger = [dtype, astype].some((type) => type.kind !== "f" && type.itemSize === 8);
  if (!bothIntegers && usesWideInteger) {
    return `delta of ${String(codec.dtype)} as ${String(codec.astype)} mixes floats and 64-bit integers`;
  }
  if (dtype.name.endsWith("f4") && astype.itemSize > 2 && !astype.name.endsWith("f4")) {
    // numpy computes these in double precision.
    return `delta of ${String(codec.dtype)} as the wider ${String(codec.astype)} is not decoded here`;
  }
  if (dtype.itemSize === 8 && astype.itemSize === 8 && dtype.kind !== astype.kind) {
    // numpy has no integer type that holds both, and goes through floats.
    return `delta of ${String(codec.dtype)} as ${String(codec.astype)} mixes signed and unsigned 64-bit integers`;
  }
  return undefined;
}

/** Says why a `delta` is not applied; undefined if it decodes to the same items. */
export function deltaEncodeProblem(codec: CodecSpec): string | undefined {
  const problem = deltaDecodeProblem(codec);
  if (problem !== undefined) return problem;
  const { dtype, astype } = filterTypes(codec);
  if (dtype.kind === "f" || astype.kind === "f") {
    return `delta of floats would round values, so it is decoded but not encoded; ${ASK_OTHER_FILTERS}`;
  }
  if (astype.itemSize < dtype.itemSize) {
    return `delta of ${String(codec.dtype)} as the smaller ${String(codec.astype)} could lose values, so it is decoded but not encoded; ${ASK_OTHER_FILTERS}`;
  }
  return undefined;
}

/** Says why a `quantize` cannot be decoded; undefined if it stays within one type, so that there is nothing to decode. */
export function quantizeProblem(codec: CodecSpec): string | undefined {
  const { dtype } = codec;
  return dtype !== undefined && (codec.astype ?? dtype) === dtype
    ? undefined
    : `quantize from ${stringifyJson(dtype ?? null)} to another type is not decoded here`;
}

/** Says why a `fixedscaleoffset` cannot be decoded as numpy would; undefined if it can. */
export function fixedScaleOffsetProblem(codec: CodecSpec): string | undefined {
  const dtype = parseNumericType(codec.dtype);
  const astype = parseNumericType(codec.astype ?? codec.dtype);
  const { scale, offset } = codec;
  const isKnown =
    dtype?.kind === "f" &&
    astype !== undefined &&
    (astype.kind === "f" ? astype.itemSize === dtype.itemSize : astype.itemSize < 8) &&
    typeof scale === "number" &&
    typeof offset === "number";
  return isKnown
    ? undefined
    : `fixedscaleoffset of ${stringifyJson(codec.dtype ?? null)} as ${stringifyJson(codec.astype ?? null)} is not decoded here`;
}
