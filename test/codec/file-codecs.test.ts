import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import fc from "fast-check";
import t from "tap";
import { encodeChunk } from "../../bench/codecs/numcodecs-js.js";
import type { Codec } from "../../src/codec/codec.js";
import { dropH5wasm, hasH5wasm, loadH5wasm } from "../../src/codec/file-formats/h5wasm-filters.js";
import { hasJpeg, jpeg } from "../../src/codec/file-formats/jpeg.js";
import { tiffLzw, tiffPackbits, tiffPredictor } from "../../src/codec/file-formats/tiff-codecs.js";
import { OWN_MEMORY } from "../../src/codec/kernel/kernel-memory.js";
import { decodeSteps } from "../../src/codec/run-steps.js";
import { ZpublishError } from "../../src/errors.js";
import type { CodecSpec } from "../../src/zarr/codec-step.js";
import { JPEG_TILES, type JpegTile } from "../support/codec/jpeg-tiles.js";
import { sampleOf } from "../support/codec/sample-bytes.js";
import { stepOf } from "../support/codec/steps.js";
import {
  encodeLzw,
  encodePackbits,
  predictFloats,
  predictItems,
  type Rows,
} from "../support/codec/tiff-encoders.js";
import { effort } from "../support/effort.js";

const bitshuffle = (elementsize: number, blocksize: number, cname: string | null): CodecSpec => ({
  id: "hdf5-bitshuffle",
  elementsize,
  blocksize,
  cname,
});

const REVERSIBLE: CodecSpec[] = [
  { id: "lzf" },
  { id: "hdf5-lz4" },
  { id: "hdf5-fletcher32" },
  ...[2, 3, 8].map((elementsize) => ({ id: "hdf5-shuffle", elementsize })),
  ...[1, 2, 4, 8].flatMap((size) => ["lz4", "zstd", null].map((cname) => bitshuffle(size, 64, cname))),
];

/** Chunks that h5py wrote, of 32 items of "<i2". */
const COUNTING = Array.from({ length: 32 }, (_, i) => ((i * 3) % 50) - 7);
const WRITTEN: readonly {
  readonly codecs: readonly CodecSpec[];
  readonly hex: string;
  readonly values?: readonly number[];
}[] = [
  {
    codecs: [{ id: "lzf" }],
    hex: "0600000100020000e02e05010100",
    values: Array.from({ length: 32 }, (_, i) => i % 3),
  },
  {
    codecs: [{ id: "hdf5-fletcher32" }],
    hex: "f9fffcffffff0200050008000b000e001100140017001a001d002000230026002900fafffdff00000300060009000c000f001200150018001b001e002100240002071a8a",
  },
  {
    codecs: [{ id: "hdf5-fletcher32" }, { id: "hdf5-shuffle", elementsize: 2 }, { id: "zlib" }],
    hex: "78dafbf9e73f132b07379fa088b894ac82b29ae6afbf0ccc6c9c3cfc42a212d2728a2a4c52ffffff674001687cf62e0018a40cab",
  },
];
const WRITTEN_BY_HDF5_ONLY: typeof WRITTEN = [
  {
    codecs: [{ id: "hdf5-filters", filters: [{ id: 4, values: [169, 8, 16, 32] }] }],
    hex: "40000000efff9c07c00c006ffe801400c00600327fedb6db740603e006ffd001bffe003003001800c9ffb6db6c",
  },
  {
    codecs: [
      { id: "hdf5-bits", size: 2, precision: 9, offset: 2, signed: true, endian: "little" },
      { id: "hdf5-filters", filters: [{ id: 5, values: [8, 0, 32, 1, 2, 0, 9, 2] }] },
    ],
    hex: "fcff3fe0202820160e088502e1a0e880462614febfa0001818120c078482a180d878422400",
  },
  {
    codecs: [
      {
        id: "hdf5-filters",
        filters: [
          {
            id: 6,
            values: [2, 0, 32, 0, 2, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1818321779, 1717989221, 7628147, 0],
          },
        ],
      },
    ],
    hex: "0600000008f9ffffffffffffff000000000000000000318930f49561b7a1927aadc0113f28d41359971f8a5a2b00",
  },
];

async function decodedBy(codecs: readonly CodecSpec[], bytes: Uint8Array): Promise<Uint8Array> {
  const withChecksum = codecs[0]?.id === "hdf5-fletcher32" ? 68 : 64;
  const steps = codecs.map((codec, i) => stepOf(codec, i === 0 ? 64 : withChecksum));
  return decodeSteps(bytes, steps.reverse(), "chunk 0");
}

