import type { JsonObject } from "../json/json-value.js";
import { axisRole, isLatitude, isLongitude, type Plane, planeOf } from "./axis-roles.js";
import { type GridProjection, type GridReference, gridReferenceOf } from "./grid-mapping.js";

/** A variable as others of its dataset see it. */
export interface CfVariable {
  /** `a/b/t2m` */
  readonly path: string;
  readonly dims: readonly string[];
  readonly shape: readonly number[];
  readonly attrs: JsonObject;
}

/** What a picture of a variable shows, and how that lies on the Earth. At most one of the optional parts is there. */
export interface Placement<V> {
  /** Axes that run down and to the right. */
  readonly plane: Plane;
  /** Latitudes and longitudes of all cells, whose last two dimensions are those of the plane. */
  readonly grid?: { readonly latitude: V; readonly longitude: V };
  readonly projection?: GridProjection;
  /** Whether the coordinates of the plane are degrees, though their attributes do not say so. */
  readonly isDegrees?: boolean;
  /** Whether the coordinates of the plane only count the pixels of an image, whose rows run down. */
  readonly isImage?: boolean;
}

/** Latitudes and longitudes of the cells of a grid. */
export interface CellGrid {
  /** Paths of the variables. */
  readonly latitude: string;
  readonly longitude: string;
  /** Axes of the array along which rows and columns are counted. */
  readonly y: number;
  readonly x: number;
}

/** How an array lies on the Earth. */
export interface Georeference {
  /** How the axes Y and X lie on the Earth: `degrees` if they are latitudes and longitudes, or one is; undefined if not known. */
  readonly crs: GridReference | undefined;
  /** Latitudes and longitudes of all cells; undefined if the array has no two-dimensional ones. */
  readonly grid: CellGrid | undefined;
}

/** Variables of a dataset by path. */
export type CfVariables<V> = Pick<ReadonlyMap<string, V>, "get" | "values">;

/** Returns the variables of arrays, by the same paths. */
export function variablesOf<V>(arrays: ReadonlyMap<string, { readonly variable: V }>): CfVariables<V> {
  return {
    get: (path) => arrays.get(path)?.variable,
    values: () => Array.from(arrays.values(), ({ variable }) => variable).values(),
  };
}

interface CfDataset<V> {
  readonly variables: CfVariables<V>;
  /** Attributes of the root. */
  readonly attrs: JsonObject;
}

/**
 * Creates a function that finds where a variable lies. One-dimensional latitudes and longitudes count first, then a projection that is
 * known, then latitudes and longitudes of each cell, then a geographic system of unnamed coordinates. The function returns undefined
 * for a variable with fewer than two axes; its parameter `shape` is the one by which short axes are left out.
 */
export function createPlacer<V extends CfVariable>({ variables, attrs }: CfDataset<V>) {
  let gridsOf: ReturnType<typeof createGridFinder<V>> | undefined;
  return (variable: CfVariable, shape = variable.shape): Placement<V> | undefined => {
    const coordinate = (dim: string) => dimensionCoordinate(variables, variable, dim);
    const plane = planeOf(variable.dims, (dim) => coordinate(dim)?.attrs, shape);
    if (plane === undefined) return undefined;
    const [dimY, dimX] = [variable.dims[plane.y]!, variable.dims[plane.x]!];
    const [y, x] = [coordinate(dimY), coordinate(dimX)];
    const isPlace = (found: V | undefined) =>
      found !== undefined && (isLatitude(found.attrs) || isLongitude(found.attrs));
    if (isPlace(y) && isPlace(x)) return { plane };
    const isGrid = y && x && axisRole(dimY, y.attrs) === "Y" && axisRole(dimX, x.attrs) === "X";
    const reference = isGrid ? referenceOf(variable, x.attrs.units) : undefined;
    if (typeof reference === "object") return { plane, projection: reference };
    gridsOf ??= createGridFinder(variables.values());
    const found = gridsOf(variable);
    if (found !== undefined) return found;
    if (reference === undefined) return { plane };
    return reference === "degrees" ? { plane, isDegrees: true } : { plane, isImage: true };
  };

  /** Looks at the variable's grid mapping, then at what the variable and the dataset say themselves. */
  function referenceOf(variable: CfVariable, units: unknown) {
    const names = mappingNames(variable);
    for (const name of names.length > 0 ? names : ["spatial_ref", "crs"]) {
      const mapping = findAbove(variables, variable.path, name);
      const found = mapping && gridReferenceOf(mapping.attrs, units);
      if (found !== undefined) return found;
    }
    return gridReferenceOf(variable.attrs, units) ?? gridReferenceOf(attrs, units);
  }
}

