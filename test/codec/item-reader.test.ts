import t from "tap";
import { type Packing, packingOf } from "../../src/cf/packing.js";
import { createItemReader, createItemsReader } from "../../src/codec/item-reader.js";
import { parseDataType } from "../../src/model/data-type.js";

const PLAIN = packingOf({});

/** Writes items behind one byte, so that none is aligned, and reads them. */
function readAll(
  dtype: string,
  count: number,
  write: (view: DataView, at: number, index: number, little: boolean) => void,
  packing: Packing = PLAIN,
): number[] {
  const type = parseDataType(dtype);
  const buffer = new ArrayBuffer(1 + count * type.itemSize);
  const view = new DataView(buffer);
  for (let index = 0; index < count; index++)
    write(view, 1 + index * type.itemSize, index, type.byteOrder !== ">");
  const bytes = new Uint8Array(buffer, 1);
  const read = createItemReader(bytes, type, packing);
  const values = Array.from({ length: count }, (_, index) => read(index * type.itemSize));
  // Copies are aligned. All items but the first, from the last one backwards.
  const places = Uint32Array.from({ length: count - 1 }, (_, index) => count - 2 - index);
  for (const items of [bytes, bytes.slice()]) {
    const many = new Float64Array(places.length);
    createItemsReader(items, type, packing)(1, places, many);
    t.strictSame([...many], values.slice(1).reverse(), `many of ${dtype}`);
  }
  return values;
}

t.test("reads every type of numbers in both byte orders", async (t) => {
  for (const order of ["<", ">"]) {
    const int16 = [-32768, -1, 0, 32767];
    t.strictSame(
      readAll(`${order}i2`, 4, (view, at, index, little) =>
        view.setInt16(at, int16[index] as number, little),
      ),
      int16,
    );
    const uint32 = [0, 1, 2 ** 31, 2 ** 32 - 1];
    t.strictSame(
      readAll(`${order}u4`, 4, (view, at, index, little) =>
        view.setUint32(at, uint32[index] as number, little),
      ),
      uint32,
    );
    const int64 = [-(2n ** 63n), -1n, 2n ** 53n, 2n ** 63n - 1n];
    t.strictSame(
      readAll(`${order}i8`, 4, (view, at, index, little) =>
        view.setBigInt64(at, int64[index] as bigint, little),
      ),
      int64.map(Number),
    );
    t.strictSame(
      readAll(`${order}u8`, 2, (view, at, index, little) =>
        view.setBigUint64(at, 2n ** 64n - 1n - BigInt(index), little),
      ),
      [2 ** 64, 2 ** 64],
    );
    const floats = [0.1, Number.NaN, Number.NEGATIVE_INFINITY];
    t.strictSame(
      readAll(`${order}f4`, 3, (view, at, index, little) =>
        view.setFloat32(at, floats[index] as number, little),
      ),
      floats.map(Math.fround),
    );
    t.strictSame(
      readAll(`${order}f8`, 3, (view, at, index, little) =>
        view.setFloat64(at, floats[index] as number, little),
      ),
      floats,
    );
    const halves = [0x3c00, 0xc000, 0x7e00];
    t.strictSame(
      readAll(`${order}f2`, 3, (view, at, index, little) =>
        view.setUint16(at, halves[index] as number, little),
      ),
      [1, -2, Number.NaN],
    );
  }
  t.strictSame(
    readAll("|i1", 2, (view, at, index) => view.setInt8(at, index - 1)),
    [-1, 0],
  );
  t.strictSame(
    readAll("|b1", 2, (view, at, index) => view.setUint8(at, index)),
    [0, 1],
  );
});

t.test("unpacks after it has looked for missing and invalid numbers", async (t) => {
  const packing = packingOf({
    _FillValue: -999,
    missing_value: [-998, -997],
    valid_range: [-1000, 100],
    scale_factor: 0.5,
    add_offset: 10,
  });
  const stored = [-999, -998, -997, 101, -1001, -1000, 100, 0];
  const read = readAll(
    "<i2",
    8,
    (view, at, index) => view.setInt16(at, stored[index] as number, true),
    packing,
  );
  t.strictSame(read, [Number.NaN, Number.NaN, Number.NaN, Number.NaN, Number.NaN, -490, 60, 10]);
});

t.test("compares attributes as items of the type that they are stored in", async (t) => {
  const packing = packingOf({ _FillValue: 1e20, valid_max: 0.1 });
  t.strictSame(
    readAll(
      "<f4",
      3,
      (view, at, index) => view.setFloat32(at, [1e20, 0.1, 0.2][index] as number, true),
      packing,
    ),
    [Number.NaN, Math.fround(0.1), Number.NaN],
  );
  t.strictSame(
    readAll("<f2", 1, (view, at) => view.setUint16(at, 0x2e66, true), packingOf({ _FillValue: 0.1 })),
    [Number.NaN],
    "0.1 in half precision",
  );
});

t.test("takes integers for unsigned, or for signed, if _Unsigned says so", async (t) => {
  const attrs = { _Unsigned: "true", _FillValue: -1, valid_max: -2, scale_factor: 2 };
  const stored = [-1, -2, -128, 127];
  t.strictSame(
    readAll("|i1", 4, (view, at, index) => view.setInt8(at, stored[index] as number), packingOf(attrs)),
    [Number.NaN, 508, 256, 254],
  );
  t.strictSame(
    readAll(
      "|u1",
      2,
      (view, at, index) => view.setUint8(at, 254 + index),
      packingOf({ _Unsigned: "false", _FillValue: 255 }),
    ),
    [-2, Number.NaN],
  );
});

t.test("refuses items that are no numbers", async (t) => {
  for (const dtype of ["|S5", "<U2", "<c8", "<M8[s]", "|V3"])
    t.throws(
      () => createItemReader(new Uint8Array(16), parseDataType(dtype), PLAIN),
      { code: "codec-failed" },
      dtype,
    );
});