t.test("what is encoded as HDF5's filters do is decoded, last parts of items included", async (t) => {
  for (const codec of REVERSIBLE) {
    for (const byteLength of [0, 8, 24, 520, 8192, 65_544]) {
      for (const kind of ["smooth", "noise", "words", "zeros"] as const) {
        const bytes = sampleOf(kind, byteLength);
        const encoded = await encodeChunk(bytes, stepOf(codec, byteLength));
        const decoded = await decodeSteps(encoded, [stepOf(codec, byteLength)], "chunk 0");
        if (Buffer.compare(decoded, bytes) !== 0)
          t.fail(`${JSON.stringify(codec)} of ${byteLength} ${kind} bytes`);
        const open = { ...stepOf(codec, null), maxDecodedByteLength: byteLength };
        if (Buffer.compare(await decodeSteps(encoded, [open], "chunk 0"), bytes) !== 0) {
          t.fail(`${JSON.stringify(codec)} of an unknown length`);
        }
      }
    }
  }
});

t.test("chunks that h5py wrote have its values", async (t) => {
  for (const { codecs, hex, values = COUNTING } of WRITTEN) {
    const decoded = await decodedBy(codecs, new Uint8Array(Buffer.from(hex, "hex")));
    t.same([...new Int16Array(decoded.slice().buffer)], values, codecs.map(({ id }) => id).join(" "));
  }
});

t.test("chunks that only HDF5 decodes are decoded by h5wasm", { skip: !hasH5wasm() }, async (t) => {
  for (const { codecs, hex, values = COUNTING } of WRITTEN_BY_HDF5_ONLY) {
    const bytes = new Uint8Array(Buffer.from(hex, "hex"));
    const decoded = await decodedBy(codecs, bytes);
    t.same([...new Int16Array(decoded.slice().buffer)], values, JSON.stringify(codecs));
    for (let i = 0; i < 200; i++) {
      const damaged = bytes.slice(0, i % 3 === 0 ? i % bytes.length : bytes.length);
      if (damaged.length > 0) damaged[(i * 7) % damaged.length]! ^= 1 << (i % 8);
      await decodedBy(codecs, damaged).then(
        ({ length }) => length === 64 || t.fail(`${length} bytes`),
        ({ code }) => code === "corrupt-chunk" || t.fail(code),
      );
    }
    const again = await decodedBy(codecs, bytes);
    t.same([...again], [...decoded], "damaged chunks leave nothing behind");
  }
});

t.test("HDF5 checks what it decodes", { skip: !hasH5wasm() }, async (t) => {
  const codec = { id: "hdf5-filters", filters: [{ id: 3, values: [] }] };
  const good = await encodeChunk(sampleOf("smooth", 64), stepOf({ id: "hdf5-fletcher32" }, 64));
  t.equal((await decodedBy([codec], good)).length, 64);
  const damaged = good.slice();
  damaged[5]! ^= 1;
  await t.rejects(decodedBy([codec], damaged), {
    code: "corrupt-chunk",
    message: /^chunk 0: hdf5-filters: HDF5 /,
  });
  const szip = { id: "hdf5-filters", filters: [{ id: 4, values: [169, 8, 16, 32] }] };
  await t.rejects(decodedBy([szip], Uint8Array.of(255, 255, 255, 127, 0, 0)), {
    message: /szip announces 2147483647 bytes/,
  });
  const unknown = { id: "hdf5-filters", filters: [{ id: 32_000, values: [] }] };
  await t.rejects(decodedBy([unknown], good), { code: "corrupt-chunk" });
});

t.test("an instance of h5wasm that is given up is followed by another", { skip: !hasH5wasm() }, async (t) => {
  const before = await loadH5wasm();
  t.equal(await loadH5wasm(), before);
  dropH5wasm();
  t.not(await loadH5wasm(), before);
  const { codecs, hex } = WRITTEN_BY_HDF5_ONLY[0]!;
  const decoded = await decodedBy(codecs, new Uint8Array(Buffer.from(hex, "hex")));
  t.same([...new Int16Array(decoded.slice().buffer)], COUNTING);
});

t.test("h5wasm keeps its files in memory", { skip: !hasH5wasm() }, async (t) => {
  const { FS } = await loadH5wasm();
  const path = `/zpublish-${process.pid}.h5`;
  FS.writeFile(path, Uint8Array.of(1));
  t.notOk(existsSync(path));
  FS.unlink(path);
});

