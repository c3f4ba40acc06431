import { type DataType, parseDataType } from "../../../src/model/data-type.js";
import type { UnpackConversion } from "../../../src/zarr/codec-step.js";

/** A conversion in few words; null for what is not done. */
export interface UnpackFields {
  readonly from: string;
  readonly to: "<f4" | "<f8";
  readonly scale?: number | null | undefined;
  readonly offset?: number | null | undefined;
  readonly missing?: readonly number[];
}

/** Returns the conversion of packed items to floats. */
export function unpackConversion(fields: UnpackFields): UnpackConversion {
  const { from, to, scale, offset, missing = [] } = fields;
  const typeOf = ({ kind, itemSize }: DataType) => ({ kind, itemSize });
  const types = { from: typeOf(parseDataType(from)), to: typeOf(parseDataType(to)) };
  return {
    kind: "unpack",
    from,
    decoding: { ...types, missing, scale: scale ?? undefined, offset: offset ?? undefined },
  };
}
