import t from "tap";
import { registry } from "zarrita";
import { encodeChunk } from "../../bench/codecs/numcodecs-js.js";
import { createRandom } from "../../bench/random.js";
import { decodeSteps } from "../../src/codec/run-steps.js";
import { DECODED_BYTES, registerCodecs } from "../../src/explore/worker/codecs/codec-registry.js";
import { xxh64 } from "../../src/explore/worker/codecs/decoders.js";
import type { CodecSpec } from "../../src/zarr/codec-step.js";
import { bloscFrame, INNER, snappyStream } from "../support/codec/blosc-frame.js";
import { PLAIN, streamFrame } from "../support/codec/hostile-frame.js";
import { MUTATION_KINDS, mutations } from "../support/codec/mutate-chunk.js";
import { SAMPLE_KINDS, sampleOf } from "../support/codec/sample-bytes.js";
import { stepOf } from "../support/codec/step.js";
import { zstdFrame, zstdPatterns, zstdRuns } from "../support/codec/zstd-frames.js";
import { effort } from "../support/effort.js";

t.setTimeout(120_000);
registerCodecs();

const BYTE_LENGTH = 6048;
/** Farther than LZ4 reaches, in several blocks of each format. */
const LONG_BYTE_LENGTH = 291_024;
const ROUNDS = effort(20);

const CODECS: readonly CodecSpec[] = [
  ...["lz4", "blosclz", "zlib", "zstd"].flatMap((cname) =>
    [0, 1, 2].flatMap((shuffle) =>
      [0, 512].map((blocksize) => ({ id: "blosc", cname, clevel: 5, shuffle, blocksize })),
    ),
  ),
  { id: "blosc", cname: "lz4", clevel: 0, shuffle: 1, blocksize: 0 },
  ...["lz4", "zstd", "gzip", "zlib"].map((id) => ({ id })),
  ...[2, 4, 12].map((elementsize) => ({ id: "shuffle", elementsize })),
];

t.test("whole chunks decode to what the server's decoders make of them", async (t) => {
  let index = 0;
  for (const codec of CODECS) {
    for (const byteLength of [0, 12, BYTE_LENGTH, LONG_BYTE_LENGTH]) {
      const kind = SAMPLE_KINDS[index++ % SAMPLE_KINDS.length]!;
      const itemSize = [1, 2, 4, 8, 12][index % 5]!;
      const sample = sampleOf(kind, byteLength, itemSize);
      const encoded = await encodeChunk(sample, stepOf(codec, sample.length, itemSize));
      const decoded = await decode(encoded, codec, sample.length);
      t.ok(Buffer.compare(decoded, sample) === 0, `${JSON.stringify(codec)}, ${byteLength} bytes of ${kind}`);
      // zarrita makes views of the whole buffer.
      t.ok(decoded.byteOffset === 0, "it begins with its buffer");
    }
  }
});

t.test("frames of zstd that no block is like are decoded", async (t) => {
  const random = createRandom(7);
  const noise = (length: number) => Uint8Array.from({ length }, () => Math.floor(random() * 256));
  const frames = [
    ...[1, 255, 256, 70_000].map((length) => [length, zstdFrame(noise(length))] as const),
    ...[2 ** 17, 3 * 2 ** 17].flatMap((length) =>
      [zstdRuns(length), zstdPatterns(length)].map((frame) => [length, frame] as const),
    ),
  ];
  for (const [byteLength, frame] of frames) {
    const expected = await decodeSteps(frame, [stepOf({ id: "zstd" }, byteLength)], "frame");
    for (const known of [byteLength, undefined])
      t.ok(Buffer.compare(await decode(frame, { id: "zstd" }, known), expected) === 0, `${byteLength} bytes`);
    await t.rejects(decode(frame, { id: "zstd" }, byteLength + 1));
  }
});

t.test("a checksum of zstd is checked", async (t) => {
  // XXH64 of "abc", from the reference implementation's tests: 44bc2cf5ad770999.
  t.equal(xxh64(Buffer.from("abc")).toString(16), "44bc2cf5ad770999");
  t.equal(xxh64(new Uint8Array(0)).toString(16), "ef46db3751d8e999");
  for (const length of [1, 5, 12, 31, 32, 39, 4000]) {
    const bytes = sampleOf("words", length);
    const frame = Buffer.concat([zstdFrame(bytes), Buffer.alloc(4)]);
    frame[4]! |= 4;
    frame.writeUInt32LE(Number(xxh64(bytes) & 0xffffffffn), frame.length - 4);
    t.ok(Buffer.compare(await decode(frame, { id: "zstd" }, bytes.length), bytes) === 0);
    // Node.js has the decoder from 22.15 on; without it, numcodecs.js checks as well.
    t.same(
      new Uint8Array(await decodeSteps(frame, [stepOf({ id: "zstd" }, length)], "frame")),
      new Uint8Array(bytes),
    );
    frame[10]! ^= 1;
    await t.rejects(decode(frame, { id: "zstd" }, bytes.length), { code: "corrupt-chunk" });
  }
});

t.test("Snappy in Blosc is decoded", async (t) => {
  const frame = bloscFrame(streamFrame(INNER.snappy, snappyStream(PLAIN.subarray(0, 60), PLAIN.length)));
  const expected = await decodeSteps(frame, [stepOf({ id: "blosc" }, PLAIN.length)], "frame");
  t.same(await decode(frame, { id: "blosc" }, PLAIN.length), new Uint8Array(expected));
});

t.test("damaged chunks are errors, or decode as the server decodes them", async (t) => {
  const failures: string[] = [];
  let lenient = 0;
  let count = 0;
  for (const [index, codec] of CODECS.entries()) {
    if (codec.id === "shuffle") continue;
    const itemSize = [1, 2, 4, 8][index % 4]!;
    const sample = sampleOf(SAMPLE_KINDS[index % SAMPLE_KINDS.length]!, BYTE_LENGTH, itemSize);
    const step = stepOf(codec, sample.length, itemSize);
    const encoded = await encodeChunk(sample, step);
    const damaged = mutations(encoded, [encoded], createRandom(index + 1));
    for (let round = 0; round < ROUNDS * MUTATION_KINDS.length; round++) {
      const { kind, bytes } = damaged.next().value;
      count++;
      const expected = await decodeSteps(bytes, [step], "chunk").catch(() => undefined);
      const decoded = await decode(bytes, codec, sample.length).catch(() => undefined);
      if (decoded === undefined && expected === undefined) continue;
      if (expected === undefined) lenient++;
      else if (decoded === undefined || Buffer.compare(decoded, expected) !== 0)
        failures.push(
          `${JSON.stringify(codec)} ${kind}: expected ${expected.length} bytes, received ${decoded?.length}`,
        );
      if (expected === undefined && !/zstd/.test(JSON.stringify(codec)))
        failures.push(`${JSON.stringify(codec)} ${kind}: expected an error`);
    }
  }
  t.same(failures.slice(0, 20), [], `${failures.length} of ${count}; ${lenient} lenient`);
});

async function decode(
  bytes: Uint8Array,
  { id, ...options }: CodecSpec,
  byteLength: number | undefined,
): Promise<Uint8Array> {
  const entry = await registry.get(`numcodecs.${id}`)!();
  const sized = byteLength === undefined ? options : { ...options, [DECODED_BYTES]: byteLength };
  const codec = entry.fromConfig(sized, undefined as never) as unknown as {
    decode(bytes: Uint8Array): Promise<Uint8Array>;
  };
  return codec.decode(new Uint8Array(bytes));
}
