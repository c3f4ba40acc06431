import { axisRole, isLatitude, isLongitude, type Plane } from "../../cf/axis-roles.js";
import { createCellListFinder, meshPaths } from "../../cf/cell-lists.js";
import { colourBandsOf, levelPathsOf } from "../../cf/image-data.js";
import { isCategorical } from "../../cf/packing.js";
import { createPlacer, groupOf, type Placement, stepCoordinate } from "../../cf/placement.js";
import type { JsonObject, JsonValue } from "../../json/json-value.js";
import { elementCount } from "../../model/data-tree.js";
import type {
  AxisDescription,
  DatasetDescription,
  LevelDescription,
  PlacedCells,
  VariableDescription,
} from "../protocol.js";
import { isDrawable, MAX_WHOLE_VALUES, type MetadataArray, parseMetadata } from "./array-reader.js";
import { PROJECTED_METRES } from "./picture/cells-on-map.js";

/** A dataset, and how its arrays are read. */
export interface OpenedDataset {
  readonly description: DatasetDescription;
  /** Arrays of the dataset and of the overviews, by path. */
  readonly arrays: ReadonlyMap<string, MetadataArray>;
  readonly overviewArrays: ReadonlyMap<string, MetadataArray>;
}

type Arrays = ReadonlyMap<string, MetadataArray>;
type Placer = (array: MetadataArray, shape: readonly number[]) => Placement<MetadataArray> | undefined;

const LAST_OF_PLACE = "Each dot shows the last value of its place.";
const TITLES = ["long_name", "title", "description", "standard_name"];

/**
 * Describes a dataset by the consolidated metadata (`.zmetadata`) of its Zarr v2 store, which are parsed without losing a digit: fill
 * values of times have more than a number holds.
 * @param overviews The same of the overview store; undefined if there is none.
 * @param group Path of the page's group in the dataset, which the overview store contains as a whole.
 * @throws ZpublishError `invalid-metadata`
 */
export function describeDataset(zmetadata: string, overviews?: string, group = ""): OpenedDataset {
  const { arrays, groupAttrs } = parseMetadata(zmetadata);
  const coarse = overviews === undefined ? [] : parseMetadata(overviews).arrays;
  const byPath = new Map(arrays.map((array) => [array.path, array]));
  const coarseByPath = new Map(coarse.map((array) => [array.path, array]));
  const lists = describeLists(arrays, groupAttrs("").featureType);
  const coordinates = new Set([...coordinatePaths(byPath), ...lists.coordinates]);
  const place = createPlacer({ variables: byPath, attrs: groupAttrs("") });
  const within = new Map(arrays.map(({ path }) => [path, levelPathsOf(path, groupAttrs)]));
  const overviewOf = (path: string, level: number) =>
    coarseByPath.get(`${level}/${group === "" ? path : `${group}/${path}`}`);
  const levelsOf = (array: MetadataArray) => {
    const named = within.get(array.path)!.map((path) => byPath.get(path));
    return describeLevels(array, named, overviewOf);
  };
  const isHidden = hiddenPaths(within);
  const variables = arrays
    .filter(({ path }) => !isHidden(path))
    .map((array) => describe(array, byPath, place, coordinates, levelsOf(array), lists));
  return {
    description: { attrs: groupAttrs(""), variables },
    arrays: byPath,
    overviewArrays: coarseByPath,
  };
}

/** Tells which arrays are no variables of their own: coarser versions of others, and what else is in groups of those. */
function hiddenPaths(within: ReadonlyMap<string, readonly string[]>): (path: string) => boolean {
  const [paths, groups] = [new Set<string>(), new Set<string>()];
  for (const [finest, levels] of within) {
    for (const path of levels) {
      paths.add(path);
      if (groupOf(path) !== groupOf(finest)) groups.add(groupOf(path));
    }
  }
  return (path) => paths.has(path) || groups.has(groupOf(path));
}

