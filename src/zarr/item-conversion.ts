/** Change of one part's items to those of a joined array. Plain data. */
export type ItemConversion = SwapConversion | WidenConversion | UnpackConversion;

/** Items of the same type in the other byte order. */
export interface SwapConversion {
  readonly kind: "swap";
  /** Bytes of an item, 2, 4 or 8; half of that is swapped for complex numbers. */
  readonly wordSize: number;
}

/** Integers that become integers of a type that has all their values. */
export interface WidenConversion {
  readonly kind: "widen";
  /** Stored type as Zarr v2 writes it: `>i2`. */
  readonly from: string;
  /** `<i4`, say: little-endian. */
  readonly to: string;
}

/**
 * Packed items (CF conventions, section 8.1), which become floats as xarray decodes them: missing ones are NaN, the others are
 * multiplied by `scale`, then `offset` is added. Each step, `scale` and `offset` are rounded to the target's type.
 */
export interface UnpackConversion {
  readonly kind: "unpack";
  /** Stored type as Zarr v2 writes it: `<i2`, `>u1`, `<f4`. */
  readonly from: string;
  /** `<f4` or `<f8`. */
  readonly to: string;
  readonly scale: number;
  readonly offset: number;
  /** Stored values that mean that there is none: `_FillValue` and `missing_value`. */
  readonly missing: readonly number[];
}
