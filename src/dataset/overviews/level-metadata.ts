import type { RegularAxis } from "../../cf/axis-order.js";
import { axisRole, isLatitude, isLongitude } from "../../cf/axis-roles.js";
import type { JsonObject, JsonValue } from "../../json/json-value.js";
import type { OverviewLevels } from "../dataset.js";
import { lengthAt } from "./level-array.js";
import { coordinateOf, type Grid, gridMappingOf } from "./level-grids.js";

/**
 * Conventions by name, with what registers them (Zarr Conventions Specification, "Convention Metadata Object"). The tags are those that
 * each convention's own schema names.
 */
const CONVENTIONS = {
  multiscales: {
    schema_url: "https://raw.githubusercontent.com/zarr-conventions/multiscales/refs/tags/v1/schema.json",
    spec_url: "https://github.com/zarr-conventions/multiscales/blob/v1/README.md",
    uuid: "d35379db-88df-4056-af3a-620245f8e347",
    name: "multiscales",
    description: "Multiscale layout of zarr datasets",
  },
  spatial: {
    schema_url: "https://raw.githubusercontent.com/zarr-conventions/spatial/refs/tags/v0.1/schema.json",
    spec_url: "https://github.com/zarr-conventions/spatial/blob/v0.1/README.md",
    uuid: "689b58e2-cf7b-45e0-9fff-9cfc0883d6b4",
    name: "spatial",
    description: "Spatial coordinate information",
  },
  proj: {
    schema_url: "https://raw.githubusercontent.com/zarr-conventions/proj/refs/tags/v0.1/schema.json",
    spec_url: "https://github.com/zarr-conventions/proj/blob/v0.1/README.md",
    uuid: "f17cb550-5864-4468-aeb7-f3180cfb622f",
    name: "proj",
    description: "Coordinate reference system information for geospatial data",
  },
} as const;

/** Names that the convention has for methods ("resampling_method"). */
const METHODS = { mean: "average", nearest: "nearest", max: "max", mode: "mode" } as const;

/** Axes of a grid that are regular; undefined if one of them is not, or is not known. */
export type RegularAxes = { readonly y: RegularAxis; readonly x: RegularAxis } | undefined;

/**
 * Writes the attributes of GeoZarr for the root of overviews: the conventions `multiscales`, `spatial:` and `proj:`. What `spatial:`
 * declares wins over coordinates, so it is left out unless axes are regular, and the transform of a level whose last cell is narrower.
 * @param grid The grid that a viewer should open; undefined if there is none.
 */
export function geoMetadata(levels: OverviewLevels, grid: Grid | undefined, axes: RegularAxes): JsonObject {
  const proj = grid === undefined ? {} : projOf(levels, grid);
  const shape = grid && axes && lengthsOf(grid);
  const conventions: JsonValue[] = [CONVENTIONS.multiscales];
  if (shape !== undefined) conventions.push(CONVENTIONS.spatial);
  if (Object.keys(proj).length > 0) conventions.push(CONVENTIONS.proj);
  return {
    zarr_conventions: conventions,
    multiscales: {
      layout: Array.from({ length: levels.count + 1 }, (_, level) => layoutOf(level, grid, axes)),
      resampling_method: METHODS[levels.method],
    },
    ...(grid &&
      shape &&
      axes && { "spatial:dimensions": [grid.y, grid.x], "spatial:bbox": boxOf(shape, axes) }),
    ...proj,
  };
}

/** Scale and translation are relative to the level below ("Transform Object"); the corner of the grid stays where it is. */
function layoutOf(level: number, grid: Grid | undefined, axes: RegularAxes): JsonObject {
  const below = grid === undefined || grid.group.path === "/" ? "" : grid.group.path;
  const isFirst = level === 0;
  return {
    asset: `${level}${below}`,
    ...(!isFirst && { derived_from: `${level - 1}${below}` }),
    transform: isFirst ? { scale: [1, 1] } : { scale: [2, 2], translation: [0, 0] },
    ...(grid && axes && placeOf(level, lengthsOf(grid), axes)),
  };
}

function placeOf(
  level: number,
  [height, width]: readonly [number, number],
  { y, x }: NonNullable<RegularAxes>,
): JsonObject {
  const factor = 2 ** level;
  const isPadded = height % factor !== 0 || width % factor !== 0;
  return {
    "spatial:shape": [lengthAt(height, level), lengthAt(width, level)],
    // Of corners, not of centres ("Coordinate convention").
    ...(!isPadded && {
      "spatial:transform": [
        x.step * factor,
        0,
        x.first - x.step / 2,
        0,
        y.step * factor,
        y.first - y.step / 2,
      ],
    }),
  };
}

/** Returns the edges of the grid: `[xmin, ymin, xmax, ymax]`. */
function boxOf([height, width]: readonly [number, number], { y, x }: NonNullable<RegularAxes>): number[] {
  const edgesOf = ({ first, step }: RegularAxis, length: number) =>
    [first - step / 2, first + (length - 0.5) * step].sort((a, b) => a - b) as [number, number];
  const [west, east] = edgesOf(x, width);
  const [south, north] = edgesOf(y, height);
  return [west, south, east, north];
}

function lengthsOf({ variable: { dims, shape }, y, x }: Grid): readonly [number, number] {
  return [shape[dims.indexOf(y)]!, shape[dims.indexOf(x)]!];
}

/** A name of a coordinate reference system in WKT2 (ISO 19162), which WKT1 has not. */
const WKT2 =
  /^\s*(?:(?:PROJ|GEOG|GEOD|BOUND|COMPOUND|ENG|DERIVEDPROJ)CRS|(?:PROJECTED|GEOGRAPHIC|GEODETIC)CRS)\s*\[/i;
/** The code at the end of a WKT, which names the whole system. */
const CODE = /(?:^EPSG:|(?:AUTHORITY|ID)\["EPSG",\s*"?)(\d+)(?:$|"?\s*\]\s*\]\s*$)/i;

/** Says the coordinate reference system by exactly one of its keys; empty if none is known. */
function projOf({ dataset }: OverviewLevels, grid: Grid): JsonObject {
  const mapping = gridMappingOf(dataset.tree, grid);
  if (mapping === undefined) {
    const { yCoordinate, xCoordinate } = grid;
    const isPlain =
      yCoordinate && xCoordinate && isLatitude(yCoordinate.attrs) && isLongitude(xCoordinate.attrs);
    // Every viewer assumes WGS 84 for latitudes and longitudes without a named system.
    return isPlain ? { "proj:code": "EPSG:4326" } : {};
  }
  const { crs_wkt, spatial_ref } = mapping.attrs;
  const texts = [crs_wkt, spatial_ref].filter((text) => typeof text === "string");
  for (const text of texts) {
    const code = CODE.exec(text)?.[1];
    if (code !== undefined) return { "proj:code": `EPSG:${code}` };
  }
  const wkt = texts.find((text) => WKT2.test(text));
  return wkt === undefined ? {} : { "proj:wkt2": wkt };
}

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
      // The centre of a cell of f cells is (f - 1) / 2 cells after the centre of the first.
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
