import t, { type Test } from "tap";
import { decodeSteps, encodeSteps } from "../../src/codec/run-steps.js";
import { encodeProblem } from "../../src/zarr/codec-rules.js";
import type { CodecSpec } from "../../src/zarr/codec-spec.js";
import { parseNumericType } from "../../src/zarr/numeric-type.js";
import { clientMissing } from "../require-client.js";
import { runNative } from "./native-numcodecs.js";
import { sampleBytes } from "./sample-bytes.js";
import { stepOf } from "./step.js";

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
    const encoded = runNative(
      cases.map(({ codec, bytes }) => ({ operation: "encode", codec, bytes, dtype: codec.dtype as string })),
    );
    const decoded = runNative(
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
  const answers = runNative(jobs);
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
