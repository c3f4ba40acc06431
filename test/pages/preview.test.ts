import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import type { ChunkOutcome } from "../../src/codec/make-chunk.js";
import { encodeSteps } from "../../src/codec/run-steps.js";
import type { ServedArray } from "../../src/dataset/dataset.js";
import type { JsonValue } from "../../src/json/json-value.js";
import { parseDataType } from "../../src/model/data-type.js";
import { formatItems } from "../../src/pages/format-items.js";
import { createPreviewService } from "../../src/pages/preview-service.js";
import type { ChunkTask } from "../../src/pool/chunk-task.js";
import { createTaskRunner } from "../../src/pool/run-chunk-task.js";
import type { StoredArray } from "../../src/zarr/stored-array.js";
import { clientMissing, PYTHON } from "../support/clients/require-client.js";
import { stepOf } from "../support/codec/steps.js";
import { storedArray } from "../support/datasets/stored-array.js";

const previews = createPreviewService(createTaskRunner());

async function look(stored: StoredArray) {
  return previews.values({ stored } as ServedArray);
}

/** An array in shared memory. */
function inMemory(
  shape: readonly number[],
  dtype: string,
  items: ArrayBufferView,
  changes: Partial<StoredArray> = {},
): StoredArray {
  const buffer = new SharedArrayBuffer(items.byteLength);
  new Uint8Array(buffer).set(new Uint8Array(items.buffer, items.byteOffset, items.byteLength));
  return storedArray({
    dtype,
    shape,
    chunkShape: shape,
    codecs: [],
    compressorCount: 0,
    chunks: { kind: "memory", buffer, byteOffset: 0, byteLength: items.byteLength },
    ...changes,
  });
}

t.test("the first six and the last three values are shown, and no value twice", async (t) => {
  const counting = (length: number) =>
    inMemory(
      [length],
      "<i2",
      new Int16Array(length).map((_, index) => index),
    );
  t.strictSame(await look(counting(100)), {
    first: ["0", "1", "2", "3", "4", "5"],
    last: ["97", "98", "99"],
  });
  t.strictSame(await look(counting(7)), { first: ["0", "1", "2", "3", "4", "5"], last: ["6"] });
  t.strictSame(await look(counting(2)), { first: ["0", "1"], last: [] });
  t.strictSame(await look(counting(0)), { first: [], last: [] });
  t.strictSame(await look(inMemory([], "<f4", Float32Array.of(0.1))), { first: ["0.1"], last: [] });
});

t.test("more dimensions are read row by row", async (t) => {
  const items = new Uint8Array(24).map((_, index) => index);
  t.strictSame(await look(inMemory([3, 8], "|u1", items)), {
    first: ["0", "1", "2", "3", "4", "5"],
    last: ["21", "22", "23"],
  });
  t.strictSame(await look(inMemory([12, 2], "|u1", items)), {
    first: ["0", "1", "2", "3", "4", "5"],
    last: ["21", "22", "23"],
  });
  t.strictSame(await look(inMemory([2, 12], "|u1", items, { axisOrder: [1, 0] })), {
    first: ["0", "2", "4", "6", "8", "10"],
    last: ["19", "21", "23"],
  });
});

t.test("CF times are dates, packed values are as stored", async (t) => {
  const hours = Int32Array.of(0, 6, 12);
  const units = "hours since 2000-01-01";
  t.strictSame(await look(inMemory([3], "<i4", hours, { attrs: { units } })), {
    first: ["2000-01-01T00:00:00", "2000-01-01T06:00:00", "2000-01-01T12:00:00"],
    last: [],
  });
  const packed = inMemory([3], "<i4", hours, { attrs: { units: "K", scale_factor: 0.5 } });
  t.strictSame(await look(packed), { first: ["0", "6", "12"], last: [] });
  const times = inMemory([1], "<M8[s]", BigInt64Array.of(86_400n), { attrs: { units } });
  t.strictSame(await look(times), { first: ["1970-01-02T00:00:00"], last: [] });
});

t.test("stored chunks are decoded, absent ones have the fill value", async (t) => {
  const directory = t.testdir();
  const stored = storedArray({
    shape: [10],
    chunkShape: [4],
    chunks: { kind: "files", directory, keyEncoding: { name: "v2", separator: "." } },
  });
  const raw = new Uint8Array(Float32Array.of(1, 2.5, -0, 1e20).buffer);
  const steps = stored.codecs.map((codec) => stepOf(codec, 16));
  writeFileSync(join(directory, "0"), await encodeSteps(raw, steps, "x"));
  t.strictSame(await look(stored), {
    first: ["1.0", "2.5", "-0.0", "1e+20", "nan", "nan"],
    last: ["nan", "nan", "nan"],
  });
});

