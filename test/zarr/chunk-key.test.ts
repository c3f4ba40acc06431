import fc from "fast-check";
import t from "tap";
import { encodeChunkKey, parseChunkKey } from "../../src/zarr/chunk-reader.js";
import { effort } from "../support/effort.js";

t.test("stored chunks have the names of their encoding", async (t) => {
  t.equal(encodeChunkKey([1, 2], { name: "v2", separator: "." }), "1.2");
  t.equal(encodeChunkKey([1, 2], { name: "v2", separator: "/" }), "1/2");
  t.equal(encodeChunkKey([1, 2], { name: "default", separator: "/" }), "c/1/2");
  t.equal(encodeChunkKey([1, 2], { name: "default", separator: "." }), "c.1.2");
  t.equal(encodeChunkKey([], { name: "v2", separator: "/" }), "0");
  t.equal(encodeChunkKey([], { name: "default", separator: "/" }), "c");
});

t.test("only the canonical key of a chunk inside the grid is one", async (t) => {
  t.same(parseChunkKey("0.0", [1, 1]), [0, 0]);
  t.same(parseChunkKey("12.0.3", [13, 1, 4]), [12, 0, 3]);
  t.same(parseChunkKey("0", []), []);
  t.same(parseChunkKey("9007199254740990", [2 ** 53]), [9007199254740990]);
  const hostile = [
    "",
    ".",
    "0.",
    ".0",
    "00.0",
    "0.00",
    "+1.0",
    "-1.0",
    "1_0.0",
    "1e0.0",
    "٠.0",
    "0,0",
    "0/0",
    "0.0.0",
    "0",
  ];
  for (const key of [
    ...hostile,
    "0.0 ",
    " 0.0",
    "0.0\n",
    "2.0",
    "0.2",
    "0x0.0",
    "NaN.0",
    "0..0",
    "1.9007199254740993",
  ]) {
    t.equal(parseChunkKey(key, [2, 2]), undefined, JSON.stringify(key));
  }
  for (const key of ["", "1", "00", "0.0", "c"]) t.equal(parseChunkKey(key, []), undefined, key);
  for (const key of ["0", "0.0"]) t.equal(parseChunkKey(key, [0]), undefined, key);
  t.equal(parseChunkKey("9007199254740993", [Number.MAX_SAFE_INTEGER]), undefined);
  t.equal(parseChunkKey("9".repeat(400), [Number.MAX_SAFE_INTEGER]), undefined);
});

t.test("coordinates survive the way through their key", async () => {
  const grid = fc.array(fc.integer({ min: 1, max: 2 ** 40 }), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(
      grid,
      fc.array(fc.double({ min: 0, max: 0.999, noNaN: true }), { minLength: 6, maxLength: 6 }),
      (shape, at) => {
        const coords = shape.map((length, axis) => Math.floor(length * (at[axis] as number)));
        const key = encodeChunkKey(coords, { name: "v2", separator: "." });
        return JSON.stringify(parseChunkKey(key, shape)) === JSON.stringify(coords);
      },
    ),
  );
});

t.test("a text that parses is the key of what it parses to", async () => {
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.string({ unit: fc.constantFrom(..."0123456789.+-_eE٠ /") as never }),
  );
  fc.assert(
    fc.property(text, fc.array(fc.integer({ min: 0, max: 200 }), { maxLength: 3 }), (key, shape) => {
      const coords = parseChunkKey(key, shape);
      return coords === undefined || encodeChunkKey(coords, { name: "v2", separator: "." }) === key;
    }),
    { numRuns: effort(50_000) },
  );
});
