import type { JsonValue } from "../json/json-value.js";

/** numpy's kind characters; `O` is an object type, whose items have no fixed size. */
export type DataTypeKind = "b" | "i" | "u" | "f" | "c" | "S" | "U" | "M" | "m" | "V" | "O";

/** The type of one item, frozen. */
export interface DataType {
  readonly kind: DataTypeKind;
  /** Bytes of one item; 0 for `O`. */
  readonly itemSize: number;
  /** `|` if byte order means nothing (one-byte types, `S`, `V`, `O`). */
  readonly byteOrder: "<" | ">" | "|";
  /** As in `dtype` of a v2 `.zarray`: `"<f4"`, `"<M8[s]"`, or a list of fields for structured types. */
  readonly zarr: JsonValue;
  /** numpy's `dtype.name`, without byte order: `float32`, `bytes40`, `str128`, `datetime64[s]`, `object`. */
  readonly numpyName: string;
  /** numpy's `str(dtype)` on a little-endian machine: `float32`, `>f4`, `<U4`, `|S5`, `bool`. */
  readonly numpyStr: string;
  /** Unit of `M` and `m`, as numpy writes it: `ns`, `s`, `25us`, `D`; undefined for other kinds. */
  readonly timeUnit?: string;
}