t.test("bits that count are moved to the lower end, with their sign", async (t) => {
  const decode = async (codec: CodecSpec, bytes: readonly number[]) => [
    ...(await decodeSteps(Uint8Array.from(bytes), [stepOf(codec, bytes.length)], "x")),
  ];
  const nibbles = { id: "hdf5-bits", size: 1, precision: 4, offset: 2, endian: "little" };
  t.same(await decode({ ...nibbles, signed: false }, [0b11_0111_01]), [0b0111]);
  t.same(await decode({ ...nibbles, signed: true }, [0b00_1110_11]), [0b11111110]);
  const wide = { id: "hdf5-bits", size: 8, precision: 33, offset: 4, signed: true, endian: "big" };
  t.same(await decode(wide, [0xff, 0, 0, 0x10, 0, 0, 0, 0x0f]), [255, 255, 255, 255, 0, 0, 0, 0]);
  const odd = { id: "hdf5-bits", size: 4, precision: 20, offset: 0, signed: false, endian: "big" };
  t.same(await decode(odd, [0xff, 0xff, 1, 2]), [0, 0x0f, 1, 2]);
  await t.rejects(decode(odd, [1, 2, 3]), { code: "corrupt-chunk" });
});

t.test("chunks that lie about themselves are corrupt", async (t) => {
  const cases: readonly (readonly [CodecSpec, readonly number[]])[] = [
    [{ id: "lzf" }, [0x20, 0]],
    [{ id: "lzf" }, [0xe0]],
    [{ id: "lzf" }, [5, 1, 2]],
    [{ id: "hdf5-fletcher32" }, [1, 2, 3]],
    [{ id: "hdf5-fletcher32" }, [1, 2, 3, 4, 5, 6, 7, 8]],
    [{ id: "hdf5-lz4" }, [0, 0, 0, 0, 0, 0, 0]],
    [{ id: "hdf5-lz4" }, [0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0]],
    [{ id: "hdf5-lz4" }, [0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 4, 255, 255, 255, 255, 1]],
    [bitshuffle(4, 0, "lz4"), [0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0]],
    [bitshuffle(4, 0, "lz4"), [0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 33]],
    [bitshuffle(4, 0, "lz4"), [0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 32, 1]],
    [bitshuffle(4, 0, null), [1, 2, 3]],
    [bitshuffle(4, 12, null), [1, 2, 3, 4]],
  ];
  for (const [codec, bytes] of cases) {
    const step = { ...stepOf(codec, null), maxDecodedByteLength: 100 };
    await t.rejects(decodeSteps(Uint8Array.from(bytes), [step], "chunk 0"), {
      code: "corrupt-chunk",
      message: /^chunk 0: /,
    });
  }
  const huge = Uint8Array.from([255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 32]);
  for (const codec of [{ id: "hdf5-lz4" }, bitshuffle(1, 0, "lz4")]) {
    const step = { ...stepOf(codec, null), maxDecodedByteLength: 100 };
    await t.rejects(decodeSteps(huge, [step], "chunk 0"), { message: /at most 100/ });
  }
});

const RUNS = { numRuns: effort(1000) };

/** Bytes that repeat, so that tables fill and runs grow. */
const bytes = fc
  .array(fc.tuple(fc.uint8Array({ maxLength: 40 }), fc.integer({ min: 1, max: 60 })), { maxLength: 30 })
  .map((parts) =>
    Uint8Array.from(
      parts.flatMap(([part, count]) =>
        Array(count)
          .fill([...part])
          .flat(),
      ),
    ),
  );

async function decode(codec: Codec, encoded: Uint8Array, length: number): Promise<Uint8Array> {
  return codec.decode(encoded, stepOf({ id: "test" }, length));
}

for (const [name, codec, encode] of [
  ["LZW", tiffLzw, encodeLzw],
  ["PackBits", tiffPackbits, encodePackbits],
] as const) {
  t.test(`${name} decodes what was encoded`, async (t) => {
    await fc.assert(
      fc.asyncProperty(bytes, async (plain) => {
        t.equal(Buffer.compare(await decode(codec, encode(plain), plain.length), plain), 0);
      }),
      RUNS,
    );
  });

  t.test(`${name} ends with as many bytes as a chunk has, and says if there are fewer`, async (t) => {
    const plain = new Uint8Array(1000).map((_, index) => index % 7);
    const encoded = encode(plain);
    t.same(await decode(codec, encoded, 700), plain.subarray(0, 700));
    await t.rejects(decode(codec, encoded, 1001), { code: "corrupt-chunk" });
    await t.rejects(decode(codec, encoded.subarray(0, 5), 1000), { code: "corrupt-chunk" });
    await t.rejects(decode(codec, new Uint8Array(0), 1), { code: "corrupt-chunk" });
  });

  t.test(`${name} of noise is refused, or has the length of a chunk`, async (t) => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 600 }), fc.nat(3000), async (noise, length) => {
        try {
          t.equal((await decode(codec, noise, length)).length, length);
        } catch (error) {
          t.equal((error as ZpublishError).code, "corrupt-chunk");
        }
      }),
      RUNS,
    );
  });
}

