import t from "tap";
import { convertPiece } from "../../src/codec/convert-items.js";
import { OWN_MEMORY } from "../../src/codec/kernel/wasm-memory.js";
import type { UnpackConversion } from "../../src/zarr/codec-step.js";

function unpack(bytes: Uint8Array, fields: Partial<UnpackConversion>): number[] {
  const conversion: UnpackConversion = {
    ...{ kind: "unpack", from: "<i2", to: "<f4", scale: 1, offset: 0, missing: [] },
    ...fields,
  };
  const found = convertPiece(bytes, conversion, OWN_MEMORY);
  const View = conversion.to === "<f4" ? Float32Array : Float64Array;
  return [...new View(found.buffer as ArrayBuffer, found.byteOffset, found.length / View.BYTES_PER_ELEMENT)];
}

t.test("items are swapped into the other byte order, in memory of their own", async (t) => {
  const bytes = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
  for (const wordSize of [2, 4, 8]) {
    const expected = [...bytes.keys()].map(
      (index) => bytes[index - (index % wordSize) + wordSize - 1 - (index % wordSize)],
    );
    for (const given of [bytes, new Uint8Array([0, ...bytes]).subarray(1)]) {
      t.same([...convertPiece(given, { kind: "swap", wordSize }, OWN_MEMORY)], expected);
      t.same([...given], [...bytes], "what was given stays");
    }
  }
});

t.test("items of every type are unpacked, in both byte orders", async (t) => {
  const values = [0, 1, 5, 100, 127];
  for (const [type, size, write] of [
    ["i1", 1, (view: DataView, value: number) => view.setInt8(0, value)],
    ["u1", 1, (view: DataView, value: number) => view.setUint8(0, value)],
    ["i2", 2, (view: DataView, value: number, little: boolean) => view.setInt16(0, value, little)],
    ["u2", 2, (view: DataView, value: number, little: boolean) => view.setUint16(0, value, little)],
    ["i4", 4, (view: DataView, value: number, little: boolean) => view.setInt32(0, value, little)],
    ["u4", 4, (view: DataView, value: number, little: boolean) => view.setUint32(0, value, little)],
    ["i8", 8, (view: DataView, value: number, little: boolean) => view.setBigInt64(0, BigInt(value), little)],
    [
      "u8",
      8,
      (view: DataView, value: number, little: boolean) => view.setBigUint64(0, BigInt(value), little),
    ],
    ["f4", 4, (view: DataView, value: number, little: boolean) => view.setFloat32(0, value, little)],
    ["f8", 8, (view: DataView, value: number, little: boolean) => view.setFloat64(0, value, little)],
  ] as const) {
    for (const order of ["<", ">"]) {
      const bytes = new Uint8Array(1 + values.length * size);
      for (const [index, value] of values.entries())
        write(new DataView(bytes.buffer, 1 + index * size), value, order === "<");
      const fields = { from: order + type, scale: 0.5, offset: 10, missing: [5] };
      const expected = [10, 10.5, Number.NaN, 60, 73.5];
      for (const to of ["<f4", "<f8"] as const)
        t.same(unpack(bytes.subarray(1), { ...fields, to }), expected, `${order}${type} to ${to}`);
    }
  }
});

t.test("integers are widened with every digit, in both byte orders", async (t) => {
  const items = [
    ["i1", [-128, -1, 0, 127]],
    ["u1", [0, 1, 128, 255]],
    ["i2", [-32_768, -1, 0, 32_767]],
    ["u2", [0, 1, 32_768, 65_535]],
    ["i4", [-(2 ** 31), -1, 0, 2 ** 31 - 1]],
    ["u4", [0, 1, 2 ** 31, 2 ** 32 - 1]],
  ] as const;
  for (const [type, values] of items) {
    const size = Number(type[1]);
    for (const order of ["<", ">"]) {
      const bytes = new Uint8Array(1 + values.length * size).subarray(1);
      for (const [index, value] of values.entries()) {
        const place = bytes.subarray(index * size, (index + 1) * size);
        const bits = BigInt.asUintN(8 * size, BigInt(value));
        for (let byte = 0; byte < size; byte++) place[byte] = Number((bits >> BigInt(8 * byte)) & 255n);
        if (order === ">") place.reverse();
      }
      const widenTo = (to: string) =>
        convertPiece(bytes, { kind: "widen", from: order + type, to }, OWN_MEMORY).buffer as ArrayBuffer;
      t.same([...new BigInt64Array(widenTo("<i8"))], values.map(BigInt), `${order}${type}`);
      if (size < 4) t.same([...new Int32Array(widenTo("<i4"))], [...values]);
      if (type === "u1" || type === "u2") t.same([...new Uint32Array(widenTo("<u4"))], [...values]);
      if (type === "i4") t.same([...new Int32Array(widenTo("<i4"))], [...values], "in the other byte order");
    }
  }
});

t.test("each step is rounded to the type of the joined array", async (t) => {
  const bytes = new Uint8Array(Int16Array.of(1, 2, 12_345, -32_768).buffer);
  const [scale, offset] = [0.1, 273.15];
  const single = [1, 2, 12_345, -32_768].map((item) =>
    Math.fround(Math.fround(item * Math.fround(scale)) + Math.fround(offset)),
  );
  t.same(unpack(bytes, { scale, offset }), single);
  const double = [1, 2, 12_345, -32_768].map((item) => item * scale + offset);
  t.same(unpack(bytes, { to: "<f8", scale, offset }), double);
});

t.test("a negative zero stays one without an offset, and rows of any length are whole", async (t) => {
  const items = Float32Array.from({ length: 5000 }, (_, index) => -index);
  const found = unpack(new Uint8Array(items.buffer), { from: "<f4", to: "<f8" });
  t.ok(Object.is(found[0], -0));
  t.equal(found.length, 5000);
  t.ok(found.every((value, index) => value === -index));
  t.same(unpack(new Uint8Array(), {}), []);
});

t.test("integers become wider ones, from both byte orders and any place in memory", async (t) => {
  const values = [0, 1, 127, -1, -128];
  const widen = (from: string, to: string, bytes: Uint8Array) => {
    const found = convertPiece(bytes, { kind: "widen", from, to }, OWN_MEMORY);
    const view = new DataView(found.buffer, found.byteOffset, found.length);
    const isWide = to.endsWith("8");
    return Array.from({ length: found.length / Number(to[2]) }, (_, i) =>
      isWide ? Number(view.getBigInt64(i * 8, true)) : view.getInt32(i * 4, true),
    );
  };
  const bytes = Int8Array.from(values);
  const big = new Uint8Array([9, ...values.flatMap((value) => [value < 0 ? 255 : 0, value & 255])]);
  for (const to of ["<i4", "<i8"]) {
    t.same(widen("|i1", to, new Uint8Array(bytes.buffer)), values);
    t.same(widen(">i2", to, big.subarray(1)), values);
    t.same(widen("|u1", to, Uint8Array.of(255, 128)), [255, 128]);
  }
  t.same([...big.subarray(0, 3)], [9, 0, 0], "what was given stays");
});
