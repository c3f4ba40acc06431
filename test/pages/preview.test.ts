import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import type { ChunkOutcome } from "../../src/codec/make-chunk.js";
import { encodeSteps } from "../../src/codec/run-steps.js";
import type { ServedArray } from "../../src/dataset/dataset.js";
import type { JsonObject, JsonValue } from "../../src/json/json-value.js";
import { parseDataType } from "../../src/model/data-type.js";
import { formatItems } from "../../src/pages/format-items.js";
import { createPreviewService } from "../../src/pages/preview-service.js";
import type { ChunkTask } from "../../src/pool/chunk-task.js";
import { pickedCount } from "../../src/zarr/plan/item-pick.js";
import type { StoredArray } from "../../src/zarr/stored-array.js";
import { clientMissing, PYTHON } from "../support/clients/require-client.js";
import { stepOf } from "../support/codec/steps.js";
import { storedArray } from "../support/datasets/stored-array.js";
import { inlineValues } from "../support/inline-values.js";

const previews = createPreviewService(inlineValues());

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
  const counting = (length: number) => inMemory([length], "<i2", Int16Array.from(new Array(length).keys()));
  const items = Uint8Array.from(new Array(24).keys());
  for (const [stored, first, last] of [
    [counting(100), "0 1 2 3 4 5", "97 98 99"],
    [counting(7), "0 1 2 3 4 5", "6"],
    [counting(2), "0 1", ""],
    [counting(0), "", ""],
    [inMemory([], "<f4", Float32Array.of(0.1)), "0.1", ""],
    // Row by row.
    [inMemory([3, 8], "|u1", items), "0 1 2 3 4 5", "21 22 23"],
    [inMemory([12, 2], "|u1", items), "0 1 2 3 4 5", "21 22 23"],
    [inMemory([2, 12], "|u1", items, { axisOrder: [1, 0] }), "0 2 4 6 8 10", "19 21 23"],
  ] as const) {
    const shown = await look(stored);
    t.strictSame([shown?.first.join(" "), shown?.last.join(" ")], [first, last]);
  }
});

t.test("CF times are dates, packed values are unpacked, and what is stored is beside them", async (t) => {
  const hours = Int32Array.of(0, 6, 12);
  const units = "hours since 2000-01-01";
  t.strictSame(await look(inMemory([3], "<i4", hours, { attrs: { units } })), {
    first: ["2000-01-01T00:00:00", "2000-01-01T06:00:00", "2000-01-01T12:00:00"],
    last: [],
    stored: { first: ["0", "6", "12"], last: [] },
  });
  const stored = { first: ["0", "6", "12"], last: [] };
  const fill = { served: null, item: null, absentIsServed: true };
  for (const [attrs, ...first] of [
    [{ units: "K", scale_factor: 0.25 }, "0.0", "1.5", "3.0"],
    [{ units: "K", add_offset: 273.15, missing_value: 6 }, "273.15", "nan", "285.15"],
    [{ units, _FillValue: 6 }, "2000-01-01T00:00:00", "NaT", "2000-01-01T12:00:00"],
    [{ units, scale_factor: 0.5 }, "2000-01-01T00:00:00", "2000-01-01T03:00:00", "2000-01-01T06:00:00"],
    [{ units: "hours" }, "00:00:00", "06:00:00", "12:00:00"],
    [{ units: "days" }, "0 days", "6 days", "12 days"],
    [{ units: "hours", scale_factor: 2.5 }, "0 days 00:00:00", "0 days 15:00:00", "1 days 06:00:00"],
    [{ dtype: "bool" }, "False", "True", "True"],
  ] as const)
    t.strictSame(
      await look(inMemory([3], "<i4", hours, { attrs, fill })),
      { first: [...first], last: [], stored },
      first.join(" "),
    );
  const times = inMemory([1], "<M8[s]", BigInt64Array.of(86_400n), { attrs: { units } });
  t.strictSame(await look(times), { first: ["1970-01-02T00:00:00"], last: [] });
});

