import t from "tap";
import { encodeChunk } from "../../bench/codecs/numcodecs-js.js";
import { measureZstd } from "../../src/codec/plain/zstd-frame.js";
import { decodeSteps, encodeSteps } from "../../src/codec/run-steps.js";
import type { CodecSpec } from "../../src/zarr/codec-step.js";
import { sampleOf } from "../support/codec/sample-bytes.js";
import { stepOf } from "../support/codec/step.js";

const BYTES = sampleOf("smooth", 40_000);

const COMPRESSORS: CodecSpec[] = [
  ...["lz4", "blosclz", "zstd", "zlib"].flatMap((cname) =>
    [0, 1, 2].map((shuffle) => ({ id: "blosc", cname, clevel: 5, shuffle, blocksize: 8192 })),
  ),
  { id: "zstd", level: 1 },
  { id: "gzip", level: 1 },
  { id: "zlib", level: 1 },
  { id: "lz4", acceleration: 1 },
];

async function encodedBy(codec: CodecSpec): Promise<Uint8Array> {
  return encodeChunk(BYTES, stepOf(codec, BYTES.length));
}

t.test("a truncated chunk is corrupt, by name", async (t) => {
  for (const codec of COMPRESSORS) {
    const encoded = await encodedBy(codec);
    for (const length of [0, 1, 3, 15, 16, 17, encoded.length >> 1, encoded.length - 1]) {
      await t.rejects(
        decodeSteps(
          encoded.subarray(0, length),
          [stepOf(codec, BYTES.length)],
          "array 'a': stored chunk 0.1",
        ),
        { code: "corrupt-chunk", message: /^array 'a': stored chunk 0\.1: / },
        `${JSON.stringify(codec)} of ${length} bytes`,
      );
    }
  }
});

t.test("a chunk of another decoded length is corrupt, with both lengths, and is not decoded", async (t) => {
  for (const codec of COMPRESSORS) {
    const encoded = await encodedBy(codec);
    for (const expected of [0, 4, BYTES.length - 4, BYTES.length + 4]) {
      await t.rejects(decodeSteps(encoded, [stepOf(codec, expected)], "x"), {
        code: "corrupt-chunk",
        message: new RegExp(`${expected}`),
      });
    }
    const bound = { ...stepOf(codec, null), maxDecodedByteLength: 1000 };
    await t.rejects(decodeSteps(encoded, [bound], "x"), { code: "corrupt-chunk", message: /1000/ });
  }
});

t.test("wrong checksums and broken items are corrupt", async (t) => {
  for (const id of ["crc32", "adler32", "crc32c"]) {
    const bytes = new Uint8Array(Buffer.from("abcdefghijkl"));
    await t.rejects(decodeSteps(bytes, [stepOf({ id }, 8)], "x"), {
      message: /expected checksum [0-9a-f]{8}, received/,
    });
    await t.rejects(decodeSteps(bytes.subarray(0, 3), [stepOf({ id }, 0)], "x"), { code: "corrupt-chunk" });
  }
  await t.rejects(decodeSteps(new Uint8Array(6), [stepOf({ id: "shuffle", elementsize: 4 }, 6)], "x"), {
    message: "x: shuffle: expected a multiple of 4 bytes, received 6",
  });
  await t.rejects(decodeSteps(new Uint8Array(6), [stepOf({ id: "delta", dtype: "<i4" }, 6)], "x"), {
    message: "x: expected items of 4 bytes, received 6 bytes",
  });
});

t.test("zstd frames are measured without being decoded", async (t) => {
  const frame = await encodeSteps(BYTES, [stepOf({ id: "zstd", level: 1 }, BYTES.length)], "");
  t.same(measureZstd(frame), { min: BYTES.length, max: BYTES.length, frames: 1 });
  t.same(measureZstd(Buffer.concat([frame, frame])), {
    min: 2 * BYTES.length,
    max: 2 * BYTES.length,
    frames: 2,
  });
  const skippable = Buffer.from([0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
  t.same(measureZstd(Buffer.concat([skippable, frame])), { min: BYTES.length, max: BYTES.length, frames: 2 });
  const twice = Buffer.concat([skippable, frame, frame]);
  const decodedTwice = await decodeSteps(twice, [stepOf({ id: "zstd" }, 2 * BYTES.length)], "x");
  t.ok(Buffer.concat([BYTES, BYTES]).equals(decodedTwice), "all frames are decoded");
  t.equal(measureZstd(frame.subarray(0, -1)), undefined);
  t.equal(measureZstd(Buffer.from("not zstd at all")), undefined);
  // A frame that says no size: one run of 5 bytes, one raw block of 2.
  const unsized = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 0x58, 0x2a, 0, 0, 7, 0x11, 0, 0, 8, 9]);
  t.same(measureZstd(unsized), { min: 7, max: 7, frames: 1 });
  const decoded = await decodeSteps(unsized, [stepOf({ id: "zstd" }, 7)], "x");
  t.same([...decoded], [7, 7, 7, 7, 7, 8, 9]);
});
