import t from "tap";
import { createRandom } from "../../bench/random.js";
import { ABOVE, BELOW, MISSING } from "../../src/explore/protocol.js";
import { effort } from "../support/effort.js";
import { openStore } from "../support/explore/explore-client.js";
import { type ServedArray, startStore } from "../support/explore/store-server.js";

const CASES = effort(300);
const TYPES = ["|i1", "<i2", ">i2", "<i4", "<f4", ">f8", "<i8"];

t.test("pictures of arrays of any shape, order and grid are what a look at each cell gives", async (t) => {
  const random = createRandom(11);
  const draw = (below: number) => Math.floor(random() * below);
  const arrays: Record<string, ServedArray> = {};
  for (let index = 0; index < CASES; index++) {
    const shape = Array.from({ length: 2 + draw(4) }, () => 1 + draw(6));
    const count = shape.reduce((product, length) => product * length, 1);
    arrays[`v${index}`] = {
      dtype: TYPES[draw(TYPES.length)]!,
      shape,
      chunks: shape.map((length) => 1 + draw(length + 1)),
      dims: shape.map((_, axis) => `d${axis}`),
      values: Array.from({ length: count }, () => draw(12) - 2),
      order: draw(2) === 0 ? "C" : "F",
      fill: 0,
      absent: draw(3) === 0 ? [shape.map(() => 0).join(".")] : [],
      attrs: draw(2) === 0 ? { scale_factor: 0.5, valid_max: 8 } : {},
    };
  }
  const store = await startStore(t, arrays);
  const { client } = await openStore(store, 4096);
  const wrong: string[] = [];
  for (const [variable, array] of Object.entries(arrays)) {
    const { shape, attrs = {} } = array;
    const x = draw(shape.length);
    const y = (x + 1 + draw(shape.length - 1)) % shape.length;
    const at = shape.map((length) => draw(length));
    const side = (length: number) => (random() * 1.6 - 0.3) * length - 0.5;
    const box = {
      left: side(shape[x]!),
      right: side(shape[x]!),
      top: side(shape[y]!),
      bottom: side(shape[y]!),
    };
    const [width, height] = [1 + draw(9), 1 + draw(9)];
    const frame = await client.ask(
      {
        kind: "show",
        selection: { variable, at },
        axes: { x, y },
        viewport: { box, width, height, inCells: true },
        range: { low: -0.5, high: 3.25, isLog: false },
        // Means are tested elsewhere.
        isMoving: true,
        isConfirmed: true,
      },
      "frame",
    );
    const { scale_factor: scale = 1, valid_max: most = 99 } = attrs as {
      scale_factor?: number;
      valid_max?: number;
    };
    const expected = Array.from({ length: width * height }, (_, pixel) => {
      const column = Math.floor(box.left + ((pixel % width) + 0.5) * ((box.right - box.left) / width) + 0.5);
      const row = Math.floor(
        box.top + (Math.floor(pixel / width) + 0.5) * ((box.bottom - box.top) / height) + 0.5,
      );
      const stored = storedAt(array, at.with(x, column).with(y, row));
      if (stored === undefined || stored === 0 || stored > most) return MISSING;
      const value = stored * scale;
      if (value < -0.5) return BELOW;
      return value > 3.25 ? ABOVE : 2 + Math.round(((value + 0.5) / 3.75) * 251);
    });
    if (expected.some((byte, pixel) => byte !== frame.pixels[pixel]))
      wrong.push(`${JSON.stringify({ ...array, x, y, at, box })}: ${expected}, received ${frame.pixels}`);
    const along = draw(shape.length);
    const series = await client.ask(
      { kind: "series", selection: { variable, at }, along, isConfirmed: true },
      "series",
    );
    const values = Array.from({ length: shape[along]! }, (_, index) => {
      const stored = storedAt(array, at.with(along, index));
      return stored === undefined || stored === 0 || stored > most ? Number.NaN : stored * scale;
    });
    if (values.some((value, index) => !Object.is(value, series.values[index])))
      wrong.push(
        `series of ${JSON.stringify({ ...array, at, along })}: ${values}, received ${series.values}`,
      );
  }
  t.same(wrong.slice(0, 3), [], `${wrong.length} of ${CASES}`);
});

/** Returns undefined outside of the array, and in absent chunks. */
function storedAt(
  { shape, chunks, values, absent }: ServedArray,
  cell: readonly number[],
): number | undefined {
  let index = 0;
  for (let axis = 0; axis < shape.length; axis++) {
    const at = cell[axis]!;
    if (!(at >= 0 && at < shape[axis]!)) return undefined;
    index = index * shape[axis]! + at;
  }
  const key = cell.map((at, axis) => Math.floor(at / chunks[axis]!)).join(".");
  return absent?.includes(key) === true ? undefined : values[index];
}
