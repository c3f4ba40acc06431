import nodeZlib from "node:zlib";
import t from "tap";
import { encodeChunk } from "../../bench/codecs/numcodecs-js.js";
import { CODECS } from "../../src/codec/codecs.js";
import { deflate } from "../../src/codec/deflate.js";
import { encoderRevision } from "../../src/codec/encoder-revision.js";
import { measureZstd } from "../../src/codec/plain/zstd-frame.js";
import { decodeSteps, encodeSteps } from "../../src/codec/run-steps.js";
import { encodeZstd } from "../../src/codec/zstd.js";
import { ZpublishError } from "../../src/errors.js";
import type { CodecSpec } from "../../src/zarr/codec-step.js";
import { encodeProblem, RULED_CODEC_IDS } from "../../src/zarr/plan/codec-rules.js";
import { createEncodingPlan, type EncodingRequest } from "../../src/zarr/plan/create-encoding-plan.js";
import { bloscFrame, FLAG, INNER, uint32 } from "../support/codec/blosc-frame.js";
import {
  FOUR_BLOCKS,
  LZ4,
  ONE_BLOCK,
  PLAIN,
  packed,
  streamFrame,
  zstdFrame,
  zstdPatterns,
  zstdRuns,
} from "../support/codec/hostile-frame.js";
import { sampleBytes, sampleOf } from "../support/codec/sample-bytes.js";
import { reportFailures, stepOf } from "../support/codec/steps.js";
import { storedArray } from "../support/datasets/stored-array.js";

t.setTimeout(240_000);

const COMPRESSORS: CodecSpec[] = [
  ...["lz4", "zstd", "zlib"].flatMap((cname) =>
    [0, 1, 2, -1].map((shuffle) => ({ id: "blosc", cname, clevel: 5, shuffle, blocksize: 0 })),
  ),
  { id: "blosc", cname: "lz4", clevel: 0, shuffle: 1, blocksize: 0 },
  { id: "blosc", cname: "zstd", clevel: 9, shuffle: 2, blocksize: 4096 },
  { id: "blosc", cname: "lz4", clevel: 9, shuffle: 1, blocksize: 1024 },
  { id: "zstd", level: 1 },
  { id: "zstd", level: -7 },
  { id: "zstd", level: 22 },
  ...[0, 1, 9].flatMap((level) => [
    { id: "gzip", level },
    { id: "zlib", level },
  ]),
  { id: "lz4", acceleration: 1 },
  { id: "lz4", acceleration: 50 },
];

const FILTERS: CodecSpec[] = [
  ...[1, 2, 4, 8].map((elementsize) => ({ id: "shuffle", elementsize })),
  { id: "crc32" },
  { id: "adler32" },
];

t.test("codecs have a rule and an implementation each", async (t) => {
  t.same(Object.keys(CODECS).sort(), [...RULED_CODEC_IDS].sort());
  for (const id of RULED_CODEC_IDS) {
    if (CODECS[id]?.encode === undefined)
      t.match(encodeProblem({ id }), /./, `${id} says that it only decodes`);
  }
});

t.test("encoding is the same every time, and the same for a view as for a whole buffer", async (t) => {
  for (const codec of [...COMPRESSORS, ...FILTERS]) {
    const bytes = sampleOf("smooth", 8192);
    const padded = new Uint8Array(new SharedArrayBuffer(8200));
    padded.set(bytes, 5);
    const step = stepOf(codec, bytes.length, 4);
    const first = await encodeSteps(bytes, [step], "");
    const second = await encodeSteps(padded.subarray(5, 5 + bytes.length), [step], "");
    t.same(Buffer.compare(first, second), 0, JSON.stringify(codec));
    t.not(first.buffer.byteLength > 2 ** 20, true, "no view of a WebAssembly heap");
  }
  const gzip = await encodeSteps(new Uint8Array(100), [stepOf({ id: "gzip", level: 1 }, 100)], "");
  t.same([...gzip.subarray(4, 8)], [0, 0, 0, 0], "no time of day in a gzip header");
});

t.test("a chunk of no bytes goes through every codec", async (t) => {
  for (const codec of [...COMPRESSORS, ...FILTERS]) {
    const step = stepOf(codec, 0);
    const encoded = await encodeSteps(new Uint8Array(0), [step], "");
    const decoded = await decodeSteps(encoded, [step], "");
    t.equal(decoded.length, 0, JSON.stringify(codec));
  }
});