t.test("texts of any length are read from their chunks", async (t) => {
  const directory = t.testdir();
  const stored = storedArray({
    dtype: "|O",
    shape: [5],
    chunkShape: [3],
    codecs: [{ id: "vlen-utf8" }, { id: "zstd", level: 1 }],
    fill: { served: "", item: null, absentIsServed: true },
    chunks: { kind: "files", directory, keyEncoding: { name: "v2", separator: "." } },
  });
  const write = async (key: string, texts: string[]) => {
    const parts = texts.map((text) => Buffer.from(text));
    const header = (value: number) => Buffer.from(Uint32Array.of(value).buffer);
    const raw = Buffer.concat([
      header(parts.length),
      ...parts.flatMap((part) => [header(part.length), part]),
    ]);
    writeFileSync(join(directory, key), await encodeSteps(raw, [stepOf({ id: "zstd" }, null)], "x"));
  };
  await write("0", ["a", "é'", ""]);
  await write("1", ["x".repeat(500), "last", "padding"]);
  const shown = await look(stored);
  t.strictSame(shown?.first.slice(0, 3), ["'a'", `"é'"`, "''"]);
  t.equal(shown?.first[3]?.length, 200, "long texts are cut");
  t.equal(shown?.first[4], "'last'");
  writeFileSync(join(directory, "0"), "no zstd");
  t.equal(await look(stored), undefined);
});

t.test("values that cannot be read are undefined, never an error", async (t) => {
  t.equal(await look(storedArray({ codecs: [{ id: "lzma" }] })), undefined);
  t.equal(
    await look(storedArray({ chunkShape: [2 ** 13, 2 ** 13] })),
    undefined,
    "more than 64 MiB to decode",
  );
  t.equal(await look(storedArray({ dtype: "|O", codecs: [{ id: "pickle" }] })), undefined);
  const directory = t.testdir({ "0": "abc" });
  const cut = storedArray({
    ...{ dtype: "|u1", shape: [4], chunkShape: [4], codecs: [], compressorCount: 0 },
    chunks: { kind: "files", directory, keyEncoding: { name: "v2", separator: "." } },
  });
  t.equal(await look(cut), undefined, "a file of another length");
  const failing = createPreviewService(async () => {
    throw new Error("no worker");
  });
  t.equal(await failing.values({ stored: storedArray() } as ServedArray), undefined);
});

t.test("a preview needs few chunks, of few items each", async (t) => {
  const tasks: ChunkTask[] = [];
  const counting = createPreviewService(async (task): Promise<ChunkOutcome> => {
    tasks.push(task);
    return { status: "absent" };
  });
  await counting.values({
    stored: storedArray({ shape: [1000, 1000], chunkShape: [100, 100] }),
  } as ServedArray);
  t.ok(tasks.length <= 3);
  t.ok(tasks.every(({ plan }) => plan.served.chunkShape.join() === "1,6"));
});

t.test("all numbers of a short coordinate are unpacked, and missing ones are NaN", async (t) => {
  const numbers = (stored: StoredArray) => previews.numbers({ stored } as ServedArray);
  const packed = inMemory([4], "<i2", Int16Array.of(1, 2, -1, 4), {
    attrs: { scale_factor: 0.5, add_offset: 10, _FillValue: -1 },
  });
  t.same(await numbers(packed), [10.5, 11, Number.NaN, 12]);
  t.same(await numbers(inMemory([2], "<i8", BigInt64Array.of(3n, -3n))), [3, -3]);
  t.equal(await numbers(inMemory([2, 2], "<f4", new Float32Array(4))), undefined, "two axes");
  t.equal(await numbers({ ...packed, codecs: [{ id: "mystery" }] }), undefined, "a codec that nothing knows");
  t.equal(await numbers(inMemory([3], "|S1", Buffer.from("abc"))), undefined, "no numbers");
  const lost = {
    ...packed,
    chunks: { kind: "files", directory: "/nowhere", metadataFile: "/nowhere/.zarray" },
  };
  await t.rejects(
    numbers({
      ...lost,
      chunks: { ...lost.chunks, keyEncoding: { name: "v2", separator: "." } },
    } as StoredArray),
    { code: "source-unreadable" },
  );
});

