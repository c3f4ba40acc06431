import { axisRole } from "../../cf/axis-roles.js";
import type { JsonObject } from "../../json/json-value.js";
import type { OverviewLevels } from "../dataset.js";
import type { RegularAxes } from "./geo-metadata.js";
import type { Grid } from "./grids.js";
import { coordinateOf } from "./horizontal-dims.js";

/** Units that OME-Zarr 0.4 names in "axes" metadata, by what attributes say. */
const UNITS: Readonly<Record<string, string>> = {
  m: "meter",
  metre: "meter",
  meter: "meter",
  metres: "meter",
  meters: "meter",
  km: "kilometer",
  kilometer: "kilometer",
  kilometers: "kilometer",
  cm: "centimeter",
  mm: "millimeter",
  millimeter: "millimeter",
  um: "micrometer",
  "\u00b5m": "micrometer",
  "\u03bcm": "micrometer",
  micron: "micrometer",
  micrometer: "micrometer",
  micrometers: "micrometer",
  nm: "nanometer",
  nanometer: "nanometer",
  angstrom: "angstrom",
};

const TYPES = { T: "time", Z: "space", Y: "space", X: "space" } as const;

/**
 * Writes the list `multiscales` of OME-Zarr, one entry per variable that it can describe: two to five axes in the order time, channel,
 * space, the last two of which are horizontal (0.4, "multiscales" and "axes" metadata).
 * @param grids First the one that a viewer should open.
 * @param axes Axes of the first grid.
 * @param version `0.4` stands in each entry; in 0.5 it stands beside the list.
 */
export function omeMultiscales(
  levels: OverviewLevels,
  grids: readonly Grid[],
  axes: RegularAxes,
  version: "0.4" | "0.5",
): readonly JsonObject[] {
  const [first] = grids;
  return grids.flatMap((grid) => {
    const isPlaced =
      first !== undefined && grid.group === first.group && grid.y === first.y && grid.x === first.x;
    const entry = entryOf(levels, grid, isPlaced ? axes : undefined);
    return entry === undefined ? [] : [version === "0.4" ? { version, ...entry } : entry];
  });
}

function entryOf(levels: OverviewLevels, grid: Grid, axes: RegularAxes): JsonObject | undefined {
  const { variable, group, y, x } = grid;
  const { tree } = levels.dataset;
  const { dims } = variable;
  const attrsOf = (dim: string) => coordinateOf(tree, group, dim)?.attrs;
  const typeOf = (dim: string) => {
    const role = dim === y ? "Y" : dim === x ? "X" : axisRole(dim, attrsOf(dim));
    return role === undefined ? "channel" : TYPES[role];
  };
  // One letter per axis: one time, one channel, a height, and the plane.
  const order = dims.map((dim) => typeOf(dim)[0]).join("");
  if (!/^t?c?s?ss$/.test(order) || dims.at(-2) !== y || dims.at(-1) !== x) return undefined;
  const unitOf = (dim: string) => {
    const units = attrsOf(dim)?.units;
    return typeof units === "string" && Object.hasOwn(UNITS, units) ? UNITS[units] : undefined;
  };
  // Viewers expect widths above zero, also of values that descend.
  const widthOf = (dim: string) =>
    axes === undefined ? 1 : Math.abs(dim === y ? axes.y.step : dim === x ? axes.x.step : 1);
  return {
    name: variable.path,
    axes: dims.map((dim) => {
      const unit = (dim === y || dim === x) && axes !== undefined ? unitOf(dim) : undefined;
      return { name: dim, type: typeOf(dim), ...(unit !== undefined && { unit }) };
    }),
    datasets: Array.from({ length: levels.count + 1 }, (_, level) => {
      const factorOf = (dim: string) => (dim === y || dim === x ? 2 ** level : 1);
      const scale = dims.map((dim) => widthOf(dim) * factorOf(dim));
      // The centre of a cell of f cells is (f - 1) / 2 of them behind that of the first.
      const translation = dims.map((dim) => (widthOf(dim) * (factorOf(dim) - 1)) / 2);
      return {
        path: `${level}/${variable.path}`,
        coordinateTransformations: [
          { type: "scale", scale },
          ...(level === 0 ? [] : [{ type: "translation", translation }]),
        ],
      };
    }),
  };
}