t.test("an acceleration of LZ4 beyond its limits is taken for the limit", async (t) => {
  const bytes = sampleBytes(8192).smooth as Uint8Array;
  const encodedWith = (acceleration: number) =>
    encodeSteps(bytes, [stepOf({ id: "lz4", acceleration }, bytes.length)], "");
  for (const acceleration of [0, -1, -(2 ** 40)]) {
    t.equal(Buffer.compare(await encodedWith(acceleration), await encodedWith(1)), 0, `${acceleration}`);
  }
  for (const acceleration of [65_537, 2 ** 31 - 1, 2 ** 40]) {
    const decoded = await decodeSteps(
      await encodedWith(acceleration),
      [stepOf({ id: "lz4" }, bytes.length)],
      "",
    );
    t.equal(Buffer.compare(decoded, bytes), 0, `${acceleration}`);
  }
});

t.test("Blosc's shuffle by the names that GDAL writes", async (t) => {
  const bytes = sampleBytes(8192).smooth as Uint8Array;
  for (const [shuffle, name] of ["NONE", "BYTE", "BIT"].entries()) {
    const encodedWith = (option: number | string) => {
      const codec = { id: "blosc", cname: "lz4", clevel: 5, shuffle: option, blocksize: 0 };
      t.equal(encodeProblem(codec), undefined);
      return encodeSteps(bytes, [stepOf(codec, bytes.length, 4)], "");
    };
    t.equal(Buffer.compare(await encodedWith(name), await encodedWith(shuffle)), 0, name);
  }
});

const BYTES = sampleOf("smooth", 40_000);

