import t, { type Test } from "tap";
import type { Codec } from "../../src/codec/codec.js";
import { CODECS } from "../../src/codec/codecs.js";
import { type KernelMemory, OWN_MEMORY } from "../../src/codec/kernel/kernel-memory.js";
import { decodeSteps, encodeSteps } from "../../src/codec/run-steps.js";
import type { CodecSpec } from "../../src/zarr/codec-step.js";
import { encodedByteLength, encodeProblem, parseNumericType } from "../../src/zarr/plan/codec-rules.js";
import { clientMissing } from "../support/clients/require-client.js";
import { runNative } from "../support/codec/native-numcodecs.js";
import { sampleBytes } from "../support/codec/sample-bytes.js";
import { stepOf } from "../support/codec/steps.js";

const skip = clientMissing("numcodecs");

const INTEGERS = ["|i1", "|u1", "<i2", ">u2", "<u4", ">i4", "<i8", ">u8", "<u8"];
const FLOATS = ["<f4", ">f4", "<f8", ">f8"];
const SAMPLES = Object.entries(sampleBytes(4096));

const DELTAS: CodecSpec[] = [
  ...INTEGERS.map((dtype) => ({ id: "delta", dtype, astype: dtype })),
  ...[
    ["<i2", "<i4"],
    ["<u2", ">i8"],
    [">i4", "<i8"],
    ["<u4", "<u8"],
    ["|u1", "<i2"],
    ["<i8", "<i2"],
    ["<i4", "|i1"],
  ].map(([dtype, astype]) => ({ id: "delta", dtype: dtype as string, astype: astype as string })),
];

t.test(
  "delta of integers wraps around as numcodecs does, in every width and byte order",
  { skip },
  async (t) => {
    const cases = DELTAS.flatMap((codec) => SAMPLES.map(([name, bytes]) => ({ codec, name, bytes })));
    const encoded = await runNative(
      cases.map(({ codec, bytes }) => ({ operation: "encode", codec, bytes, dtype: codec.dtype as string })),
    );
    const decoded = await runNative(
      cases.map(({ codec }, index) => ({
        operation: "decode",
        codec,
        bytes: encoded[index] as Uint8Array,
        dtype: codec.astype as string,
      })),
    );
    for (const [index, { codec, name, bytes }] of cases.entries()) {
      const label = `${JSON.stringify(codec)} of ${name}`;
      const step = stepOf(codec, bytes.length);
      const native = encoded[index] as Buffer;
      t.ok((decoded[index] as Buffer).equals(await decodeSteps(native, [step], label)), `decode ${label}`);
      if (encodeProblem(codec) !== undefined) continue;
      const ours = await encodeSteps(bytes, [step], label);
      t.ok(native.equals(ours), `encode ${label}`);
      t.same(Buffer.compare(await decodeSteps(ours, [step], label), bytes), 0, `both ways ${label}`);
    }
  },
);

t.test(
  "delta of floats is decoded with the rounding of numcodecs, and never encoded",
  { skip },
  async (t) => {
    const codecs = [
      ...FLOATS.map((dtype) => ({ id: "delta", dtype, astype: dtype })),
      { id: "delta", dtype: "<f8", astype: "<f4" },
      { id: "delta", dtype: "<f4", astype: "<i2" },
    ];
    await checkDecoding(t, codecs);
    for (const codec of codecs) t.match(encodeProblem(codec), /round/, JSON.stringify(codec));
  },
);

t.test("fixedscaleoffset is decoded with the arithmetic of numpy", { skip }, async (t) => {
  const codecs = (
    [
      ["<f8", "|u1", 10, 1000],
      ["<f8", "<i2", 100.5, 0.25],
      ["<f4", ">i4", 3, 273.15],
      [">f8", "<u4", 0.1, -7],
      ["<f4", "<f4", 3, 0.1],
      ["<f8", "<f8", 7, 0.3],
    ] as const
  ).map(([dtype, astype, scale, offset]) => ({ id: "fixedscaleoffset", dtype, astype, scale, offset }));
  await checkDecoding(t, codecs);
});

