import fc from "fast-check";
import t from "tap";
import { decodeSteps } from "../../src/codec/run-steps.js";
import type { JsonValue } from "../../src/json/json-value.js";
import { parseJson } from "../../src/json/parse-json.js";
import type { CodecSpec } from "../../src/zarr/codec-step.js";
import { parsePackbits, VALUE_CODECS } from "../../src/zarr/v3/value-codecs.js";
import {
  exactlyCast,
  exactlyUnscaled,
  NUMBER_NAMES,
  type NumberName,
  ROUNDINGS,
  V3_NAMES,
} from "../support/codec/exact-numbers.js";
import { bytesOfItems, itemsOf, packedBits } from "../support/codec/number-items.js";
import { stepOf } from "../support/codec/steps.js";
import { effort } from "../support/effort.js";

const v2Type = (type: NumberName) => (type[1] === "1" ? `|${type}` : `<${type}`);

type Scalar = number | bigint;

/** A scalar as JSON has it. */
const json = (value: Scalar): JsonValue =>
  typeof value === "bigint"
    ? value
    : Number.isNaN(value)
      ? "NaN"
      : Number.isFinite(value)
        ? parseJson(Object.is(value, -0) ? "-0.0" : String(value))
        : value > 0
          ? "Infinity"
          : "-Infinity";

async function decode(codec: CodecSpec, bytes: Uint8Array, to: NumberName, count: number) {
  const step = stepOf(codec, count * Number(to[1]), Number(to[1]));
  return itemsOf(await decodeSteps(bytes, [step], "chunk"), to);
}

/** Items that types differ in, as far as a type has them. */
function edges(type: NumberName): Scalar[] {
  const floats = [
    0, -0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999999999999994, 127.5, -128.5, 255.49, 65504, 65519.99,
  ];
  const large = [
    65520,
    70000,
    2 ** 24 + 1,
    2 ** 31 - 0.5,
    2 ** 53,
    -(2 ** 63),
    2 ** 63,
    2 ** 64,
    1e30,
    3.5e38,
    1e300,
  ];
  const small = [6e-8, 2.9e-8, 1e-40, -1e-46, 5e-324, Number.NaN, 1 / 0, -1 / 0];
  if (type[0] === "f") return itemsOf(bytesOfItems([...floats, ...large, ...small], type), type);
  const bits = BigInt(8 * Number(type[1]));
  const integers = [
    0n,
    1n,
    2n,
    3n,
    127n,
    128n,
    255n,
    2n ** (bits - 1n) - 1n,
    2n ** (bits - 1n),
    2n ** bits - 1n,
  ];
  const odd = [2n ** 24n + 1n, 2n ** 25n + 3n, 2n ** 53n + 1n, 2n ** 54n + 2n, 2n ** 62n - 1n, 2049n, 65519n];
  return itemsOf(bytesOfItems([...integers, ...odd, ...odd.map((value) => -value)], type), type);
}

function anyItems(type: NumberName): fc.Arbitrary<Scalar[]> {
  const size = Number(type[1]);
  return fc
    .uint8Array({ minLength: 20 * size, maxLength: 20 * size })
    .map((bytes) => [...itemsOf(bytes, type), ...edges(type)]);
}

/** Compares what is decoded with what has to come; items that have to be refused are tried alone. */
async function check(
  codec: CodecSpec,
  items: readonly Scalar[],
  from: NumberName,
  to: NumberName,
  exact: (item: Scalar) => Scalar | undefined,
) {
  const kept = items.filter((item) => exact(item) !== undefined);
  const expected = kept.map((item) => exact(item) as Scalar);
  const decoded = await decode(codec, bytesOfItems(kept, from), to, kept.length);
  decoded.forEach((item, index) => {
    if (Object.is(item, expected[index])) return;
    throw new Error(`${JSON.stringify(codec)} of ${kept[index]}: ${item}, expected ${expected[index]}`);
  });
  for (const item of items.filter((each) => exact(each) === undefined)) {
    const refused = await decode(codec, bytesOfItems([item], from), to, 1).catch((error) => error);
    if (refused.code !== "corrupt-chunk") throw new Error(`${JSON.stringify(codec)} of ${item}: ${refused}`);
  }
}

