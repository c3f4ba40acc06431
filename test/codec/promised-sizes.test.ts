import nodeZlib from "node:zlib";
import t from "tap";
import { decodeSteps } from "../../src/codec/run-steps.js";
import { ZpublishError } from "../../src/errors.js";
import { bloscFrame, FLAG, INNER, uint32 } from "../support/codec/blosc-frame.js";
import { FOUR_BLOCKS, LZ4, ONE_BLOCK, PLAIN, packed, streamFrame } from "../support/codec/hostile-frame.js";
import { reportFailures } from "../support/codec/report-failures.js";
import { stepOf } from "../support/codec/step.js";
import { zstdFrame, zstdPatterns, zstdRuns } from "../support/codec/zstd-frames.js";

t.setTimeout(240_000);

/** A chunk that promises more than is planned, or holds it. */
interface GreedyChunk {
  readonly name: string;
  readonly codec: string;
  readonly chunk: Uint8Array;
}

/** What the plan allows, or expects. */
const PLANNED_BYTES = PLAIN.length;

/** What all of them together may take: far more than is planned, and far less than any of them promises. */
const ALLOWED_BYTES = 64 * 2 ** 20;

/** What each of the bombs decodes to. */
const BOMB_BYTES = 512 * 2 ** 20;

const PROMISES = [2 ** 29, 2 ** 30, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 16, 2 ** 32 - 1];

t.test("nothing is allocated for what is not planned", async (t) => {
  const chunks = [...promises(), ...bombs()];
  const failures: string[] = [];
  const rssBefore = process.resourceUsage().maxRSS;
  for (const { name, codec, chunk } of chunks) {
    for (const decodedByteLength of [PLANNED_BYTES, null]) {
      const step = { ...stepOf({ id: codec }, decodedByteLength), maxDecodedByteLength: PLANNED_BYTES };
      const before = process.memoryUsage().arrayBuffers;
      try {
        const { length } = await decodeSteps(chunk, [step], "x");
        failures.push(`${codec}: ${name}: decoded to ${length} bytes`);
      } catch (error) {
        const isCorrupt = error instanceof ZpublishError && error.code === "corrupt-chunk";
        if (!isCorrupt) failures.push(`${codec}: ${name}: ${error}`);
      }
      const taken = process.memoryUsage().arrayBuffers - before;
      if (taken > ALLOWED_BYTES) failures.push(`${codec}: ${name}: ${taken} bytes allocated`);
    }
  }
  reportFailures(t, failures, chunks.length);
  // Unlike the sum above it also sees what was given back, and what is no ArrayBuffer; it counts KiB.
  const grown = (process.resourceUsage().maxRSS - rssBefore) * 1024;
  t.ok(grown < ALLOWED_BYTES, `grown by ${grown} bytes`);
});

/** Headers that promise what is not there. */
function* promises(): Generator<GreedyChunk> {
  for (const size of PROMISES) {
    const frames = {
      [`${size} bytes`]: { ...ONE_BLOCK, byteLength: size },
      [`${size} bytes in blocks of 1 KiB`]: { ...ONE_BLOCK, byteLength: size, blockSize: 1024 },
      [`${size} bytes in blocks of 1 byte`]: { ...ONE_BLOCK, byteLength: size, blockSize: 1 },
      [`${size} bytes, copied`]: { ...ONE_BLOCK, flags: LZ4 | FLAG.copied, byteLength: size },
      [`blocks of ${size} bytes`]: {
        ...FOUR_BLOCKS,
        flags: LZ4 | FLAG.shuffle,
        typeSize: 4,
        blockSize: size,
        blocks: [[packed(PLAIN.subarray(1))]],
      },
      [`streams of ${size} bytes`]: { ...FOUR_BLOCKS, streamLength: () => size },
    };
    for (const [name, frame] of Object.entries(frames)) {
      yield { name, codec: "blosc", chunk: bloscFrame(frame) };
    }
    yield { name: `${size} bytes`, codec: "lz4", chunk: Buffer.concat([uint32(size), packed(PLAIN)]) };
    yield { name: `${size} bytes`, codec: "zstd", chunk: zstdFrame(PLAIN, size) };
    yield {
      name: `zstd that promises ${size} bytes`,
      codec: "blosc",
      chunk: bloscFrame(streamFrame(INNER.zstd, zstdFrame(PLAIN, size))),
    };
    const snappyLength = [0, 7, 14, 21, 28].map((bits) => ((size / 2 ** bits) & 127) | (bits < 28 ? 128 : 0));
    yield {
      name: `Snappy that promises ${size} bytes`,
      codec: "blosc",
      chunk: bloscFrame(streamFrame(INNER.snappy, Uint8Array.of(...snappyLength, 0, 1))),
    };
  }
}

/** Chunks that do hold half a gigabyte. */
function* bombs(): Generator<GreedyChunk> {
  const deflated = deflatedZeros();
  const zlibBomb = Buffer.concat([Uint8Array.of(0x78, 0x9c), deflated]);
  yield { name: "a bomb", codec: "zlib", chunk: zlibBomb };
  yield { name: "a bomb of zlib", codec: "blosc", chunk: bloscFrame(streamFrame(INNER.zlib, zlibBomb)) };
  const gzipHeader = nodeZlib.gzipSync(new Uint8Array(0)).subarray(0, 10);
  yield { name: "a bomb", codec: "gzip", chunk: Buffer.concat([gzipHeader, deflated]) };
  const small = nodeZlib.gzipSync(PLAIN);
  yield {
    name: "a bomb behind the whole chunk",
    codec: "gzip",
    chunk: Buffer.concat([small, gzipHeader, deflated]),
  };

  for (const [what, frame] of Object.entries({
    runs: zstdRuns(BOMB_BYTES),
    patterns: zstdPatterns(BOMB_BYTES),
  })) {
    const behind = Buffer.concat([zstdFrame(PLAIN), frame]);
    yield { name: `a bomb of ${what} that does not say its size`, codec: "zstd", chunk: frame };
    yield { name: `a bomb of ${what} behind the whole chunk`, codec: "zstd", chunk: behind };
    yield {
      name: `a bomb of ${what} in zstd`,
      codec: "blosc",
      chunk: bloscFrame(streamFrame(INNER.zstd, frame)),
    };
  }

  const longMatch = Buffer.concat([
    Uint8Array.of(0x1f, 7, 1, 0),
    new Uint8Array(Math.ceil(BOMB_BYTES / 255)).fill(255),
    Uint8Array.of(0, 0),
  ]);
  yield { name: "a bomb", codec: "lz4", chunk: Buffer.concat([uint32(PLANNED_BYTES), longMatch]) };
  yield { name: "a bomb of LZ4", codec: "blosc", chunk: bloscFrame({ ...ONE_BLOCK, blocks: [[longMatch]] }) };
}

/** Deflated zeros without their end. */
function deflatedZeros(): Uint8Array {
  const some = 8 * 2 ** 20;
  const piece = nodeZlib.deflateRawSync(new Uint8Array(some), {
    finishFlush: nodeZlib.constants.Z_FULL_FLUSH,
  });
  return Buffer.concat(Array.from({ length: BOMB_BYTES / some }, () => piece));
}
