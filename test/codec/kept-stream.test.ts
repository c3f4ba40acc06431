import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import nodeZlib from "node:zlib";
import t, { type Test } from "tap";
import { createRandom } from "../../bench/random.js";
import { deflate } from "../../src/codec/deflate.js";
import { keepStream, type StreamKind } from "../../src/codec/kept-stream.js";
import { inflate, inflateZlib } from "../../src/codec/zlib.js";
import { encodeZstd } from "../../src/codec/zstd.js";
import { sampleOf } from "./sample-bytes.js";
import { stepOf } from "./step.js";

t.setTimeout(120_000);

const { constants, createDeflate, createInflate, deflateSync, gzipSync, inflateSync } = nodeZlib;

const INFLATE: StreamKind = {
  create: createInflate,
  finish: constants.Z_FINISH,
  isReset: true,
  runOnce: () => {
    throw new Error("expected the kept stream");
  },
};

/** `t.same` looks at each byte by itself. */
function sameBytes(t: Test, found: Uint8Array | undefined, expected: Uint8Array, name: string): void {
  t.ok(found !== undefined && Buffer.compare(found, expected) === 0, name);
}

const LENGTHS = [0, 1, 63, 64, 65, 1000, 70_000, 300_000];

t.test("a stream decodes one after the other, in one piece and in many", async (t) => {
  const run = keepStream(INFLATE);
  for (const length of LENGTHS) {
    const bytes = sampleOf("words", length);
    const encoded = deflateSync(bytes);
    for (const chunkSize of [64, 100, length + 1, length + 64]) {
      sameBytes(t, run(encoded, { chunkSize }), bytes, `${length} bytes, ${chunkSize} at a time`);
    }
  }
});

t.test("a stream says what Node.js says of damaged bytes, and decodes the next ones", async (t) => {
  const bytes = sampleOf("words", 5000);
  const encoded = deflateSync(bytes);
  const run = keepStream(INFLATE);
  const damaged = {
    noise: sampleOf("noise", 500),
    nothing: new Uint8Array(0),
    short: encoded.subarray(0, 300),
    headless: encoded.subarray(2),
    flipped: encoded.map((byte, index) => (index === 700 ? byte ^ 0xff : byte)),
    sumless: encoded.map((byte, index) => (index === encoded.length - 1 ? byte ^ 1 : byte)),
  };
  for (const [name, input] of Object.entries(damaged)) {
    let expected = "";
    try {
      inflateSync(input);
    } catch (error) {
      expected = (error as Error).message;
    }
    t.not(expected, "", `${name} is damaged`);
    t.throws(() => run(input, { chunkSize: 6000 }), { message: expected }, name);
    sameBytes(t, run(encoded, { chunkSize: 6000 }), bytes, `behind ${name}`);
  }
  t.throws(() => run(encoded, { chunkSize: 100, maxOutputLength: 4999 }), { code: "ERR_BUFFER_TOO_LARGE" });
  sameBytes(t, run(encoded, { chunkSize: 100, maxOutputLength: 5000 }), bytes, "as much as may come out");
});

t.test("encoders write what a new one writes, whatever was before", async (t) => {
  for (const level of [1, 9, 0, 6, 1]) {
    for (const length of LENGTHS) {
      const bytes = sampleOf("words", length, 4, level);
      const encoded = deflate("zlib", bytes, level);
      const room = 2 * length + 200;
      sameBytes(t, encoded, deflateSync(bytes, { level, chunkSize: room }), `${length}, ${level}`);
      const step = stepOf({ id: "zlib", level }, length);
      sameBytes(t, inflate("zlib", inflateZlib, encoded, step), bytes, `${length}, ${level}, and back`);
    }
  }
});

t.test("what an encoder writes does not depend on what it wrote before", async (t) => {
  const random = createRandom(7);
  // Of few letters, in which matches are everywhere, also behind the end.
  const letters = (length: number) => new Uint8Array(length).map(() => 97 + Math.floor(random() ** 2 * 6));
  for (const format of ["gzip", "zlib"] as const) {
    for (const level of [-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]) {
      const differing: number[] = [];
      for (let round = 0; round < 60; round++) {
        const length = Math.floor(random() * (round % 2 === 0 ? 4_000 : 80_000));
        const bytes = letters(length);
        const fresh = (format === "gzip" ? gzipSync : deflateSync)(bytes, {
          level,
          chunkSize: 2 * length + 200,
        });
        // The system that Node.js was built for.
        if (format === "gzip") fresh[9] = 255;
        if (Buffer.compare(deflate(format, bytes, level), fresh) !== 0) differing.push(length);
      }
      t.strictSame(differing, [], `${format} ${level}`);
    }
  }
});

interface ZstdModule {
  zstdCompressSync(bytes: Uint8Array, options: object): Uint8Array;
}

if (encodeZstd !== undefined) {
  t.test("so does Zstandard's, where Node.js has it", async (t) => {
    const { zstdCompressSync } = nodeZlib as unknown as ZstdModule;
    for (const level of [1, 9, 3, 1]) {
      for (const length of LENGTHS) {
        const bytes = sampleOf("words", length, 4, level);
        const options = {
          params: { 100: level, 200: 1 },
          pledgedSrcSize: length,
          chunkSize: 2 * length + 200,
        };
        const expected = new Uint8Array(zstdCompressSync(bytes, options));
        sameBytes(t, encodeZstd?.(bytes, level), expected, `${length}, ${level}`);
      }
    }
  });
}

t.test("a Node.js whose streams are otherwise inside encodes and decodes as well", async (t) => {
  for (const inside of [{}, { _handle: {} }, { _handle: createDeflate(), _writeState: [] }]) {
    const run = keepStream({ ...INFLATE, create: () => inside, runOnce: inflateSync });
    const bytes = sampleOf("words", 1000);
    sameBytes(t, run(deflateSync(bytes), { chunkSize: 2000 }), bytes, Object.keys(inside).join(", "));
  }
});

t.test("threads that end in the midst of a chunk end alone", async (t) => {
  const program = fileURLToPath(new URL("end-threads.js", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [program, "200"]);
  t.equal(stdout, "200 ended\n");
});
