import t from "tap";
import { readHalf, writeHalf } from "../../src/model/fill-value.js";

t.test("every half-precision float reads back as its own bits", async (t) => {
  const view = new DataView(new ArrayBuffer(2));
  const wrong: number[] = [];
  for (let bits = 0; bits < 65536; bits++) {
    view.setUint16(0, bits, true);
    const value = readHalf(view, true);
    if (Number.isNaN(value)) continue;
    writeHalf(view, value, true);
    if (view.getUint16(0, true) !== bits) wrong.push(bits);
  }
  t.same(wrong, []);
});

t.test("halves round to even", async (t) => {
  const view = new DataView(new ArrayBuffer(2));
  for (const [value, bits] of [
    [2049, 0x6800],
    [2051, 0x6802],
    [65519, 0x7bff],
    [65520, 0x7c00],
    [2 ** -25, 0],
    [2 ** -25 * 1.5, 1],
    [-0, 0x8000],
  ] as const) {
    writeHalf(view, value, false);
    t.equal(view.getUint16(0), bits, String(value));
  }
});