t.test("cast_value casts every type to every other as fractions say, in every rounding", async (t) => {
  let pairs = 0;
  for (const from of NUMBER_NAMES) {
    for (const to of NUMBER_NAMES) {
      const settings = fc.record({
        items: anyItems(from),
        rounding: fc.constantFrom(...ROUNDINGS),
        outOfRange: fc.constantFrom(
          ...(from[0] === "f" ? [undefined, "clamp"] : [undefined, "clamp", "wrap"]),
        ),
      });
      await fc.assert(
        fc.asyncProperty(settings, async ({ items, rounding, outOfRange }) => {
          const configuration = {
            data_type: V3_NAMES[from],
            rounding,
            ...(outOfRange && { out_of_range: outOfRange }),
          };
          const codec = VALUE_CODECS.cast_value!(configuration, v2Type(to));
          await check(codec, items, from, to, (item) => exactlyCast(item, to, rounding, outOfRange));
        }),
        { numRuns: effort(30) },
      );
      pairs++;
    }
  }
  t.equal(pairs, NUMBER_NAMES.length ** 2);
});

t.test("scalar_map comes before every other rule, and its first entry for a number counts", async (t) => {
  const cases: readonly [NumberName, NumberName, JsonValue, Scalar[], Scalar[]][] = [
    ["u1", "f8", [[0, "NaN"]], [0n, 1n, 255n], [Number.NaN, 1, 255]],
    [
      "u1",
      "f4",
      [
        [1, "Infinity"],
        [1, 5],
        [2, 1],
      ],
      [0n, 1n, 2n],
      [0, 1 / 0, 1],
    ],
    [
      "f8",
      "u1",
      [
        ["NaN", 7],
        ["-Infinity", 0],
        [300, 255],
      ],
      [Number.NaN, -1 / 0, 300, 1.5],
      [7n, 0n, 255n, 2n],
    ],
    ["f4", "f8", [[0, 9]], [0, -0, 1], [9, 9, 1]],
    ["i8", "u1", [[2n ** 60n + 1n, 3]], [2n ** 60n + 1n, 5n], [3n, 5n]],
    ["u2", "u8", [[65535, 2n ** 64n - 1n]], [65535n, 1n], [2n ** 64n - 1n, 1n]],
    ["f2", "i8", [["NaN", -(2n ** 63n)]], [Number.NaN, -2.5], [-(2n ** 63n), -2n]],
    [
      "f8",
      "f8",
      [
        ["NaN", 0.5],
        [1, "NaN"],
      ],
      [Number.NaN, 1, 2],
      [0.5, Number.NaN, 2],
    ],
  ];
  for (const [from, to, map, items, expected] of cases) {
    const configuration = { data_type: V3_NAMES[from], scalar_map: { decode: map } };
    const codec = VALUE_CODECS.cast_value!(configuration, v2Type(to));
    t.same(await decode(codec, bytesOfItems(items, from), to, items.length), expected, JSON.stringify(codec));
  }
});

t.test("scale_offset computes in the type of the array", async (t) => {
  for (const type of NUMBER_NAMES) {
    const isFloat = type[0] === "f";
    const decimals = [0.1, 10_000, -0.1, 3, 1e-4, 0.25, -7, 1e5, 273.15, 5e-324, 1e300];
    const scalars: Scalar[] = isFloat
      ? itemsOf(bytesOfItems(decimals, type), type).filter((value) => value !== 0 && Number.isFinite(value))
      : itemsOf(bytesOfItems([1n, 2n, 3n, 100n, 2n ** 60n + 1n, -1n], type), type).filter(
          (value) => value !== 0n,
        );
    const settings = fc.record({
      items: anyItems(type),
      scale: fc.constantFrom(...scalars),
      offset: fc.constantFrom<Scalar>(isFloat ? 0 : 0n, isFloat ? -0 : 0n, ...scalars),
    });
    await fc.assert(
      fc.asyncProperty(settings, async ({ items, scale, offset }) => {
        const codec = VALUE_CODECS.scale_offset!({ scale: json(scale), offset: json(offset) }, v2Type(type));
        await check(codec, items, type, type, (item) => exactlyUnscaled(item, type, scale, offset));
      }),
      { numRuns: effort(150) },
    );
  }
  t.pass("all types");
});