/**
 * Says how a variable lies on the Earth. @param coordinates Those of its axes. @param findGrid As {@link createGridFinder} finds it.
 */
export function georeferenceOf<V extends CfVariable>(
  placement: Placement<V> | undefined,
  coordinates: readonly (V | undefined)[],
  findGrid: () => Pick<Placement<V>, "plane" | "grid"> | undefined,
): Georeference {
  const { projection, isDegrees, isImage } = placement ?? {};
  // Latitudes and longitudes of cells beside coordinates of a projection.
  const { grid, plane } = (projection === undefined ? placement : findGrid()) ?? {};
  const isGeographic =
    grid === undefined && coordinates.some((each) => each && (isLatitudes(each) || isLongitudes(each)));
  return {
    crs: projection ?? (isDegrees || isGeographic ? "degrees" : isImage ? "pixels" : undefined),
    grid: grid && { latitude: grid.latitude.path, longitude: grid.longitude.path, ...plane! },
  };
}

/** Names of grid mappings; of the long form `a: x y b: lat lon`, those of the variable's own dimensions first. */
function mappingNames({ attrs, dims }: CfVariable): string[] {
  const words = typeof attrs.grid_mapping === "string" ? attrs.grid_mapping.trim().split(/\s+/) : [];
  const named = words.flatMap((word, index) => {
    if (!word.endsWith(":")) return [];
    const end = words.findIndex((other, place) => place > index && other.endsWith(":"));
    const isOwn = words.slice(index + 1, end === -1 ? undefined : end).some((dim) => dims.includes(dim));
    return [{ name: word.slice(0, -1), isOwn }];
  });
  if (named.length === 0) return words;
  return [...named.filter(({ isOwn }) => isOwn), ...named.filter(({ isOwn }) => !isOwn)].map(
    ({ name }) => name,
  );
}

/**
 * Finds the coordinate of a dimension: the variable of that name, dimension and length in the group of a variable, else in the nearest
 * group above it (CF section 2.7).
 */
export function dimensionCoordinate<V extends CfVariable>(
  variables: CfVariables<V>,
  variable: CfVariable,
  dim: string,
): V | undefined {
  return findAbove(variables, variable.path, dim, isAlong(variable, dim));
}

/**
 * Finds what the steps of a dimension are called by: its coordinate, else a time that the attribute `coordinates` names, such as WRF's
 * `XTIME`, if it names no other variable of this dimension alone, as it does for places along a track.
 */
export function stepCoordinate<V extends CfVariable>(
  variables: CfVariables<V>,
  variable: CfVariable,
  dim: string,
): V | undefined {
  const find = (name: string) => findAbove(variables, variable.path, name, isAlong(variable, dim)) ?? [];
  const own = dimensionCoordinate(variables, variable, dim);
  const named = listedNames(variable).flatMap(find);
  const [time] = named.length === 1 && axisRole("", named[0]!.attrs) === "T" ? named : [];
  return own ?? time;
}

function listedNames({ attrs }: CfVariable): string[] {
  return typeof attrs.coordinates === "string" ? attrs.coordinates.trim().split(/\s+/) : [];
}

/** Returns a test for variables of one dimension alone, as long as it is for another variable. */
function isAlong({ dims, shape }: CfVariable, dim: string) {
  const length = shape[dims.indexOf(dim)];
  return (found: CfVariable): boolean =>
    found.dims.length === 1 && found.dims[0] === dim && found.shape[0] === length;
}

function findAbove<V>(
  variables: CfVariables<V>,
  path: string,
  name: string,
  fits: (found: V) => boolean = () => true,
): V | undefined {
  for (let group = groupOf(path); ; group = groupOf(group.slice(0, -1))) {
    const found = variables.get(group + name);
    if (found !== undefined && fits(found)) return found;
    if (group === "") return undefined;
  }
}

/** Returns the group of a path with a slash at its end; empty for the root. */
export function groupOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/") + 1);
}

