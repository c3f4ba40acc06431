import { parseDataType } from "../../../src/model/data-type.js";
import type { StoredArray } from "../../../src/zarr/stored-array.js";

/** A stored array of 10 by 12 floats in chunks of 4 by 5, but for what a test says otherwise. */
export function storedArray(changes: Partial<StoredArray> & { readonly dtype?: string } = {}): StoredArray {
  const { dtype = "<f4", ...rest } = changes;
  const shape = rest.shape ?? [10, 12];
  return {
    name: "t",
    path: "g/t",
    shape,
    chunkShape: shape.map((_, axis) => 4 + axis),
    dataType: parseDataType(dtype),
    axisOrder: shape.map((_, axis) => axis),
    codecs: [{ id: "blosc", cname: "lz4", clevel: 5, shuffle: 1, blocksize: 0 }],
    compressorCount: 1,
    fill: { served: "NaN", item: new Uint8Array([0, 0, 0xc0, 0x7f]), absentIsServed: true },
    dimNames: null,
    attrs: {},
    chunks: { kind: "files", directory: "/nowhere", keyEncoding: { name: "v2", separator: "." } },
    ...rest,
  };
}
