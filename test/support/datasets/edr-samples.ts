import { createMemorySource } from "../../../src/open/memory-source.js";
import type { Source } from "../../../src/zarr/stored-tree.js";

/** Lengths of time, level, latitude and longitude of {@link airOnGrid}. */
export const AIR_SHAPE = [4, 3, 18, 36] as const;

/** Returns the value of `t` of {@link airOnGrid} at four indexes. */
export function airValue(time: number, level: number, row: number, column: number): number {
  return ((time * 3 + level) * 18 + row) * 36 + column;
}

function axisOf(name: string, values: readonly number[], attrs: Readonly<Record<string, string>>) {
  return { name, data: Float64Array.from(values), shape: [values.length], dims: [name], attrs };
}

const steps = (length: number, first: number, step: number) =>
  Array.from({ length }, (_, index) => first + index * step);

/**
 * Creates a dataset in memory on a grid of ten degrees: `t` over time, level, latitude and longitude, whose items are their numbers in C
 * order plus `offset`; `surface`, packed, without levels; `sea` over latitude and longitude; `member/t` over a custom dimension; `mean`,
 * which is on no grid.
 */
export function airOnGrid(calendar = "standard", offset = 0): Source {
  const count = AIR_SHAPE.reduce((product, length) => product * length, 1);
  const t = Float32Array.from({ length: count }, (_, item) => item + offset);
  const axes = [
    axisOf("time", steps(4, 0, 6), { units: "hours since 2000-02-29", calendar, standard_name: "time" }),
    axisOf("level", [850, 500, 250], { units: "hPa", positive: "down" }),
    axisOf("lat", steps(18, 85, -10), { units: "degrees_north" }),
    axisOf("lon", steps(36, 0, 10), { units: "degrees_east" }),
  ];
  const surface = Int16Array.from({ length: 4 * 18 * 36 }, (_, item) => (item === 0 ? -1 : item));
  const arrays = [
    ...axes,
    {
      ...{ name: "t", data: t, shape: [...AIR_SHAPE], dims: ["time", "level", "lat", "lon"] },
      ...{
        chunks: [2, 3, 9, 20],
        attrs: { units: "K", standard_name: "air_temperature", long_name: "Temperature" },
      },
    },
    {
      ...{ name: "surface", data: surface, shape: [4, 18, 36], dims: ["time", "lat", "lon"], fillValue: -1 },
      attrs: { units: "K", scale_factor: 0.5 },
    },
    {
      name: "sea",
      data: Int32Array.from({ length: 648 }, (_, item) => item),
      shape: [36, 18],
      dims: ["lon", "lat"],
    },
    { name: "mean", data: Float64Array.of(1, 2, 3, 4), shape: [4], dims: ["time"] },
  ];
  const members = [
    axisOf("member", [1, 2], {}),
    {
      ...{ name: "t", data: t.slice(0, 2 * 648), shape: [2, 18, 36], dims: ["member", "lat", "lon"] },
      attrs: { units: "K" },
    },
  ];
  return createMemorySource({
    location: "air",
    groups: [
      { path: "/", attrs: { title: "Air on a grid" }, arrays },
      { path: "/member", attrs: {}, arrays: members },
    ],
  });
}

/** Creates `ice` over 8 rows and 9 columns, whose cells have latitudes and longitudes of their own, beside Greenwich; items as in {@link airOnGrid}. */
export function iceOnCells(): Source {
  const places = Array.from({ length: 72 }, (_, cell) => [Math.floor(cell / 9), cell % 9] as const);
  const cells = { shape: [8, 9], dims: ["y", "x"] };
  const arrays = [
    {
      name: "ice",
      data: Float32Array.from({ length: 72 }, (_, item) => item),
      ...cells,
      attrs: { coordinates: "nav_lat nav_lon" },
    },
    {
      ...{ name: "nav_lat", data: Float64Array.from(places, ([y, x]) => 60 + y + 0.1 * x), ...cells },
      attrs: { units: "degrees_north" },
    },
    {
      ...{
        name: "nav_lon",
        data: Float64Array.from(places, ([y, x]) => (350 + 2 * x + 0.2 * y) % 360),
        ...cells,
      },
      attrs: { units: "degrees_east" },
    },
  ];
  return createMemorySource({ location: "ice", groups: [{ path: "/", attrs: {}, arrays }] });
}
