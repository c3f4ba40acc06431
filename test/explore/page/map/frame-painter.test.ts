import t from "tap";
import { colourTable } from "../../../../src/colour/colour-scales.js";
import {
  paintFrame,
  parseColour,
  tableIndexOf,
  valueOfByte,
} from "../../../../src/explore/page/map/frame-painter.js";

const GROUND = {
  missing: [1, 1, 1, 255],
  missingStripe: [2, 2, 2, 255],
  unread: [3, 3, 3, 255],
  unreadCheck: [4, 4, 4, 255],
} as const;
const ALL = { left: 0, right: Number.POSITIVE_INFINITY, top: 0, bottom: Number.POSITIVE_INFINITY };

function paint(pixels: number[], width: number, inside = ALL) {
  const target = new Uint32Array(pixels.length);
  const contents = paintFrame(
    Uint8Array.from(pixels),
    width,
    colourTable("viridis"),
    GROUND,
    inside,
    target,
    4,
  );
  const bytes = new Uint8Array(target.buffer);
  return { contents, colours: pixels.map((_, index) => [...bytes.subarray(index * 4, index * 4 + 4)]) };
}

t.test(
  "bytes of the scale take its colours from end to end, and what is beyond has those of the ends",
  async (t) => {
    t.strictSame([1, 2, 253, 254].map(tableIndexOf), [0, 0, 255, 255]);
    t.equal(tableIndexOf(128), 128);
    const { colours, contents } = paint([1, 2, 253, 254], 4);
    const table = colourTable("viridis");
    t.strictSame(colours[1], [...table.subarray(0, 3), 255]);
    t.strictSame(colours[2], [...table.subarray(255 * 3), 255]);
    t.strictSame([colours[0], colours[3]], [colours[1], colours[2]]);
    t.strictSame(contents, { hasBelow: true, hasAbove: true, hasMissing: false });
  },
);

t.test(
  "missing cells are hatched, pixels without data checked, and outside of the grid there is nothing",
  async (t) => {
    const { colours, contents } = paint([0, 0, 0, 0, 255, 255, 255, 255], 8);
    t.strictSame(
      colours.map(([red]) => red),
      [2, 1, 1, 1, 3, 3, 3, 3],
    );
    t.strictSame(contents, { hasBelow: false, hasAbove: false, hasMissing: true });
    const outside = paint([0, 0, 9, 0], 2, { left: 1, right: 2, top: 0, bottom: 1 });
    t.strictSame(
      outside.colours.map(([, , , opacity]) => opacity),
      [0, 255, 255, 0],
    );
    t.equal(paint([0], 1, { ...ALL, left: 1 }).contents.hasMissing, false);
  },
);

t.test("a byte stands for the middle of its values", async (t) => {
  t.strictSame(
    [2, 253].map((byte) => valueOfByte(byte, 240, 300)),
    [240, 300],
  );
});

t.test("colours of style sheets are read", async (t) => {
  t.strictSame(parseColour(" #ff8001"), [255, 128, 1, 255]);
  t.strictSame(parseColour("#fff"), [255, 255, 255, 255]);
});