t.test("the table of LZW fills, and begins again", async (t) => {
  const plain = new Uint8Array(200_000).map((_, index) => (index * index * 31 + (index >> 5)) & 0xff);
  t.equal(Buffer.compare(await decode(tiffLzw, encodeLzw(plain), plain.length), plain), 0);
});

t.test("LZW with the least significant bit first is refused by name", async (t) => {
  await t.rejects(decode(tiffLzw, Uint8Array.of(0, 1, 4, 16), 3), { message: /old-style LZW/ });
});

const rows = fc.record({
  itemSize: fc.constantFrom(1, 2, 4, 8),
  pixels: fc.integer({ min: 1, max: 40 }),
  step: fc.integer({ min: 1, max: 4 }),
  isBigEndian: fc.boolean(),
  count: fc.integer({ min: 1, max: 4 }),
  seed: fc.uint8Array({ minLength: 32, maxLength: 32 }),
  /** Memory that is not aligned takes the general way. */
  offset: fc.integer({ min: 0, max: 3 }),
});

for (const [predictor, predict] of [
  [2, predictItems],
  [3, predictFloats],
] as const) {
  t.test(`predictor ${predictor} restores items of every size, order and number of bands`, async (t) => {
    await fc.assert(
      fc.asyncProperty(rows, async ({ itemSize, pixels, step, isBigEndian, count, seed, offset }) => {
        const form: Rows = { itemSize, rowItems: pixels * step, step, isBigEndian };
        const plain = new Uint8Array(count * form.rowItems * itemSize).map(
          (_, index) => ((seed[index % 32] as number) * (1 + (index >> 5))) & 0xff,
        );
        const codec = { id: "tiff-predictor", predictor, ...form };
        const memory = {
          ...OWN_MEMORY,
          allocate: (length: number) => new Uint8Array(new ArrayBuffer(length + offset), offset, length),
        };
        const decoded = await tiffPredictor.decode(predict(plain, form), stepOf(codec, plain.length), memory);
        t.same(decoded, plain);
      }),
      RUNS,
    );
  });
}

t.test("rows that are not whole are refused", async (t) => {
  const codec = { id: "tiff-predictor", predictor: 2, itemSize: 2, rowItems: 4, step: 1, isBigEndian: false };
  t.throws(() => tiffPredictor.decode(new Uint8Array(10), stepOf(codec, 10)), ZpublishError);
});

const skip = hasJpeg() ? false : "the optional package is not installed";

async function decodeJpeg(stream: Uint8Array, tile: JpegTile, width = 16, height = 16): Promise<Uint8Array> {
  const { components, isYcbcr, tables } = tile;
  const codec = { id: "jpeg", width, components, isYcbcr, tables };
  return jpeg.decode(stream, stepOf(codec, width * height * components));
}

function bytesOf({ tile }: JpegTile): Buffer {
  return Buffer.from(tile, "base64");
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

for (const tile of JPEG_TILES) {
  t.test(`pixels of ${tile.name} are those of GDAL`, { skip }, async (t) => {
    t.equal(sha256(await decodeJpeg(bytesOf(tile), tile)), tile.pixels);
  });
}

t.test("TIFF's tag says the colours, not what applications wrote into the stream", { skip }, async (t) => {
  const [, , rgb] = JPEG_TILES;
  const jfif = Buffer.from("ffe000104a46494600010100000100010000", "hex");
  const stream = bytesOf(rgb);
  const marked = Buffer.concat([stream.subarray(0, 2), jfif, stream.subarray(2)]);
  t.equal(sha256(await decodeJpeg(marked, rgb)), rgb.pixels);
});

t.test("streams of other dimensions are refused before memory is allocated", { skip }, async (t) => {
  const [grey, colours] = JPEG_TILES;
  for (const [width, height] of [
    [8, 32],
    [16, 8],
    [16, 32],
    [32, 32],
  ] as const) {
    t.throws(() => decodeNow(grey, width, height), { code: "corrupt-chunk" });
  }
  t.throws(
    () => jpeg.decode(bytesOf(colours), stepOf({ id: "jpeg", width: 16, components: 1, tables: "" }, 256)),
    {
      code: "corrupt-chunk",
    },
  );
  const huge = bytesOf(grey);
  const frame = huge.indexOf(Uint8Array.of(0xff, 0xc0));
  huge.fill(0xff, frame + 5, frame + 9);
  t.throws(() => jpeg.decode(huge, stepOf({ id: "jpeg", width: 16, components: 1, tables: "" }, 256)), {
    code: "corrupt-chunk",
  });
});

function decodeNow({ components, isYcbcr, tables, tile }: JpegTile, width: number, height: number): unknown {
  const codec = { id: "jpeg", width, components, isYcbcr, tables };
  return jpeg.decode(Buffer.from(tile, "base64"), stepOf(codec, width * height * components));
}
