import fc from "fast-check";
import t from "tap";
import type { KnownPart } from "../../src/join/describe-part.js";
import { createFindPieces } from "../../src/join/pieces.js";
import { effort } from "../support/effort.js";
import { describePart } from "./describe-part.js";

const WIDTH = 5;

const partArbitrary = fc.record({
  length: fc.integer({ min: 1, max: 9 }),
  chunk: fc.integer({ min: 1, max: 12 }),
  across: fc.integer({ min: 1, max: WIDTH }),
  isPassed: fc.boolean(),
});

t.test("each item of a chunk is that of one piece, whatever the chunks of parts", async (t) => {
  const joined = fc.record({
    parts: fc.array(partArbitrary, { minLength: 1, maxLength: 6 }),
    axis: fc.constantFrom(0, 1),
    chunk: fc.integer({ min: 1, max: 8 }),
    across: fc.integer({ min: 1, max: WIDTH }),
  });
  const holds = fc.property(joined, ({ parts, axis, chunk, across }) => {
    const order = <T>(along: T, other: T): T[] => (axis === 0 ? [along, other] : [other, along]);
    let total = 0;
    const spans = parts.map(({ length, isPassed, ...own }, part) => {
      const start = total;
      total += length;
      const isAlike = own.chunk === chunk && own.across === across;
      return { part, start, length, path: "v", isPassed: isPassed && isAlike };
    });
    const known = parts.map(({ length, ...own }, index): KnownPart => {
      const description = describePart(`${index}.nc`, {
        v: {
          dims: order("time", "x"),
          shape: order(length, WIDTH),
          chunks: order(own.chunk, own.across),
        },
      });
      return { name: description.name, version: "", identity: "", description };
    });
    const stored = {
      ...{ shape: order(total, WIDTH), chunkShape: order(chunk, across) },
      fill: { served: null, item: null, absentIsServed: true },
    };
    const find = createFindPieces({ store: "s", stored, axis, spans, parts: known });

    for (let along = 0; along * chunk < total; along++) {
      for (let other = 0; other * across < WIDTH; other++) {
        const coords = order(along, other);
        const pieces = find.pieces(coords);
        for (let step = along * chunk; step < Math.min(total, (along + 1) * chunk); step++) {
          const span = spans.findLast(({ start }) => start <= step) as (typeof spans)[number];
          for (let x = other * across; x < Math.min(WIDTH, (other + 1) * across); x++) {
            const place = order(step, x);
            const having = pieces.filter(({ begin, end }) =>
              place.every((at, each) => at >= (begin[each] as number) && at < (end[each] as number)),
            );
            if (having.length !== 1) return false;
            const { array, coords: own, origin, layout } = having[0] as (typeof pieces)[number];
            const own0 = order(step - span.start, x);
            const isRight = own0.every((at, each) => {
              const length = layout.chunkShape[each] as number;
              const inChunk = (place[each] as number) - (origin[each] as number);
              return at === (own[each] as number) * length + inChunk && inChunk >= 0 && inChunk < length;
            });
            if (array.owner.name !== `${span.part}.nc` || !isRight) return false;
          }
        }
        const passed = find.passed(coords);
        if (passed === undefined) continue;
        // All of the chunk is then in one piece, at its very place.
        const [piece] = pieces;
        const begins = coords.map((index, each) => index * (stored.chunkShape[each] as number));
        if (pieces.length !== 1 || piece?.part !== passed.part) return false;
        if (String(piece.origin) !== String(begins) || String(piece.coords) !== String(passed.coords))
          return false;
      }
    }
    return true;
  });
  fc.assert(holds, { numRuns: effort(5_000) });
  t.pass();
});

t.test("a chunk of a stack lacks the new axis in its part", async (t) => {
  const parts = ["a.nc", "b.nc"].map((name): KnownPart => {
    const description = describePart(name, { v: { dims: ["y", "x"], shape: [4, 5], chunks: [2, 3] } });
    return { name, version: "", identity: "", description };
  });
  const spans = [0, 1].map((part) => ({
    part,
    start: part,
    length: 1,
    path: "v",
    isPassed: part === 0,
  }));
  const stored = {
    ...{ shape: [2, 4, 5], chunkShape: [1, 2, 3] },
    fill: { served: null, item: null, absentIsServed: true },
  };
  const find = createFindPieces({ store: "s", stored, axis: 0, spans, parts });
  t.same(find.passed([0, 1, 1])?.coords, [1, 1]);
  t.equal(find.passed([1, 1, 1]), undefined);
  const [piece, ...others] = find.pieces([1, 1, 1]);
  t.same(others, []);
  t.match(piece, { coords: [1, 1], origin: [1, 2, 3], begin: [1, 2, 3], end: [2, 4, 5] });
  t.match(piece?.layout, { chunkShape: [1, 2, 3], axisOrder: [0, 1, 2] });
});