async function checkDecoding(t: Test, codecs: readonly (CodecSpec & { astype: string })[]): Promise<void> {
  const jobs = codecs.map((codec) => {
    const { itemSize } = parseNumericType(codec.astype) as { itemSize: number };
    const bytes = new Uint8Array(Array.from({ length: 512 * itemSize }, (_, index) => (index * 37) % 61));
    return { operation: "decode" as const, codec, bytes, dtype: codec.astype };
  });
  const answers = await runNative(jobs);
  for (const [index, { codec, bytes }] of jobs.entries()) {
    const expected = answers[index] as Buffer;
    const label = JSON.stringify(codec);
    t.ok(expected.equals(await decodeSteps(bytes, [stepOf(codec, expected.length)], label)), label);
  }
}

t.test("bitround and quantize are left as they are", async (t) => {
  const bytes = new Uint8Array([1, 2, 3, 4]);
  for (const codec of [
    { id: "bitround", keepbits: 3 },
    { id: "quantize", digits: 2, dtype: "<f4", astype: "<f4" },
  ]) {
    t.same(await decodeSteps(bytes, [stepOf(codec, 4)], ""), bytes);
    t.same(await encodeSteps(bytes, [stepOf(codec, 4)], ""), bytes);
  }
});

t.test("delta of integers stored as floats is added up in floats", { skip }, async (t) => {
  const samples = {
    "<f4": new Float32Array([-2, 0.5, 0.5, 0.75, 3, -1.5, 100, 7, 16_777_216, 1, 1, -16_777_216]),
    "<f8": new Float64Array([-2, 0.5, 0.5, 0.75, 3, -1.5, 100, 7, 16_777_216, 1, 1, -16_777_216]),
  };
  const jobs = (["<i2", ">i4", "<u4"] as const).flatMap((dtype) =>
    (["<f4", "<f8"] as const).map((astype) => {
      const count = dtype === "<i2" ? 8 : 12;
      const bytes = new Uint8Array(samples[astype].slice(dtype === "<u4" ? 4 : 0, count).buffer);
      const codec: CodecSpec = { id: "delta", dtype, astype };
      return { operation: "decode" as const, codec, bytes, dtype: astype };
    }),
  );
  const answers = await runNative(jobs);
  for (const [index, { codec, bytes }] of jobs.entries()) {
    const expected = answers[index] as Buffer;
    const label = JSON.stringify(codec);
    t.same([...(await decodeSteps(bytes, [stepOf(codec, expected.length)], label))], [...expected], label);
  }
});

const FILTERS: CodecSpec[] = [
  ...DELTAS,
  ...FLOATS.map((dtype) => ({ id: "delta", dtype, astype: dtype })),
  { id: "delta", dtype: "<f4", astype: "<i2" },
  { id: "delta", dtype: "<i4", astype: "<f8" },
  { id: "fixedscaleoffset", dtype: "<f8", astype: "<i2", scale: 10, offset: 3 },
  { id: "fixedscaleoffset", dtype: ">f4", astype: "<u2", scale: 10, offset: 3 },
  { id: "fixedscaleoffset", dtype: "<f4", astype: ">f4", scale: 10, offset: 3 },
  { id: "crc32" },
  { id: "adler32" },
  { id: "crc32c" },
];

/** Bytes of which a quarter is at an end of its range, so that sums and differences carry and wrap around. */
function extremes(byteLength: number): Uint8Array {
  let state = 7;
  return new Uint8Array(byteLength).map(() => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    const byte = state >>> 24;
    return byte < 32 ? 0 : byte < 64 ? 0xff : byte;
  });
}

