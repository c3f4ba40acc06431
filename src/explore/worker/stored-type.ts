import type { Packing } from "../../cf/packing.js";
import { type DataType, parseDataType } from "../../model/data-type.js";

/** Tells whether values of a type can be drawn: numbers, times and durations, booleans, complex numbers as absolute values. */
export function isNumeric({ kind }: DataType): boolean {
  return "biufcMm".includes(kind);
}

/** Returns the type that stored integers are read as: the attribute `_Unsigned` may say that it is another than the array's. */
export function unsignedType(dataType: DataType, isUnsigned: boolean | undefined): DataType {
  const { kind, itemSize, byteOrder } = dataType;
  if (isUnsigned === undefined || (kind !== "i" && kind !== "u")) return dataType;
  return parseDataType(`${byteOrder}${isUnsigned ? "u" : "i"}${itemSize}`);
}

/**
 * Returns the packing with its stored numbers as the type has them: 1e20 is another number in 32 bits, and the fill value of unsigned
 * integers in a signed type is negative. A missing number that the type does not have is left out.
 */
export function roundToType(packing: Packing, { kind, itemSize }: DataType): Packing {
  const round = (value: number): number => {
    if (kind === "f" && itemSize === 4) return Math.fround(value);
    if (packing.isUnsigned === undefined || !Number.isInteger(value)) return value;
    const turn = 2 ** (8 * itemSize);
    if (kind === "u" && value < 0) return value + turn;
    return kind === "i" && value >= turn / 2 ? value - turn : value;
  };
  return {
    ...packing,
    missing: packing.missing.map(round),
    validMin: round(packing.validMin),
    validMax: round(packing.validMax),
  };
}