t.test("the fill value 0 of an image is black, that of measured values is missing", async (t) => {
  const fill = { served: 0, item: Uint8Array.of(0), absentIsServed: true };
  const first = async (attrs: JsonObject) =>
    (await look(inMemory([3], "|u1", Uint8Array.of(0, 7, 255), { attrs, fill })))?.first;
  t.strictSame(await first({}), ["0", "7", "255"]);
  t.strictSame(await first({ units: "m" }), ["nan", "7.0", "255.0"]);
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
  const makeChunk = async () => {
    throw new Error("no worker");
  };
  const failing = createPreviewService(inlineValues({ makeChunk }));
  t.equal(await failing.values({ stored: storedArray() } as ServedArray), undefined);
});

t.test("a preview needs few chunks, of few items each", async (t) => {
  const tasks: ChunkTask[] = [];
  const makeChunk = async (task: ChunkTask): Promise<ChunkOutcome> => {
    tasks.push(task);
    return { status: "absent" };
  };
  const counting = createPreviewService(inlineValues({ makeChunk }));
  await counting.values({
    stored: storedArray({ shape: [1000, 1000], chunkShape: [100, 100] }),
  } as ServedArray);
  t.ok(tasks.length <= 2);
  t.ok(tasks.every(({ pick }) => pick !== undefined && pickedCount(pick) <= 9));
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

const FLOATS = [0, -0, 1, -1.5, 0.1, 1e-5, 1.2e-4, 1e15, 1e16, 65504, 6e-8, NaN, Infinity, -Infinity];

t.test("numbers and texts read as numpy prints them", { skip: clientMissing("numcodecs") }, async (t) => {
  const bytesOf = (items: ArrayBufferView) => Buffer.from(items.buffer, items.byteOffset, items.byteLength);
  const halves = [0, 0x8000, 0x3c00, 0xbe00, 0x2e66, 0x7bff, 1, 0x7e00, 0x7c00, 0xfc00];
  const noise = Buffer.from(Array.from({ length: 256 }, (_, index) => (index * 73 + (index >> 3)) & 255));
  const cases: [string, Buffer][] = [
    ["|b1", Buffer.from([0, 1, 1])],
    ...["|i1", "|u1", "<i2", ">i2", "<u4", ">i4", "<i8", ">u8"].map((dtype): [string, Buffer] => [
      dtype,
      noise,
    ]),
    ["<f2", bytesOf(Uint16Array.from(halves))],
    ["<f4", bytesOf(Float32Array.from([...FLOATS, 3.4e38, 1e-45]))],
    ["<f8", bytesOf(Float64Array.from([...FLOATS, 1.7e300]))],
    [">f8", bytesOf(Float64Array.from(FLOATS)).swap64()],
    ["|S6", Buffer.from("abc\0\0\0it's \\\n\t\x01\"", "latin1").subarray(0, 12)],
    ["<U3", bytesOf(Uint32Array.of(97, 0x20ac, 0, 0x1f600, 39, 10, 233, 0, 0))],
  ];
  const input = JSON.stringify(cases.map(([dtype, bytes]) => [dtype, bytes.toString("base64")]));
  const run = spawnSync(PYTHON, ["-c", SCRIPT], { input, encoding: "utf8", maxBuffer: 2 ** 26 });
  t.equal(run.status, 0, run.stderr);
  const answers = JSON.parse(run.stdout) as string[][];
  for (const [index, [dtype, bytes]] of cases.entries())
    t.strictSame(formatItems(bytes, parseDataType(dtype)), answers[index], dtype);
});

t.test("times are ISO dates, and durations numbers with their unit", async (t) => {
  const formatted = (unit: string, ...values: bigint[]) =>
    ["M", "m"].flatMap((kind) =>
      formatItems(new Uint8Array(BigInt64Array.from(values).buffer), parseDataType(`<${kind}8[${unit}]`)),
    );
  t.strictSame(formatted("25s", 1n), ["1970-01-01T00:00:25", "1 25s"]);
  t.strictSame(formatted("M", -1n), ["1969-12", "-1 M"]);
  t.strictSame(formatted("ns", 1_500_000_000n, -(2n ** 63n)), [
    "1970-01-01T00:00:01.5",
    "NaT",
    "1500000000 ns",
    "NaT",
  ]);
});

t.test("records, raw bytes, complex numbers and objects are not shown", async (t) => {
  for (const dtype of [[["a", "<i2"]], "|V2", "<c8", "|O", "<f16"])
    t.equal(formatItems(new Uint8Array(16), parseDataType(dtype as JsonValue)), undefined, `${dtype}`);
});