/** Memory in which everything lies behind 64 bytes of something else, and is not zeroed. */
const USED_MEMORY: KernelMemory = {
  ...OWN_MEMORY,
  allocate: (byteLength) => new Uint8Array(byteLength + 128).fill(0xaa).subarray(64, 64 + byteLength),
};

t.test(
  "filters do the same at every address, for any number of items, in memory they are given",
  async (t) => {
    for (const codec of FILTERS) {
      const filter = CODECS[codec.id] as Codec;
      const sizeOf = (type: unknown) => parseNumericType(type as string)?.itemSize ?? 1;
      for (const count of [0, 1, 2, 3, 4, 5, 7, 2047, 2049]) {
        const decodedLength = count * sizeOf(codec.dtype);
        const step = stepOf(codec, decodedLength);
        const isChecksum = codec.dtype === undefined;
        const bytes = extremes(count * sizeOf(codec.astype));
        const encoded = isChecksum ? ((await filter.encode?.(bytes, step)) as Uint8Array) : bytes;
        const label = `${JSON.stringify(codec)} of ${count} items`;
        const before = encoded.slice();
        const decoded = await filter.decode(encoded, step);
        t.equal(decoded.length, decodedLength, label);
        const elsewhere = new Uint8Array(new SharedArrayBuffer(encoded.length + 16));
        for (let offset = 0; offset < 9; offset++) {
          elsewhere.set(encoded, offset);
          const view = elsewhere.subarray(offset, offset + encoded.length);
          const again = await filter.decode(view, step, USED_MEMORY);
          if (Buffer.compare(again, decoded) !== 0) t.fail(`decode ${label} at ${offset}`);
          if (Buffer.compare(view, before) !== 0) t.fail(`input changed: ${label}`);
          if (encodeProblem(codec) !== undefined || filter.encode === undefined) continue;
          const plain = new Uint8Array(decodedLength + 16);
          plain.set(decoded, offset);
          const back = await filter.encode(plain.subarray(offset, offset + decodedLength), step, USED_MEMORY);
          const undone = await filter.decode(back, step);
          if (Buffer.compare(undone, decoded) !== 0) t.fail(`encode ${label} at ${offset}`);
          if (Buffer.compare(plain.subarray(offset, offset + decodedLength), decoded) !== 0) {
            t.fail(`input changed: ${label}`);
          }
        }
        if (!isChecksum && decodedLength > 0) {
          const cut = extremes(bytes.length + 1);
          if (sizeOf(codec.astype) > 1)
            t.throws(() => filter.decode(cut, step), { code: "corrupt-chunk" }, label);
        }
      }
    }
  },
);

async function decode(codec: CodecSpec, bytes: Uint8Array): Promise<Uint8Array> {
  return await (CODECS[codec.id] as (typeof CODECS)[string]).decode(bytes, stepOf(codec, null));
}

t.test("repack takes padding out of items, and reverses numbers", async (t) => {
  const codec: CodecSpec = {
    id: "repack",
    itemSize: 6,
    pieces: [
      [0, 1, 1],
      [3, 2, 1],
    ],
  };
  t.same(
    await decode(codec, new Uint8Array([1, 99, 99, 2, 3, 99, 4, 99, 99, 5, 6, 99])),
    new Uint8Array([1, 2, 3, 4, 5, 6]),
  );
  t.equal(encodedByteLength(codec, 6), 12);
  t.same(
    await decode(
      {
        id: "repack",
        itemSize: 5,
        pieces: [
          [0, 4, 2],
          [4, 1, 1],
        ],
      },
      new Uint8Array([1, 2, 3, 4, 5]),
    ),
    new Uint8Array([2, 1, 4, 3, 5]),
  );
  await t.rejects(decode(codec, new Uint8Array(7)), { code: "corrupt-chunk" });
});