/** Prints items one by one as numpy does. */
const SCRIPT = `
import base64, json, sys
import numpy
answers = []
for dtype, data in json.load(sys.stdin):
    items = numpy.frombuffer(base64.b64decode(data), numpy.dtype(dtype))
    text = repr if items.dtype.kind in "SU" else str
    answers.append([text(item) for item in items])
json.dump(answers, sys.stdout)
`;

/** Bytes of many different numbers in every width, including the special ones of IEEE 754. */
function patterns(): Uint8Array {
  const floats = [
    0,
    -0,
    1,
    -1.5,
    0.1,
    1e-5,
    1.2e-4,
    1e15,
    1e16,
    1.7e300,
    3.4e38,
    1e-45,
    65504,
    6e-8,
    NaN,
    Infinity,
    -Infinity,
  ];
  const bytes: number[] = [];
  for (const value of floats) {
    bytes.push(...new Uint8Array(Float64Array.of(value).buffer));
    bytes.push(...new Uint8Array(Float32Array.of(value, value).buffer));
  }
  for (let index = 0; index < 256; index++) bytes.push((index * 73 + (index >> 3)) & 255);
  return new Uint8Array(bytes.slice(0, bytes.length - (bytes.length % 32)));
}

t.test("items read as numpy prints them", { skip: clientMissing("numcodecs") }, async (t) => {
  const units = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "25s"];
  const times = new Uint8Array(
    BigInt64Array.of(0n, 1n, -1n, 12345n, -98765n, 31_536_000n, -(2n ** 63n)).buffer,
  );
  const cases: [string, Uint8Array][] = [
    ...[
      "|b1",
      "|i1",
      "|u1",
      "<i2",
      ">i2",
      "<u4",
      ">i4",
      "<i8",
      ">u8",
      "<f2",
      ">f2",
      "<f4",
      ">f4",
      "<f8",
      ">f8",
      "<c8",
      ">c16",
    ].map((dtype): [string, Uint8Array] => [dtype, dtype === "|b1" ? new Uint8Array([0, 1, 1]) : patterns()]),
    ...units.flatMap((unit): [string, Uint8Array][] => [
      [`<M8[${unit}]`, times],
      [`<m8[${unit}]`, times],
    ]),
    ["|S6", new Uint8Array(Buffer.from("abc\0\0\0it's \\\n\t\x01\xff\"", "latin1"))],
    ["<U3", new Uint8Array(Uint32Array.of(97, 0x20ac, 0, 0x1f600, 39, 10, 233, 0, 0).buffer)],
  ];
  const input = JSON.stringify(
    cases.map(([dtype, bytes]) => {
      const { itemSize } = parseDataType(dtype);
      const whole = bytes.subarray(0, bytes.length - (bytes.length % itemSize));
      return [dtype, Buffer.from(whole).toString("base64")];
    }),
  );
  const run = spawnSync(PYTHON, ["-c", SCRIPT], { input, encoding: "utf8", maxBuffer: 2 ** 26 });
  t.equal(run.status, 0, run.stderr);
  const answers = JSON.parse(run.stdout) as string[][];
  for (const [index, [dtype, bytes]] of cases.entries()) {
    const type = parseDataType(dtype);
    const ours = formatItems(bytes.subarray(0, bytes.length - (bytes.length % type.itemSize)), type);
    t.strictSame(ours, answers[index], dtype);
  }
});

t.test("structured items are tuples, raw ones bytes, and objects undefined", async (t) => {
  const dtype: JsonValue = [
    ["a", "<i2"],
    ["b", "|S2"],
    ["c", "<f4", [2]],
    ["d", [["x", "|u1"]]],
  ];
  const bytes = new Uint8Array(13);
  new DataView(bytes.buffer).setInt16(0, -5, true);
  bytes.set([104, 105], 2);
  new DataView(bytes.buffer).setFloat32(4, 1.5, true);
  bytes[12] = 7;
  t.strictSame(formatItems(bytes, parseDataType(dtype)), ["(-5, b'hi', [1.5, 0.0], (7,))"]);
  t.strictSame(formatItems(new Uint8Array([1, 255]), parseDataType("|V2")), ["b'\\x01\\xff'"]);
  t.equal(formatItems(bytes, parseDataType("|O")), undefined);
  t.equal(formatItems(new Uint8Array(16), parseDataType("<f16")), undefined);
});
