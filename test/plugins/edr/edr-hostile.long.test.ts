import fc from "fast-check";
import t, { type Test } from "tap";
import { defaultValues, optionConfig } from "../../../src/config/options.js";
import { ZpublishError } from "../../../src/errors.js";
import { openSource } from "../../../src/open/open-source.js";
import maskCells from "../../../src/plugins/edr/cell-mask.js";
import parseWkt, { MAX_POSITIONS, type WktGeometry } from "../../../src/plugins/edr/well-known-text.js";
import { airOnGrid } from "../../support/datasets/edr-samples.js";
import { datasetOf } from "../../support/datasets/sample-tree.js";
import { effort } from "../../support/effort.js";
import { startServer } from "../../support/servers/start-server.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../../support/write-store.js";

const TYPES = ["POINT", "MULTIPOINT", "LINESTRING", "MULTILINESTRING", "POLYGON", "MULTIPOLYGON"] as const;

/** A circle around 5° E, 5° N. */
function circle(count: number, radius: number): string {
  const positions = Array.from({ length: count }, (_, at) => {
    const angle = (at * 2 * Math.PI) / count;
    return `${(5 + radius * Math.cos(angle)).toFixed(9)} ${(5 + radius * Math.sin(angle)).toFixed(9)}`;
  });
  return `POLYGON((${[...positions, positions[0]].join()}))`;
}

async function post(t: Test) {
  const { url, get } = await startServer(t, { datasets: [datasetOf("air", airOnGrid())] });
  const area = (coords: string) =>
    fetch(`${url}/edr/collections/air/area`, {
      ...{ method: "POST", headers: { "content-type": "application/json" } },
      body: JSON.stringify({ coords, "parameter-name": "sea" }),
    });
  return { area, get };
}

t.test("a polygon of 100,000 positions is answered; one of more than the bound is refused", async (t) => {
  const { area } = await post(t);
  const response = await area(circle(100_000, 41));
  t.equal(response.status, 200);
  const { domain, ranges } = (await response.json()) as {
    readonly domain: { readonly axes: Readonly<Record<"x" | "y", { readonly values: readonly number[] }>> };
    readonly ranges: { readonly sea: { readonly values: readonly (number | null)[] } };
  };
  const { x, y } = domain.axes;
  const inside = x.values.flatMap((east) => y.values.map((north) => Math.hypot(east - 5, north - 5) < 41));
  t.strictSame(
    ranges.sea.values.map((value) => value !== null),
    inside,
  );
  const longer = await area(circle(MAX_POSITIONS, 41));
  t.equal(longer.status, 413);
  t.match(await longer.json(), { code: "413", description: /131072 positions/ });
});

t.test("polygons whose edges meet too many rows of cells are refused", async (t) => {
  const count = 100_000;
  const ring = Float64Array.from({ length: 2 * count }, (_, at) =>
    at % 2 === 0 ? (at / 2) % 7 : ((at >> 1) % 2) * 160 - 80,
  );
  ring.set(ring.subarray(0, 2), 2 * count - 2);
  const latitudes = Float64Array.from({ length: 1_801 }, (_, row) => 90 - row / 10);
  const task = {
    polygons: { parts: [[ring]], stride: 2 },
    latitudes,
    longitudes: Float64Array.of(1, 2),
    isGrid: true,
  };
  t.throws(() => maskCells(task), { code: "too-large" });
  const islands = Array.from({ length: 30_000 }, () => [Float64Array.of(0, 0, 1, 0, 1, 1, 0, 0)]);
  const many = { ...task, polygons: { parts: islands, stride: 2 }, longitudes: latitudes };
  t.throws(() => maskCells(many), { code: "too-large", message: /polygons times cells/ });
  const places = new Float64Array(2 ** 21 + 1).fill(0.5);
  const cells = { latitudes: places, longitudes: places, isGrid: false };
  const one = { parts: [[Float64Array.of(0, 0, 1, 0, 1, 1, 0, 0)]], stride: 2 };
  t.throws(() => maskCells({ polygons: one, ...cells }), { code: "too-large", message: /2097152 cells/ });
  const beside = { parts: [[Float64Array.of(2, 2, 3, 2, 3, 3, 2, 2)]], stride: 2 };
  t.equal(maskCells({ polygons: beside, ...cells }).count, 0, "only cells in the region are sorted");
});

/** Tells whether a place is in a ring by the angle around it. */
function isInside(ring: readonly (readonly [number, number])[], x: number, y: number): boolean {
  let turns = 0;
  for (const [at, [x2, y2]] of ring.entries()) {
    const [x1, y1] = ring.at(at - 1)!;
    const angle = Math.atan2(y2 - y, x2 - x) - Math.atan2(y1 - y, x1 - x);
    turns += angle > Math.PI ? angle - 2 * Math.PI : angle < -Math.PI ? angle + 2 * Math.PI : angle;
  }
  return Math.round(turns / Math.PI) % 4 !== 0;
}

/** Tells whether a place is so near to an edge that the angles do not tell the side. */
function isOnEdge(ring: readonly (readonly [number, number])[], x: number, y: number): boolean {
  return ring.some(([x2, y2], at) => {
    const [x1, y1] = ring.at(at - 1)!;
    const detour = Math.hypot(x - x1, y - y1) + Math.hypot(x2 - x, y2 - y) - Math.hypot(x2 - x1, y2 - y1);
    return detour < 1e-9;
  });
}

