import { axisRole, isLatitude, isLongitude, planeOf } from "../../cf/axis-roles.js";
import { isCategorical } from "../../cf/packing.js";
import type { JsonObject } from "../../json/json-value.js";
import type {
  AxisDescription,
  DatasetDescription,
  LevelDescription,
  VariableDescription,
} from "../protocol.js";
import { arraysOf, isDrawable, type MetadataArray } from "./array-reader.js";

/** A dataset, and how its arrays are read. */
export interface OpenedDataset {
  readonly description: DatasetDescription;
  /** Arrays of the dataset and of the overviews, by path. */
  readonly arrays: ReadonlyMap<string, MetadataArray>;
  readonly overviewArrays: ReadonlyMap<string, MetadataArray>;
}

type Arrays = ReadonlyMap<string, MetadataArray>;

const TITLES = ["long_name", "title", "description", "standard_name"];

/**
 * Describes a dataset by the consolidated metadata (`.zmetadata`) of its Zarr v2 store, which are parsed without losing a digit: fill
 * values of times have more than a number holds.
 * @param overviews The same of the overview store; undefined if there is none.
 * @param group Path of the page's group in the dataset, which the overview store contains as a whole.
 * @throws ZpublishError `invalid-metadata`
 */
export function describeDataset(zmetadata: string, overviews?: string, group = ""): OpenedDataset {
  const { arrays, attrs } = arraysOf(zmetadata);
  const coarse = overviews === undefined ? [] : arraysOf(overviews).arrays;
  const byPath = new Map(arrays.map((array) => [array.path, array]));
  const coarseByPath = new Map(coarse.map((array) => [array.path, array]));
  const coordinates = coordinatePaths(byPath);
  const variables = arrays.map((array) => describe(array, byPath, coordinates, coarseByPath, group));
  return { description: { attrs, variables }, arrays: byPath, overviewArrays: coarseByPath };
}

function describe(
  array: MetadataArray,
  byPath: ReadonlyMap<string, MetadataArray>,
  coordinates: ReadonlySet<string>,
  coarse: ReadonlyMap<string, MetadataArray>,
  group: string,
): VariableDescription {
  const { path, name, dims, shape, chunkShape, dataType, attrs, packing, readable } = array;
  const attributesOf = (dim: string) => coordinateOf(array, dim, byPath)?.attrs;
  const problem = typeof readable === "string" ? readable : undefined;
  const isImage = isDrawable(dataType) && problem === undefined && !shape.includes(0);
  const plane = isImage ? planeOf(dims, attributesOf) : undefined;
  const isPlot = isImage && dims.length === 1;
  return {
    path,
    name,
    dims,
    shape,
    chunkShape,
    dataType,
    attrs,
    packing,
    title: titleOf(attrs) ?? name,
    units: unitsOf(attrs),
    isCoordinate: coordinates.has(path),
    isCategorical: isCategorical(attrs) || dataType.kind === "b",
    form: plane !== undefined ? "image" : isPlot ? "plot" : "text",
    axes: dims.map((dim, axis) => describeAxis(array, dim, shape[axis]!, byPath)),
    plane,
    curvilinear: plane && curvilinearOf(array, dims[plane.y]!, dims[plane.x]!, byPath),
    levels: levelsOf(array, coarse, group),
    problem,
  };
}

function describeAxis(array: MetadataArray, dim: string, length: number, byPath: Arrays): AxisDescription {
  const coordinate = coordinateOf(array, dim, byPath);
  const attrs = coordinate?.attrs;
  const isReadable = typeof coordinate?.readable === "object" && coordinate.shape[0] === length;
  return {
    dim,
    length,
    role: axisRole(dim, attrs),
    coordinate: isReadable ? coordinate.path : undefined,
    isLatitude: attrs !== undefined && isLatitude(attrs),
    isLongitude: attrs !== undefined && isLongitude(attrs),
  };
}

/** Finds the coordinate of a dimension in the array's group, else in the groups above it, as xarray's DataTree inherits them. */
function coordinateOf(array: MetadataArray, dim: string, byPath: Arrays): MetadataArray | undefined {
  for (let group = array.group; ; group = group.replace(/[^/]*\/$/, "")) {
    const found = byPath.get(group + dim);
    if (found?.dims.length === 1 && found.dims[0] === dim) return found;
    if (group === "") return undefined;
  }
}

/** Finds latitudes and longitudes with the dimensions of the plane (CF section 5.2). */
function curvilinearOf(
  array: MetadataArray,
  y: string,
  x: string,
  byPath: Arrays,
): VariableDescription["curvilinear"] {
  const isFound = (dim: string) => {
    const attrs = coordinateOf(array, dim, byPath)?.attrs;
    return attrs !== undefined && (isLatitude(attrs) || isLongitude(attrs));
  };
  if (isFound(y) && isFound(x)) return undefined;
  const grids = [...byPath.values()].filter(
    ({ group, dims, readable }) =>
      group === array.group &&
      dims.length === 2 &&
      dims[0] === y &&
      dims[1] === x &&
      typeof readable === "object",
  );
  const latitude = grids.find(({ attrs }) => isLatitude(attrs));
  const longitude = grids.find(({ attrs }) => isLongitude(attrs));
  return latitude && longitude && { latitude: latitude.path, longitude: longitude.path };
}

function levelsOf(
  { path, shape, readable }: MetadataArray,
  coarse: Arrays,
  group: string,
): LevelDescription[] {
  const levels: LevelDescription[] = [];
  if (typeof readable === "string") return levels;
  const within = group === "" ? path : `${group}/${path}`;
  for (let level = 1; ; level++) {
    const found = coarse.get(`${level}/${within}`);
    if (found === undefined || typeof found.readable === "string") return levels;
    const factors = shape.map((length, axis) => (found.shape[axis] === length ? 1 : 2 ** level));
    const fits = shape.every((length, axis) => found.shape[axis] === Math.ceil(length / factors[axis]!));
    if (!fits || found.shape.length !== shape.length) return levels;
    levels.push({ level, path: found.path, shape: found.shape, chunkShape: found.chunkShape, factors });
  }
}

/** Paths of coordinates: named as their dimension, or listed in an attribute `coordinates` or `bounds` (CF sections 5 and 7). */
function coordinatePaths(byPath: Arrays): ReadonlySet<string> {
  const paths = new Set<string>();
  for (const { path, group, name, dims, attrs } of byPath.values()) {
    if (dims.length === 1 && dims[0] === name) paths.add(path);
    const listed = [attrs.coordinates, attrs.bounds].flatMap((text) =>
      typeof text === "string" ? text.split(/\s+/) : [],
    );
    for (const other of listed) if (byPath.has(group + other)) paths.add(group + other);
  }
  return paths;
}

function titleOf(attrs: JsonObject): string | undefined {
  const titles = TITLES.map((key) => attrs[key]);
  return titles.find((title): title is string => typeof title === "string" && title.trim() !== "");
}

function unitsOf({ units }: JsonObject): string | undefined {
  // CF section 3.1: "1" says that a quantity has no unit.
  return typeof units === "string" && !/^\s*1?\s*$|\bsince\b/i.test(units) ? units : undefined;
}