/** Usual names: `XLAT_U`, `TLAT`, `nav_lat`, `geolat_t`, `lat_rho`, `Latitude`. */
const LATITUDE_NAME = /^(?:[xtuvfqc]|nav_?|geo)?lat(?:itudes?)?(?:_\w+)?$/i;
const LONGITUDE_NAME = /^(?:[xtuvfqc]|nav_?|geo)?lon(?:g|gitudes?)?(?:_\w+)?$/i;

/** Creates a function that finds latitudes and longitudes of the cells of a variable (CF section 5.2), whatever its axes are. */
export function createGridFinder<V extends CfVariable>(variables: Iterable<V>) {
  const [latitudes, longitudes]: [V[], V[]] = [[], []];
  for (const each of variables) {
    if (each.dims.length < 2) continue;
    if (isLatitudes(each)) latitudes.push(each);
    else if (isLongitudes(each)) longitudes.push(each);
  }
  return (variable: CfVariable): Pick<Placement<V>, "plane" | "grid"> | undefined => {
    const rank = (each: V) => rankOf(each, variable);
    for (const latitude of latitudes
      .filter((each) => fits(each, variable))
      .sort((a, b) => rank(a) - rank(b))) {
      const wanted = stemOf(latitude);
      const [longitude] = longitudes
        .filter(({ dims, shape }) => `${dims}` === `${latitude.dims}` && `${shape}` === `${latitude.shape}`)
        .sort((a, b) => rank(a) - rank(b) + Number(stemOf(b) === wanted) - Number(stemOf(a) === wanted));
      if (longitude === undefined) continue;
      const [y, x] = latitude.dims.slice(-2).map((dim) => variable.dims.indexOf(dim)) as [number, number];
      return { plane: { y, x }, grid: { latitude, longitude } };
    }
    return undefined;
  };
}

/** Tells whether a variable holds latitudes, as {@link isLongitudes} does of longitudes. */
export function isLatitudes(variable: CfVariable): boolean {
  return isLatitude(variable.attrs) || isNamed(variable, LATITUDE_NAME);
}

/** Tells whether a variable holds longitudes, by its attributes, or by its usual name if these do not say what it holds. */
export function isLongitudes(variable: CfVariable): boolean {
  return isLongitude(variable.attrs) || isNamed(variable, LONGITUDE_NAME);
}

/** Whether coordinates without attributes have the name and units of latitudes or longitudes. */
function isNamed({ path, attrs }: CfVariable, pattern: RegExp): boolean {
  const { standard_name, units } = attrs;
  const mayBe = standard_name === undefined && (units === undefined || /^deg/i.test(String(units)));
  return mayBe && pattern.test(path.slice(groupOf(path).length));
}

/** Name without what tells latitudes from longitudes. */
function stemOf({ path }: CfVariable): string {
  return path.toLowerCase().replace(/l(?:at(?:itude)?|on(?:g(?:itude)?)?)/g, "l");
}

/**
 * Tells if coordinates belong to the cells of a variable: their last two dimensions are dimensions of it, and so are those before,
 * such as the time of a grid that moves, or they have one step.
 */
function fits({ dims, shape }: CfVariable, variable: CfVariable): boolean {
  return dims.every((dim, axis) => {
    const place = variable.dims.indexOf(dim);
    if (place === -1) return axis < dims.length - 2 && shape[axis] === 1;
    return variable.shape[place] === shape[axis];
  });
}

/**
 * Less for coordinates that the attribute `coordinates` names, then for those of the same group, of one above, of one nearby, then for
 * those that say by their attributes what they are.
 */
function rankOf({ path, dims, attrs: own }: CfVariable, variable: CfVariable): number {
  const isListed = listedNames(variable).some((name) =>
    `/${path}`.endsWith(`/${name.replace(/^(?:\.{0,2}\/)+/, "")}`),
  );
  const [group, from] = [groupOf(path), groupOf(variable.path)];
  const distance = from.startsWith(group) ? from.length - group.length : 1000 - sharedLength(group, from);
  const isSaid = isLatitude(own) || isLongitude(own);
  return (isListed ? 0 : 1e6) + distance * 100 + (isSaid ? 0 : 50) + dims.length;
}

function sharedLength(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length++;
  return length;
}
