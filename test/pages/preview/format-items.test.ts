import { spawnSync } from "node:child_process";
import t from "tap";
import type { JsonValue } from "../../../src/json/json-value.js";
import { parseDataType } from "../../../src/model/data-type.js";
import { formatItems } from "../../../src/pages/format-items.js";
import { clientMissing, PYTHON } from "../../support/clients/require-client.js";

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
