import t from "tap";
import {
  COLOUR_SCALES,
  type ColourScaleName,
  categoryColours,
  colourTable,
  isColourScaleName,
} from "../../src/colour/colour-scales.js";

const NAMES = Object.keys(COLOUR_SCALES) as ColourScaleName[];

function colourAt(table: Uint8Array, index: number): number[] {
  return [...table.subarray(index * 3, index * 3 + 3)];
}

/** Luminance of a colour as people see it, 0 to 1 (WCAG 2.2, relative luminance). */
function luminanceOf(colour: number[]): number {
  const [red = 0, green = 0, blue = 0] = colour.map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

t.test("a table has 256 colours, and begins and ends as matplotlib's viridis does", async (t) => {
  const table = colourTable("viridis");
  t.equal(table.length, 768);
  t.strictSame(colourAt(table, 0), [0x44, 0x01, 0x54]);
  t.strictSame(colourAt(table, 255), [0xfd, 0xe7, 0x25]);
});

t.test(
  "every scale has a table of different colours, and the reversed one is the same backwards",
  async (t) => {
    for (const name of NAMES) {
      const table = colourTable(name);
      const reversed = colourTable(name, true);
      const colours = Array.from({ length: 256 }, (_, index) => colourAt(table, index));
      t.strictSame(
        Array.from({ length: 256 }, (_, index) => colourAt(reversed, 255 - index)),
        colours,
        name,
      );
      t.ok(new Set(colours.map(String)).size > 200, `${name} has more than 200 colours`);
      t.equal(colourTable(name), table, "made once");
    }
  },
);

t.test("sequential scales become lighter or darker from one end to the other", async (t) => {
  for (const name of NAMES) {
    if (COLOUR_SCALES[name].kind !== "sequential" || name === "turbo") continue;
    const table = colourTable(name);
    const lights = Array.from({ length: 18 }, (_, index) => luminanceOf(colourAt(table, index * 15)));
    const sorted = lights.toSorted((a, b) => a - b);
    t.strictSame(lights[0] === sorted[0] ? lights : lights.toReversed(), sorted, name);
  }
});

t.test("diverging scales are lightest in the middle, and the greatest values of rdbu are red", async (t) => {
  for (const name of NAMES) {
    if (COLOUR_SCALES[name].kind !== "diverging") continue;
    const [low, middle, high] = [0, 128, 255].map((index) => luminanceOf(colourAt(colourTable(name), index)));
    t.ok((middle as number) > Math.max(low as number, high as number) + 0.5, name);
  }
  const [red = 0, , blue = 0] = colourAt(colourTable("rdbu"), 255);
  t.ok(red > blue);
});

t.test("only names of scales are names", async (t) => {
  t.ok(isColourScaleName("viridis"));
  for (const name of ["Viridis", "", "toString", "__proto__"]) t.notOk(isColourScaleName(name), name);
});

t.test("categories have different colours, few or many", async (t) => {
  for (const count of [0, 1, 10, 11, 37, 255]) {
    const colours = categoryColours(count);
    t.equal(colours.length, 3 * count);
    const distinct = new Set(Array.from({ length: count }, (_, index) => String(colourAt(colours, index))));
    t.ok(distinct.size >= Math.min(count, 200), `${count}`);
  }
});

t.test("a cyclic scale ends with the colour that it begins with", async (t) => {
  const table = colourTable("cyclic");
  t.same([...table.subarray(0, 3)], [...table.subarray(255 * 3)]);
  t.notSame([...table.subarray(0, 3)], [...table.subarray(128 * 3, 129 * 3)]);
});