t.test("cells in random polygons are those that lie in them, on grids and by themselves", async () => {
  const corner = fc.tuple(fc.integer({ min: 1, max: 12 }), fc.double({ min: 2, max: 30, noNaN: true }));
  fc.assert(
    fc.property(fc.array(corner, { minLength: 3, maxLength: 12 }), fc.boolean(), (corners, isTurned) => {
      // Around the middle, so that its edges do not cross.
      let angle = 0;
      const sum = corners.reduce((all, [part]) => all + part, 0);
      const ring = corners.map(([part, radius]) => {
        angle += (part * 2 * Math.PI) / sum;
        return [radius * Math.cos(angle), radius * Math.sin(angle)] as const;
      });
      const polygons = { stride: 2, parts: [[Float64Array.from([...ring, ring[0]!].flat())]] };
      const axis = Float64Array.from({ length: 21 }, (_, at) => -31.3 + 3 * at);
      const latitudes = isTurned ? axis.toReversed() : axis;
      const cells = Array.from(latitudes, (y) => Array.from(axis, (x) => [x, y] as const)).flat();
      const expected = cells.map(([x, y]) => (isInside(ring, x, y) ? 1 : 0));
      // Which side an edge belongs to is another test.
      fc.pre(cells.every(([x, y]) => !isOnEdge(ring, x, y)));
      const { mask: grid } = maskCells({ polygons, latitudes, longitudes: axis, isGrid: true });
      const [xs, ys] = [0, 1].map((at) => Float64Array.from(cells, (cell) => cell[at]!)) as [
        Float64Array,
        Float64Array,
      ];
      const { mask: single } = maskCells({ polygons, latitudes: ys, longitudes: xs, isGrid: false });
      return `${[...grid]}` === `${expected}` && `${[...single]}` === `${expected}`;
    }),
    { numRuns: effort(1_000) },
  );
});

const wkt = fc
  .tuple(
    fc.constantFrom(
      ...["POINT(1 2)", "POINT Z(1 2 850)", "MULTIPOINT((1 2),3 4)", "LINESTRINGM(0 0 1,1 1 2)"],
      ...["POLYGON((0 0,9 0,9 9,0 0),(1 1,2 1,2 2,1 1))", "MULTIPOLYGON(((0 0,9 0,9 9,0 0)))"],
    ),
    fc.array(
      fc.tuple(
        fc.nat(40),
        fc.nat(3),
        fc.constantFrom("", "(", ")", ",", " ", "1e9", "-", ".", "e", "Z", "NaN", "\t", "π", "(((("),
      ),
      { maxLength: 4 },
    ),
  )
  .map(([text, changes]) =>
    changes.reduce((all, [at, count, more]) => all.slice(0, at) + more + all.slice(at + count), text),
  );

t.test("texts that are no geometry are refused, and all others are read", async (t) => {
  fc.assert(
    fc.property(wkt, (text) => {
      let geometry: WktGeometry;
      try {
        geometry = parseWkt({ text, types: TYPES });
      } catch (error) {
        return error instanceof ZpublishError && error.code === "invalid-query";
      }
      const numbers = geometry.parts.flat().flatMap((ring) => [...ring]);
      return numbers.length % geometry.stride === 0 && numbers.every(Number.isFinite);
    }),
    { numRuns: effort(20_000) },
  );
  const { get } = await post(t);
  await fc.assert(
    fc.asyncProperty(wkt, fc.constantFrom("position", "area", "trajectory"), async (text, type) => {
      const response = await get(
        `/edr/collections/air/${type}?parameter-name=t&coords=${encodeURIComponent(text)}`,
      );
      await response.arrayBuffer();
      return [200, 204, 400].includes(response.status);
    }),
    { numRuns: effort(400) },
  );
});

t.test("a cube beyond the bound is refused before anything is read of it", async (t) => {
  const directory = await makeDirectory(t);
  const axis = (name: string, units: string, values: readonly number[]) => ({
    [`${name}/.zarray`]: {
      ...zarray,
      shape: [values.length],
      chunks: [values.length],
      dtype: "<f8",
      compressor: null,
    },
    [`${name}/.zattrs`]: { _ARRAY_DIMENSIONS: [name], units },
    [`${name}/0`]: Buffer.from(Float64Array.from(values).buffer),
  });
  await writeFiles(directory, {
    ".zgroup": zgroup,
    ...axis("lat", "degrees_north", [60, 50, 40]),
    ...axis("lon", "degrees_east", [0, 10, 20]),
    "t/.zarray": {
      ...zarray,
      shape: [1e9, 3, 3],
      chunks: [10, 3, 3],
      dtype: "<f4",
      compressor: { id: "zlib", level: 1 },
    },
    "t/.zattrs": { _ARRAY_DIMENSIONS: ["step", "lat", "lon"] },
    // It cannot be read.
    "t/0.0.0": "damaged",
  });
  const { limits } = optionConfig(defaultValues({}));
  const source = await openSource(directory);
  const { get } = await startServer(t, { datasets: [datasetOf("big", source)], limits });
  for (const [path, status] of [
    ["cube?bbox=0,40,20,60", 413],
    ["cube?bbox=0,40,20,60&f=csv", 413],
    ["area?coords=POLYGON((0 40,20 40,20 60,0 40))", 413],
    ["trajectory?coords=LINESTRING(0 40,20 60)&f=nc", 413],
    ["position?coords=MULTIPOINT(0 40,10 40)&f=GeoJSON&step=0/999999", 413],
    ["cube?bbox=0,40,20,60&step=3", 500],
  ] as const) {
    const response = await get(`/edr/collections/big/${path}`);
    const body = (await response.json()) as { readonly description: string };
    t.equal(response.status, status, path);
    t.match(body, { code: `${status}`, status });
    t.notMatch(body.description, directory);
    if (status === 413) t.match(body.description, /^Expected .*at most \d+.* received .*\d+/, path);
  }
});
