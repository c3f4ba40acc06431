import t from "tap";
import { hasH5wasm } from "../../../src/codec/file-formats/h5wasm-filters.js";
import { messageOf } from "../../../src/errors.js";
import { mapType } from "../../../src/formats/hdf5/datatypes.js";
import { filterCodecs, storedCodecs } from "../../../src/formats/hdf5/filters.js";
import type { Hdf5Filter, Hdf5Type } from "../../../src/formats/hdf5/hdf5-model.js";

const filter = (id: number, ...values: number[]): Hdf5Filter => ({ id, name: "", values });
const SHUFFLE = filter(2, 4);
const DEFLATE = filter(1, 6);
const FLETCHER = filter(3);
const FLOAT: Hdf5Type = { kind: "float", size: 4, byteOrder: "<" };

/** Ids of codecs, a dash and the trimmed bytes; or the reason. */
function told(filters: readonly Hdf5Filter[], mask = 0, chunkByteLength = 64): string {
  try {
    const { codecs, compressorCount, trimmedBytes } = filterCodecs(filters, chunkByteLength, mask);
    return `${codecs.map(({ id }) => id).join(" ")} ${compressorCount}-${trimmedBytes}`;
  } catch (error) {
    return messageOf(error);
  }
}

t.test("filters that Zarr knows become its codecs, and a checksum behind them is cut off", async (t) => {
  t.equal(told([]), " 0-0");
  t.equal(told([DEFLATE]), "zlib 1-0");
  t.equal(told([SHUFFLE, DEFLATE]), "shuffle zlib 1-0");
  t.equal(told([SHUFFLE, DEFLATE, FLETCHER]), "shuffle zlib 1-4");
  t.equal(told([FLETCHER]), " 0-4");
  t.equal(told([SHUFFLE, FLETCHER]), "shuffle 0-4");
  t.equal(told([filter(2, 1), DEFLATE]), "zlib 1-0", "items of a byte are not shuffled");
  t.equal(told([filter(32015, 3)]), "zstd 1-0");
  t.equal(told([filter(307, 9)]), "bz2 1-0");
  t.equal(told([filter(32022, 1), SHUFFLE, DEFLATE]), "shuffle zlib 1-0", "rounding is not undone");
  t.same(filterCodecs([filter(32001, 2, 2, 4, 64, 7, 2, 5)], 64, 0), {
    codecs: [{ id: "blosc", cname: "zstd", clevel: 7, shuffle: 2, blocksize: 0 }],
    compressorCount: 1,
    trimmedBytes: 0,
  });
});

t.test("filters that Zarr does not know, or in another order, are decoded", async (t) => {
  t.equal(told([FLETCHER, SHUFFLE, DEFLATE]), "hdf5-fletcher32 hdf5-shuffle zlib 1-0", "netCDF-4");
  t.equal(told([filter(2, 5), DEFLATE]), "hdf5-shuffle zlib 1-0", "parts of items");
  t.equal(told([filter(32000, 4, 261, 64), FLETCHER]), "lzf hdf5-fletcher32 0-0");
  t.equal(told([filter(32004, 0)]), "hdf5-lz4 1-0");
  t.equal(told([filter(32008, 0, 4, 4, 0, 2)]), "hdf5-bitshuffle 1-0");
  t.match(told([filter(32008, 0, 4, 4, 0, 9)]), /unknown compressor 9/);
});

t.test("a filter mask leaves out filters by their place in the pipeline", async (t) => {
  const pipeline = [FLETCHER, SHUFFLE, DEFLATE];
  t.equal(told(pipeline, 1), "shuffle zlib 1-0");
  t.equal(told(pipeline, 2), "hdf5-fletcher32 zlib 1-0");
  t.equal(told(pipeline, 4), "hdf5-fletcher32 hdf5-shuffle 0-0");
  t.equal(told(pipeline, 6), " 0-4");
  t.equal(told(pipeline, 7), " 0-0");
  t.equal(told([filter(9999), DEFLATE], 1), "zlib 1-0", "an unknown filter that was skipped");
});

t.test("filters that nothing here decodes are named", async (t) => {
  t.equal(told([{ id: 32013, name: "H5Z-ZFP", values: [] }]), "filter 32013 (H5Z-ZFP) is not decoded");
  t.equal(told([filter(9999)]), "filter 9999 is not decoded");
});

t.test("szip, n-bit and scale-offset are left to HDF5", { skip: !hasH5wasm() }, async (t) => {
  t.equal(told([filter(4, 141, 8, 8, 8)]), "hdf5-filters 1-0");
  t.equal(told([SHUFFLE, filter(4, 1), FLETCHER]), "shuffle hdf5-filters hdf5-fletcher32 0-0");
  t.equal(told([filter(6, 1), DEFLATE]), "hdf5-filters zlib 1-0");
  t.equal(told([filter(6, 1), DEFLATE, filter(4, 1)]), "hdf5-filters 1-0");
  t.match(told([filter(4, 141, 8, 8, 2 ** 31)]), /filter 4 \(szip\) has other client data/);
  t.match(told([filter(5, 8, 0, 2 ** 30, 1, 4)]), /filter 5 \(n-bit\) has other client data/);
  t.equal(told([filter(6, 2, 0, 16, 0, 4)]), "hdf5-filters 1-0");
  t.match(told([filter(6, 2, 0, 17, 0, 4)]), /filter 6 \(scale-offset\) has other client data/);
  t.match(told([DEFLATE, filter(4, 1)]), /filter 4 \(szip\) is not decoded behind a compressor/);
  t.match(told([filter(6, 1), filter(32000), filter(4, 1)]), /filter 32000 is not decoded between/);
});

t.test("chunks with other masks than most are variants, and lose the checksum behind them", async (t) => {
  const chunks = {
    offsets: Float64Array.of(100, 200, -1, 300, 400, 500),
    byteLengths: Uint32Array.of(10, 20, 0, 30, 40, 3),
    filterMasks: Uint32Array.of(4, 0, 0, 0, 1, 0),
  };
  t.same(storedCodecs([SHUFFLE, DEFLATE, FLETCHER], FLOAT, mapType(FLOAT), 64, chunks), {
    codecs: [
      { id: "shuffle", elementsize: 4 },
      { id: "zlib", level: 6 },
    ],
    compressorCount: 1,
    variants: [[{ id: "zlib", level: 6 }]],
    chunkVariants: Uint8Array.of(0, 0, 0, 0, 1, 0),
    byteLengths: Uint32Array.of(10, 16, 0, 26, 36, 0),
  });
  const { filterMasks: _, ...plain } = chunks;
  t.match(storedCodecs([DEFLATE], FLOAT, mapType(FLOAT), 64, plain), {
    byteLengths: chunks.byteLengths,
    variants: undefined,
  });
});

t.test("integers of fewer bits than their bytes have are decoded", async (t) => {
  const chunks = { offsets: Float64Array.of(100), byteLengths: Uint32Array.of(64) };
  const type: Hdf5Type = {
    kind: "integer",
    size: 2,
    isSigned: true,
    byteOrder: ">",
    precision: 12,
    bitOffset: 3,
  };
  t.match(storedCodecs([DEFLATE], type, mapType(type), 64, chunks), {
    codecs: [
      { id: "hdf5-bits", size: 2, precision: 12, offset: 3, signed: true, endian: "big" },
      { id: "zlib", level: 6 },
    ],
    servedFilters: [],
  });
});