t.test("fixed-text writes texts of a fixed length as vlen-utf8 and vlen-bytes do", async (t) => {
  const item = (text: string) => {
    const content = Buffer.from(text);
    return [content.length, 0, 0, 0, ...content];
  };
  const texts = ["aé", "", "\0\u{1f30d}"];
  const expected = [3, 0, 0, 0, ...texts.flatMap(item)];
  for (const isBigEndian of [false, true]) {
    const bytes = Buffer.alloc(24);
    texts.forEach((text, index) => {
      Array.from(text).forEach((character, at) => {
        const code = character.codePointAt(0)!;
        if (isBigEndian) bytes.writeUInt32BE(code, index * 8 + at * 4);
        else bytes.writeUInt32LE(code, index * 8 + at * 4);
      });
    });
    const codec = {
      id: "fixed-text",
      dtype: isBigEndian ? ">U2" : "<U2",
      filter: "vlen-utf8",
      byteLength: 24,
    };
    t.same([...(await decode(codec, bytes))], expected);
    await t.rejects(decode(codec, bytes.subarray(8)), { code: "corrupt-chunk" }, "another length");
    bytes.fill(0xff, 0, 4);
    await t.rejects(decode(codec, bytes), RangeError, "no character");
    bytes.fill(0, 0, 4);
    bytes.set(isBigEndian ? [0, 0, 0xd8, 0] : [0, 0xd8, 0, 0]);
    await t.rejects(decode(codec, bytes), { code: "corrupt-chunk" }, "half of a surrogate pair");
  }
  const ofBytes = { id: "fixed-text", dtype: "|S2", filter: "vlen-bytes", byteLength: 6 };
  t.same(
    [...(await decode(ofBytes, new Uint8Array([0, 7, 255, 0, 0, 0])))],
    [3, 0, 0, 0, 2, 0, 0, 0, 0, 7, 1, 0, 0, 0, 255, 0, 0, 0, 0],
  );
});

t.test("hdf5-text clears what is behind the end of strings", async (t) => {
  const bytes = Buffer.from("ab\0ca   full b b");
  const terminated = await decode({ id: "hdf5-text", itemSize: 4, padding: "null-terminated" }, bytes);
  t.equal(Buffer.from(terminated).toString("latin1"), "ab\0\0a   full b b");
  const spaced = await decode({ id: "hdf5-text", itemSize: 4, padding: "space-padded" }, bytes);
  t.equal(Buffer.from(spaced).toString("latin1"), "ab\0ca\0\0\0full b b");
  t.equal(bytes.toString("latin1"), "ab\0ca   full b b", "the input stays as it is");
});

t.test("hdf5-text decodes UTF-8 to four bytes per character", async (t) => {
  const decodeTexts = async (padding: string, bytes: Uint8Array) => {
    const codec = { id: "hdf5-text", itemSize: 4, padding, charset: "utf-8" };
    t.equal(encodedByteLength(codec, 16), 4);
    const decoded = await decode(codec, bytes);
    const view = new DataView(decoded.buffer, decoded.byteOffset, decoded.byteLength);
    return Array.from({ length: decoded.length / 4 }, (_, i) => view.getUint32(i * 4, true));
  };
  const codes = (text: string) => Array.from(text, (character) => character.codePointAt(0));
  const bytes = Buffer.from("\u00e9\0c\u{1d11e}a   ");
  t.same(await decodeTexts("null-terminated", bytes), codes("\u00e9\0\0\0\u{1d11e}\0\0\0a   "));
  t.same(await decodeTexts("null-padded", bytes), codes("\u00e9\0c\0\u{1d11e}\0\0\0a   "));
  t.same(await decodeTexts("space-padded", bytes), codes("\u00e9\0c\0\u{1d11e}\0\0\0a\0\0\0"));
  const broken = new Uint8Array([0xff, 0xfe, 0x61, 0xc3]);
  t.same(await decodeTexts("null-padded", broken), codes("\ufffd\ufffda\ufffd"), "bytes that are no UTF-8");
  t.same(await decodeTexts("null-padded", Buffer.from("\ufeffa")), codes("\ufeffa\0\0"), "a byte order mark");
});