function describe(
  array: MetadataArray,
  byPath: Arrays,
  place: Placer,
  coordinates: ReadonlySet<string>,
  levels: readonly LevelDescription[],
  lists: DescribedLists,
): VariableDescription {
  const { group, readable, ...stored } = array;
  const { path, name, dims, shape, dataType, attrs } = stored;
  const problem = typeof readable === "string" ? readable : undefined;
  const isShown = isDrawable(dataType) && problem === undefined && !shape.includes(0);
  // A single place has no map: what is there is a series.
  const long = shape.filter((length) => length > 1).length;
  const bands = isShown ? colourBandsOf(array) : undefined;
  const cells = bands === undefined ? shape : shape.with(bands.axis, 1);
  const placement = isShown && long > 1 ? place(array, cells) : undefined;
  const list = isShown && !coordinates.has(path) ? lists.placed.get(path) : undefined;
  const isStriped = list === undefined && placement !== undefined && lists.isStriped(array, placement.plane);
  const plane = list?.plane ?? (isStriped ? undefined : placement?.plane);
  const isPlot = isShown && (long === 1 || dims.length === 1 || isStriped);
  return {
    ...stored,
    title: titleOf(attrs) ?? name,
    units: unitsOf(attrs),
    isCoordinate: coordinates.has(path),
    isCategorical: isCategorical(attrs) || dataType.kind === "b",
    form: plane !== undefined ? "image" : isPlot ? "plot" : "text",
    axes: dims.map((_, axis) => describeAxis(array, axis, byPath, placement)),
    plane,
    projection: list === undefined ? placement?.projection : list.projection,
    ...(list === undefined
      ? describeGrid(placement?.grid)
      : { curvilinear: list.curvilinear, unplaced: list.curvilinear.list?.ragged && LAST_OF_PLACE }),
    levels: list === undefined ? levels : [],
    bands,
    problem,
  };
}

function describeAxis(
  array: MetadataArray,
  axis: number,
  byPath: Arrays,
  placement: Placement<MetadataArray> | undefined,
): AxisDescription {
  const [dim, length] = [array.dims[axis]!, array.shape[axis]!];
  const coordinate = stepCoordinate(byPath, array, dim);
  const attrs = coordinate?.attrs;
  const { plane, isDegrees = false, isImage = false } = placement ?? {};
  const [isX, isY] = [axis === plane?.x, axis === plane?.y];
  const isReadable = typeof coordinate?.readable === "object" && !(isImage && (isX || isY));
  return {
    dim,
    length,
    role: axisRole(dim, attrs),
    coordinate: isReadable ? coordinate.path : undefined,
    isLatitude: attrs !== undefined && (isLatitude(attrs) || (isDegrees && isY)),
    isLongitude: attrs !== undefined && (isLongitude(attrs) || (isDegrees && isX)),
  };
}

/** Describes the coordinates of a curvilinear grid that can be read and are few enough. */
function describeGrid(
  grid: Placement<MetadataArray>["grid"],
): Pick<VariableDescription, "curvilinear" | "unplaced"> {
  if (grid === undefined) return { curvilinear: undefined, unplaced: undefined };
  const { latitude, longitude } = grid;
  const cells = elementCount(latitude.shape.slice(-2));
  const unreadable = [latitude, longitude].find(({ readable }) => typeof readable === "string");
  if (unreadable === undefined && cells <= MAX_WHOLE_VALUES)
    return { curvilinear: { latitude: latitude.path, longitude: longitude.path }, unplaced: undefined };
  const reason =
    unreadable === undefined
      ? `its ${cells.toLocaleString("en")} cells are too many to be placed`
      : `${unreadable.path} cannot be read in a browser`;
  return { curvilinear: undefined, unplaced: `Shown as rows and columns, not as a map: ${reason}.` };
}