const DAMAGED_COMPRESSORS: CodecSpec[] = [
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
  for (const codec of DAMAGED_COMPRESSORS) {
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
  for (const codec of DAMAGED_COMPRESSORS) {
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

const LEVELS = [-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

/** Bytes that nothing makes shorter. */
function noise(byteLength: number): Uint8Array {
  const bytes = new Uint8Array(byteLength);
  let state = 1;
  for (let i = 0; i < byteLength; i++) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}

/** Noise of few letters, which becomes shorter with every level. */
function letters(byteLength: number): Uint8Array {
  return noise(byteLength).map((byte) => (byte & 0x13) + 97);
}

const DEFLATED_BYTES = letters(50_000);

t.test("a gzip header names neither time nor system, as on every other machine", async (t) => {
  for (const [level, extra] of [
    [1, 4],
    [5, 0],
    [9, 2],
  ] as const) {
    const header = [...deflate("gzip", DEFLATED_BYTES, level).subarray(0, 10)];
    t.same(header, [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, extra, 255], `level ${level}`);
  }
});

t.test("levels are those of zlib: 0 stores, -1 is 6", async (t) => {
  const sizes = LEVELS.map((level) => deflate("zlib", DEFLATED_BYTES, level).length);
  t.equal(sizes[0], sizes[7], "-1 is 6");
  t.ok((sizes[1] as number) > DEFLATED_BYTES.length, "0 stores");
  t.same(
    sizes.slice(2).toSorted((a, b) => b - a),
    sizes.slice(2),
    "higher levels are no longer",
  );
  t.throws(() => deflate("zlib", DEFLATED_BYTES, 10), { code: "codec-failed", message: /^zlib: .*10/ });
});

t.test("members of a gzip chunk are joined; behind them may be zeros and nothing else", async (t) => {
  const members = [
    DEFLATED_BYTES.subarray(0, 20_000),
    DEFLATED_BYTES.subarray(20_000, 20_000),
    DEFLATED_BYTES.subarray(20_000),
  ];
  const chunk = Buffer.concat(members.map((member) => nodeZlib.gzipSync(member)));
  const step = stepOf({ id: "gzip" }, DEFLATED_BYTES.length);
  const isRight = async (...pieces: Uint8Array[]) =>
    Buffer.compare(await decodeSteps(Buffer.concat(pieces), [step], "x"), DEFLATED_BYTES) === 0;
  t.ok(await isRight(chunk));
  t.ok(await isRight(chunk, new Uint8Array(1000)));
  const refused: [string, Uint8Array, RegExp][] = [
    ["something else", Uint8Array.of(1, 2, 3), /incorrect header/],
    ["a broken member", Uint8Array.of(0x1f, 0x8b, 1, 2, 3), /unknown compression method/],
    ["half of another's beginning", Uint8Array.of(0x1f), /unexpected end/],
    ["one byte too many", nodeZlib.gzipSync(noise(1)), /more than the 50000 bytes expected/],
  ];
  for (const [name, behind, message] of refused) {
    await t.rejects(isRight(chunk, behind), { code: "corrupt-chunk", message }, name);
  }
  await t.rejects(isRight(chunk.subarray(0, -1)), { code: "corrupt-chunk", message: /unexpected end/ });
});

t.test("zstd says the content size, at every level it has", async (t) => {
  const sizes = new Map<number, number>();
  for (const level of [-131072, -7, -2, -1, 0, 1, 3, 19, 22, 1000]) {
    const step = stepOf({ id: "zstd", level }, DEFLATED_BYTES.length);
    const encoded = await encodeSteps(DEFLATED_BYTES, [step], "x");
    t.same(
      measureZstd(encoded),
      { min: DEFLATED_BYTES.length, max: DEFLATED_BYTES.length, frames: 1 },
      `level ${level}`,
    );
    t.equal(Buffer.compare(await decodeSteps(encoded, [step], "x"), DEFLATED_BYTES), 0, `level ${level}`);
    sizes.set(level, encoded.length);
  }
  t.equal(sizes.get(1000), sizes.get(22));
  t.ok((sizes.get(22) as number) < (sizes.get(1) as number));
  if (encodeZstd === undefined) {
    t.equal(sizes.get(-7), sizes.get(1), "numcodecs.js has no levels below 1");
    return;
  }
  t.ok((sizes.get(-131072) as number) > (sizes.get(1) as number), "levels below 0 are faster");
  t.equal(sizes.get(0), sizes.get(3));
  t.equal(sizes.get(-1), sizes.get(-2), "Node cannot be told -1");
});

const GZIP: CodecSpec = { id: "gzip", level: 5 };

t.test("plans that encode with it have another id, the others have not", async (t) => {
  const idOf = (codecs: CodecSpec[], asked: EncodingRequest, revision: string, absentIsServed = true) =>
    createEncodingPlan(storedArray({ codecs, fill: { served: 0, item: null, absentIsServed } }), asked, {
      encoderRevision: ({ id }) => (id === "gzip" ? revision : ""),
    }).plan.id;
  const differs = (...[codecs, asked, absent]: [CodecSpec[], EncodingRequest, boolean?]) =>
    idOf(codecs, asked, "one", absent) !== idOf(codecs, asked, "two", absent);
  t.ok(differs([], { compressor: GZIP }), "encoded");
  t.ok(differs([GZIP], { chunkShape: [2, 2] }), "decoded and encoded");
  t.ok(differs([GZIP], {}, false), "passed through, but absent chunks are encoded");
  t.notOk(differs([GZIP], {}), "passed through");
  t.notOk(differs([GZIP], { compressor: null }), "only decoded");
  t.notOk(differs([], { compressor: { id: "lz4" } }), "another codec");
});

t.test("what a library encodes names the library and the machine", async (t) => {
  const { zlib, zstd } = process.versions as Record<string, string | undefined>;
  const blosc = { id: "blosc", cname: "lz4", clevel: 5, shuffle: 1, blocksize: 0 };
  const ofZlib = `zlib ${zlib} ${process.arch}`;
  const rows: readonly (readonly [CodecSpec, string])[] = [
    [GZIP, ofZlib],
    [{ id: "zlib", level: 9 }, ofZlib],
    [{ ...blosc, cname: "zlib" }, ofZlib],
    [{ id: "zstd", level: 3 }, zstd === undefined ? "numcodecs.js" : `zstd ${zstd} ${process.arch}`],
    [blosc, ""],
    [{ id: "lz4", acceleration: 1 }, ""],
    [{ id: "of another plugin" }, ""],
  ];
  for (const [codec, revision] of rows) t.equal(encoderRevision(codec), revision, JSON.stringify(codec));
});