t.test("encoded items may be big-endian, and whole items only", async (t) => {
  const cast = VALUE_CODECS.cast_value!({ data_type: "int16" }, "<f8");
  const scale = VALUE_CODECS.scale_offset!({ scale: 2 }, "<f4");
  const items = bytesOfItems([1n, -300n, 32767n], "i2");
  const swapped = Buffer.from(items).swap16();
  t.same(await decode({ ...cast, astype: ">i2" }, swapped, "f8", 3), [1, -300, 32767]);
  const floats = Buffer.from(bytesOfItems([1, 3], "f4")).swap32();
  t.same(await decode({ ...scale, astype: ">f4" }, floats, "f4", 2), [0.5, 1.5]);
  await t.rejects(decode(cast, items.subarray(1), "f8", 3), { code: "corrupt-chunk" });
  await t.rejects(decode(cast, items.subarray(2), "f8", 3), { code: "corrupt-chunk" });
});

t.test("packbits puts the bits of every type back, and checks their number", async (t) => {
  const types = ["|b1", ...NUMBER_NAMES.map(v2Type), "<c8", "<c16"];
  const settings = fc.record({
    type: fc.constantFrom(...types),
    bytes: fc.uint8Array({ minLength: 176, maxLength: 176 }),
    count: fc.integer({ min: 1, max: 11 }),
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    to: fc.double({ min: 0, max: 1, noNaN: true }),
    padding: fc.constantFrom("none", "first_byte", "last_byte"),
    isWhole: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(settings, async ({ type, bytes, count, at, to, padding, isWhole }) => {
      const itemSize = Number(type.slice(2));
      const size = type[1] === "c" ? itemSize / 2 : itemSize;
      const bits = type === "|b1" ? 1 : 8 * size;
      const first = isWhole ? 0 : Math.floor(at * (bits - 1));
      const last = isWhole ? bits - 1 : first + Math.floor(to * (bits - 1 - first));
      const name = `u${size}` as NumberName;
      const values = itemsOf(bytes.subarray(0, count * itemSize), name).map((item) =>
        BigInt.asUintN(bits, item as bigint),
      );
      const width = last - first + 1;
      const encoded = packedBits(values, { first, width, padding });
      const fields = isWhole ? {} : { first_bit: first, last_bit: last };
      const codec = parsePackbits({ ...fields, padding_encoding: padding }, type);
      const expected = values.map((value) => {
        const field = (value >> BigInt(first)) & (2n ** BigInt(width) - 1n);
        const extended = type[1] === "i" ? BigInt.asIntN(width, field) : field;
        return BigInt.asUintN(8 * size, extended << BigInt(first));
      });
      const step = stepOf(codec, values.length * size);
      const decoded = itemsOf(await decodeSteps(encoded, [step], "chunk"), name);
      if (String(decoded) !== String(expected)) {
        throw new Error(`${JSON.stringify(codec)}: ${decoded}, expected ${expected}`);
      }
      const wrong = [encoded.subarray(1), Uint8Array.from([...encoded, 0])];
      if (padding !== "none") {
        const other = Uint8Array.from(encoded);
        other[padding === "first_byte" ? 0 : other.length - 1]! ^= 9;
        wrong.push(other);
      }
      for (const bad of wrong) {
        const refused = await decodeSteps(bad, [step], "chunk").catch((error) => error);
        if (refused.code !== "corrupt-chunk") throw new Error(`${JSON.stringify(codec)}: not refused`);
      }
    }),
    { numRuns: effort(5_000) },
  );
  t.pass("all types");
});
