import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import t from "tap";
import { COLOUR_SCALES, type ColourScaleName } from "../../../src/colour/colour-scales.js";
import { formatViewHash, parseViewHash } from "../../../src/explore/page/view-hash.js";
import { EMPTY_VIEW, type View } from "../../../src/explore/protocol.js";
import { effort } from "../../support/effort.js";

t.test("an address is readable", async (t) => {
  const view: View = {
    ...EMPTY_VIEW,
    variable: "surface/t2m",
    at: { time: { value: "2013-01-01T06" }, level: { value: 850 }, member: { index: 12 }, run: "last" },
    box: { left: -30, bottom: 45, right: 30, top: 72 },
    colour: { ...EMPTY_VIEW.colour, scale: "viridis", range: { percentiles: [2, 98] }, isReversed: true },
    probe: { x: 12.5, y: 48, along: "time", plot: "series" },
  };
  const hash =
    "v=surface/t2m&d.time=2013-01-01T06&d.level=850&d.member=i12&d.run=last&box=-30,45,30,72&c=viridis&r=p2-98&p=12.5,48&along=time&rev";
  t.equal(formatViewHash(view), hash);
  t.strictSame(parseViewHash(`#${hash}`), { view, problems: [] });
});

t.test("an address that says nothing leaves everything to rule", async (t) => {
  t.equal(formatViewHash(EMPTY_VIEW), "");
  t.strictSame(parseViewHash("#"), { view: { ...EMPTY_VIEW }, problems: [] });
});

t.test("every view comes back from its address", async (t) => {
  const number = fc.oneof(
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
  );
  const name = fc.string({ minLength: 1, unit: "binary" });
  const position = fc.oneof(
    fc.constant("last" as const),
    fc.nat().map((index) => ({ index })),
    number.map((value) => ({ value })),
    fc.oneof(name, fc.constantFrom("", "last", "i7", "850", "'", "'1", "-1e5")).map((value) => ({ value })),
  );
  const range = fc.oneof(
    fc.constant(undefined),
    fc
      .tuple(number, number)
      .filter(([low, high]) => low < high)
      .map(([low, high]) => ({ low, high })),
    fc
      .tuple(fc.integer({ min: 0, max: 99 }), fc.constantFrom(99.5, 100))
      .map((percentiles) => ({ percentiles })),
  );
  const view: fc.Arbitrary<View> = fc.record({
    variable: fc.option(fc.string({ unit: "binary" }), { nil: undefined }),
    x: fc.option(name, { nil: undefined }),
    y: fc.option(name, { nil: undefined }),
    at: fc.dictionary(name, position, { noNullPrototype: true }),
    box: fc.option(
      fc
        .record({ left: number, right: number, bottom: number, top: number })
        .filter(({ left, right, bottom, top }) => left !== right && bottom !== top),
      { nil: undefined },
    ),
    asImage: fc.boolean(),
    colour: fc.record({
      scale: fc.option(fc.constantFrom(...(Object.keys(COLOUR_SCALES) as ColourScaleName[])), {
        nil: undefined,
      }),
      isReversed: fc.boolean(),
      isLog: fc.boolean(),
      isSymmetric: fc.boolean(),
      isLocked: fc.boolean(),
      range,
    }),
    probe: fc.option(
      fc.record({
        x: number,
        y: number,
        along: fc.option(name, { nil: undefined }),
        plot: fc.constantFrom("series" as const, "histogram" as const),
      }),
      { nil: undefined },
    ),
  });
  fc.assert(
    fc.property(view, (given) => {
      const { view: read, problems } = parseViewHash(formatViewHash(given));
      // Records of fast-check have no prototype.
      return isDeepStrictEqual(read, structuredClone(given)) && problems.length === 0;
    }),
    { numRuns: effort(1000) },
  );
  t.pass();
});

t.test("bad values are left out with a sentence, unknown keys without", async (t) => {
  const { view, problems } = parseViewHash("v=t&c=jet&r=5,1&box=1,2,3&p=a,b&new=1&r2&d.time=%zz");
  t.strictSame(view, { ...EMPTY_VIEW, variable: "t" });
  t.strictSame(problems, [
    "The address has “d.time=%zz”, which is badly escaped.",
    "The address has “c=jet”; expected the name of a colour scale.",
    "The address has “r=5,1”; expected a range such as “240,310” or “p2-98”.",
    "The address has “box=1,2,3”; expected left, bottom, right and top.",
    "The address has “p=a,b”; expected two coordinates.",
  ]);
  for (const box of ["1,2,1,3", "1,2,3,2", "1,2,3,1e999", "1,2,3,4,5"]) {
    t.equal(parseViewHash(`box=${box}`).view.box, undefined, box);
  }
});
