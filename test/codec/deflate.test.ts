import nodeZlib from "node:zlib";
import t from "tap";
import { deflate } from "../../src/codec/deflate.js";
import { measureZstd } from "../../src/codec/plain/zstd-frame.js";
import { decodeSteps, encodeSteps } from "../../src/codec/run-steps.js";
import { encodeZstd } from "../../src/codec/zstd.js";
import { stepOf } from "../support/codec/step.js";

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

const BYTES = letters(50_000);

t.test("a gzip header names neither time nor system, as on every other machine", async (t) => {
  for (const [level, extra] of [
    [1, 4],
    [5, 0],
    [9, 2],
  ] as const) {
    const header = [...deflate("gzip", BYTES, level).subarray(0, 10)];
    t.same(header, [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, extra, 255], `level ${level}`);
  }
});

t.test("levels are those of zlib: 0 stores, -1 is 6", async (t) => {
  const sizes = LEVELS.map((level) => deflate("zlib", BYTES, level).length);
  t.equal(sizes[0], sizes[7], "-1 is 6");
  t.ok((sizes[1] as number) > BYTES.length, "0 stores");
  t.same(
    sizes.slice(2).toSorted((a, b) => b - a),
    sizes.slice(2),
    "higher levels are no longer",
  );
  t.throws(() => deflate("zlib", BYTES, 10), { code: "codec-failed", message: /^zlib: .*10/ });
});

t.test("what does not become shorter is written in one piece all the same", async (t) => {
  for (const byteLength of [0, 1, 100, 8191, 65_535, 65_536, 300_001, 2 ** 20]) {
    const bytes = noise(byteLength);
    for (const level of LEVELS) {
      for (const format of ["gzip", "zlib"] as const) {
        const encoded = deflate(format, bytes, level);
        // Several pieces would have been put together in a buffer that just fits.
        const isOnePiece = encoded.buffer.byteLength > encoded.length;
        if (!isOnePiece) t.fail(`${format} level ${level} of ${byteLength} bytes came in pieces`);
        const decoded = format === "gzip" ? nodeZlib.gunzipSync(encoded) : nodeZlib.inflateSync(encoded);
        if (Buffer.compare(decoded, bytes) !== 0) t.fail(`${format} level ${level} of ${byteLength} bytes`);
      }
    }
  }
  t.pass();
});

t.test("members of a gzip chunk are joined; behind them may be zeros and nothing else", async (t) => {
  const members = [BYTES.subarray(0, 20_000), BYTES.subarray(20_000, 20_000), BYTES.subarray(20_000)];
  const chunk = Buffer.concat(members.map((member) => nodeZlib.gzipSync(member)));
  const step = stepOf({ id: "gzip" }, BYTES.length);
  const isRight = async (...pieces: Uint8Array[]) =>
    Buffer.compare(await decodeSteps(Buffer.concat(pieces), [step], "x"), BYTES) === 0;
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

t.test("decoding stops where more comes out than is expected, whatever else is known", async (t) => {
  const bomb = {
    gzip: nodeZlib.gzipSync(new Uint8Array(2 ** 24)),
    zlib: nodeZlib.deflateSync(new Uint8Array(2 ** 24)),
  };
  for (const id of ["gzip", "zlib"] as const) {
    const unknown = { ...stepOf({ id }, null), maxDecodedByteLength: 1000 };
    await t.rejects(decodeSteps(bomb[id], [unknown], "x"), {
      code: "corrupt-chunk",
      message: `x: ${id}: decodes to more than the 1000 bytes expected`,
    });
    const nothing = stepOf({ id }, 0);
    await t.rejects(decodeSteps(bomb[id], [nothing], "x"), { code: "corrupt-chunk" });
  }
});

t.test("zstd says the content size, at every level it has", async (t) => {
  const sizes = new Map<number, number>();
  for (const level of [-131072, -7, -2, -1, 0, 1, 3, 19, 22, 1000]) {
    const step = stepOf({ id: "zstd", level }, BYTES.length);
    const encoded = await encodeSteps(BYTES, [step], "x");
    t.same(measureZstd(encoded), { min: BYTES.length, max: BYTES.length, frames: 1 }, `level ${level}`);
    t.equal(Buffer.compare(await decodeSteps(encoded, [step], "x"), BYTES), 0, `level ${level}`);
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

t.test("zstd is decoded no further than expected, whether a frame says its size or not", async (t) => {
  const sized = await encodeSteps(new Uint8Array(2 ** 20), [stepOf({ id: "zstd", level: 1 }, 2 ** 20)], "");
  await t.rejects(decodeSteps(sized, [stepOf({ id: "zstd" }, 1000)], "x"), {
    message: "x: zstd: decodes to 1048576 bytes, expected 1000",
  });
  // Magic, a descriptor without size, a window of 1 KiB; one block of a byte, 100,000 times.
  const unsized = Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd, 0, 0, ...block(100_000, true), 7);
  const step = { ...stepOf({ id: "zstd" }, null), maxDecodedByteLength: 1000 };
  await t.rejects(decodeSteps(unsized, [step], "x"), { code: "corrupt-chunk", message: /expected/ });
  const twice = Buffer.concat([sized, sized]);
  t.equal((await decodeSteps(twice, [stepOf({ id: "zstd" }, 2 ** 21)], "x")).length, 2 ** 21, "two frames");
});

/** Header of a zstd block that repeats one byte. */
function block(byteLength: number, isLast: boolean): number[] {
  const header = (byteLength << 3) | (1 << 1) | (isLast ? 1 : 0);
  return [header & 0xff, (header >>> 8) & 0xff, header >>> 16];
}