/** Describes the coarser versions of an array: those that the dataset names, else those of the overviews. */
function describeLevels(
  { path, shape, readable }: MetadataArray,
  named: readonly (MetadataArray | undefined)[],
  overviewOf: (path: string, level: number) => MetadataArray | undefined,
): readonly LevelDescription[] {
  if (typeof readable === "string") return [];
  const levelOf = (found: MetadataArray | undefined, level: number, isInOverviews: boolean) => {
    if (found === undefined || !isReadable(found) || found.shape.length !== shape.length) return [];
    const factors = shape.map((length, axis) => {
      const other = found.shape[axis]!;
      return !isInOverviews ? length / other : other === length ? 1 : 2 ** level;
    });
    const fits =
      !isInOverviews ||
      shape.every((length, axis) => found.shape[axis] === Math.ceil(length / factors[axis]!));
    const { path, chunkShape } = found;
    return fits ? [{ level, isInOverviews, path, shape: found.shape, chunkShape, factors }] : [];
  };
  const levels = named.flatMap((found, index) => levelOf(found, index + 1, false));
  if (levels.length > 0) return levels;
  for (let level = 1; ; level++) {
    const next = levelOf(overviewOf(path, level), level, true);
    if (next.length === 0) return levels;
    levels.push(...next);
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

interface PlacedList extends Pick<VariableDescription, "projection"> {
  readonly plane: Plane;
  readonly curvilinear: PlacedCells;
}

/** Arrays of a dataset whose cells are lists of places: stations, tracks, meshes. */
interface DescribedLists {
  /** Their planes and places, by path. */
  readonly placed: ReadonlyMap<string, PlacedList>;
  /** Paths of the coordinates and connectivities that they need. */
  readonly coordinates: ReadonlySet<string>;
  /** Tells whether a picture of an array would show nothing but stripes. */
  readonly isStriped: (array: MetadataArray, plane: Plane) => boolean;
}

/** Finds lists of places in a dataset. @param featureType Its attribute of that name (CF section 9). */
function describeLists(arrays: readonly MetadataArray[], featureType?: JsonValue): DescribedLists {
  const { near, listOf, isStriped } = createCellListFinder(arrays, featureType, isReadable);
  const coordinates = new Set(arrays.flatMap((array) => meshPaths(array, near(array))));
  const placed = new Map<string, PlacedList>();
  for (const array of arrays) {
    const found = listOf(array);
    if (found === undefined) continue;
    const { plane, latitude, longitude, ...list } = found;
    const { corners = latitude, ragged } = list;
    for (const path of [latitude, longitude, corners, ragged?.path ?? latitude]) coordinates.add(path);
    if (array.shape[plane.y]! * array.shape[plane.x]! <= 1) continue;
    const curvilinear = {
      latitude,
      longitude,
      list: { ...list, labels: labelsOf(array, plane, near(array)) },
    };
    // The worker draws them in a plane of its own units.
    const projection = list.projection && { ...list.projection, scale: PROJECTED_METRES };
    placed.set(array.path, { plane, curvilinear, projection });
  }
  return { placed, coordinates, isStriped };
}

function isReadable({ readable }: MetadataArray): boolean {
  return typeof readable === "object";
}

/** Finds what names cells: texts or ids of stations and tracks, names first, and times. */
function labelsOf({ dims }: MetadataArray, { x, y }: Plane, near: readonly MetadataArray[]): string[] {
  const listed = [dims[y], dims[x]];
  const alongList = (names: readonly string[]) =>
    names.length > 0 && names.every((dim) => listed.includes(dim));
  const isName = ({ name, attrs }: MetadataArray) =>
    /name/i.test(name) || /^platform_name$/.test(String(attrs.standard_name));
  const hasId = ({ attrs }: MetadataArray) => /_id$/.test(String(attrs.cf_role));
  const names = near.filter((array) => {
    if (!isReadable(array)) return false;
    const { dataType } = array;
    const isCharacters = dataType.kind === "S" && dataType.itemSize === 1 && array.dims.length > 1;
    if (!alongList(isCharacters ? array.dims.slice(0, -1) : array.dims)) return false;
    return hasId(array) || "SUO".includes(dataType.kind);
  });
  const name = names.find(isName) ?? names.find(hasId) ?? names[0];
  const time = near.find(
    (array) => isReadable(array) && alongList(array.dims) && axisRole("", array.attrs) === "T",
  );
  return [name, time].flatMap((array) => array?.path ?? []);
}
