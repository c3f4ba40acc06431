import t from "tap";
import { type ArrayCut, chooseCut, touchedByBox, touchedByPoints } from "../../src/values/choose-cut.js";

const cut = (touchedBytes: number, makingBytes: number) => ({ touchedBytes, makingBytes });

t.test("the cut of which fewest bytes are touched is read, unless making it takes too much", async (t) => {
  for (const [name, storedBytes, cuts, expected] of [
    ["no other cut", 100, [], -1],
    ["fewer bytes, cached", 100, [cut(10, 0)], 0],
    ["fewer bytes, made of four times as many", 100, [cut(10, 400)], 0],
    ["fewer bytes, made of more", 100, [cut(10, 401)], -1],
    ["a tie", 100, [cut(100, 0)], -1],
    ["more bytes", 100, [cut(101, 0)], -1],
    ["the fewest of several", 100, [cut(20, 0), cut(10, 0), cut(15, 0)], 1],
    ["a tie of several", 100, [cut(10, 0), cut(10, 0)], 0],
    ["the fewest that can be made", 100, [cut(20, 0), cut(10, 1e9)], 0],
    ["nothing selected", 0, [cut(0, 0)], -1],
  ] as const)
    t.equal(chooseCut(storedBytes, cuts), expected, name);
});

t.test("chunks that a box or points touch are counted and listed", async (t) => {
  const plan = { chunkShape: [10, 4], stored: { shape: [30, 8] } } as unknown as ArrayCut;
  const weight = (axis: number, index: number) => (axis === 0 ? index + 1 : 1);
  const box = await touchedByBox([{ begin: 25, count: 2, step: -20 }, { indexes: [7, 0, 6] }])(plan);
  t.equal(await box.count(), 4);
  t.equal(await box.count(weight), 8);
  t.strictSame([...box.list].map(String).sort(), ["0,0", "0,1", "2,0", "2,1"]);
  const points = await touchedByPoints([0, 0, 9, 3, 29, 7, -1, 2, 20, 4])(plan);
  t.equal(await points.count(), 2);
  t.equal(await points.count(weight), 4);
  t.strictSame([...points.list].map(String), ["0,0", "2,1"]);
  const scalar = await touchedByBox([])({ chunkShape: [], stored: { shape: [] } } as unknown as ArrayCut);
  t.equal(await scalar.count(), 1);
});
