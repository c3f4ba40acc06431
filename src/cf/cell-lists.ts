import { type JsonObject, type JsonValue, toNumber } from "../json/json-value.js";
import { axisRole, isLatitude, isLongitude, type Plane } from "./axis-roles.js";
import { type GridProjection, gridReferenceOf } from "./grid-mapping.js";
import { type CfVariable, groupOf } from "./placement.js";

/** An array of a dataset, as far as places are found by it. */
interface NamedArray extends CfVariable {
  readonly name: string;
}

/** Cells that are a list of places: stations, points of tracks, faces and nodes of a mesh. Plain data. */
export interface CellList {
  /** Axes of the list: one and the same, or two if each track has an axis of its own. */
  readonly plane: Plane;
  /** Paths of the coordinates of the cells; if these are faces or edges, of their corners. */
  readonly latitude: string;
  readonly longitude: string;
  /** A cell of `nodes` is what lies nearest to a node. */
  readonly shape: "dots" | "faces" | "nodes" | "edges";
  /**
   * Path of the array with the indices of the corners of faces or edges, by cell. Undefined for dots, and for faces whose corners
   * are bounds: two-dimensional coordinates.
   */
  readonly corners: string | undefined;
  /** Index of the first corner. */
  readonly startIndex: number;
  /** Whether cells are the last axis of `corners`. */
  readonly isTransposed: boolean;
  /** Whether coordinates are in radians instead of degrees. */
  readonly isRadians: boolean;
  /** Projection of the coordinates, if they are x and y of it instead of longitudes and latitudes. */
  readonly projection?: GridProjection | undefined;
  /**
   * Array that says which cells belong to which place, if places have a dimension of their own: how many of the cells, in the order of
   * places, else the index of the place of each cell (CF sections 9.3.3 and 9.3.4).
   */
  readonly ragged?: { readonly path: string; readonly isCounts: boolean } | undefined;
}

const LATITUDE_NAMES = /^(?:[a-z]+_)?(?:nav_|[cev])?lat(?:s|itudes?|cell|edge|vertex)?$/i;
const LONGITUDE_NAMES = /^(?:[a-z]+_)?(?:nav_|[cev])?lon(?:s|g|gitudes?|cell|edge|vertex)?$/i;
/** Names of dimensions that count places, of datasets in which nothing else says so. */
const LIST_NAMES =
  /(?:^|_)n?(?:stations?|stn|sites?|buoys?|gauges?|drifters?|floats?|n?cells?|nodes?|nod2|faces?|edges?|n?ele?m?|elements?|vert(?:ex|ices)|obs|profiles?|traj(?:ectory|ectories)?)$/i;

/**
 * Creates the finder of the arrays of a dataset whose cells are lists. Those alike are looked at once: a group may have thousands.
 * @param featureType Attribute `featureType` of the dataset.
 * @param isReadable Tells which arrays may be coordinates. Default: all.
 */
export function createCellListFinder<V extends NamedArray>(
  arrays: Iterable<V>,
  featureType?: JsonValue,
  isReadable: (array: V) => boolean = () => true,
) {
  const all = [...arrays];
  const known = new Map<string, unknown>();
  const once = <T>(key: readonly unknown[], find: () => T): T => {
    const text = JSON.stringify(key);
    if (!known.has(text)) known.set(text, find());
    return known.get(text) as T;
  };
  const near = ({ path }: V) => {
    const group = groupOf(path);
    return once([group], () => {
      const found = all.filter((each) => group.startsWith(groupOf(each.path)));
      return found.sort((one, other) => groupOf(other.path).length - groupOf(one.path).length);
    });
  };
  return {
    /** Returns the arrays of the group of an array and of the groups above it, nearest first. */
    near,
    /**
     * Finds the places of a variable whose cells are a list: by the topology of its mesh (UGRID 1.0), by coordinates along one of its
     * axes (CF sections 5 and 9), by those of the stations to which cells belong, or by those of tracks along two axes.
     */
    listOf(variable: V) {
      const { path, dims, shape, attrs } = variable;
      const { coordinates, mesh, location, grid_mapping } = attrs;
      return once([groupOf(path), dims, shape, coordinates, mesh, location, grid_mapping], () => {
        const readable = near(variable).filter(isReadable);
        const found = meshCells(variable, readable) ?? placesAlongAxis(variable, readable);
        return found ?? raggedCells(variable, readable) ?? tracks(variable, readable, featureType);
      });
    },
    /**
     * Tells whether a picture of rows and columns shows nothing but stripes: along one of its axes there are places, whose neighbours
     * are none on a map, along the other one times, levels, or few parts.
     */
    isStriped: (variable: V, plane: Plane) =>
      once([groupOf(variable.path), variable.dims, variable.shape, plane], () =>
        isStriped(variable, plane, near(variable)),
      ),
  };
}

/** Longest axis beside a list of places that counts parts of one, such as its corners. */
const MAX_PARTS = 16;

function isStriped({ dims, shape }: NamedArray, { x, y }: Plane, near: readonly NamedArray[]): boolean {
  const attrsOf = (dim: string) => near.find(({ name }) => name === dim)?.attrs;
  const isBeside = (list: number, other: number): boolean => {
    if (!isListAxis(dims[list]!, near)) return false;
    return shape[other]! <= MAX_PARTS || /^[TZ]$/.test(axisRole(dims[other]!, attrsOf(dims[other]!)) ?? "");
  };
  return isBeside(x, y) || isBeside(y, x);
}

function isListAxis(dim: string, near: readonly NamedArray[]): boolean {
  if (LIST_NAMES.test(dim)) return true;
  return near.some(({ attrs, dims }) => dims[0] === dim && /_id$/.test(String(attrs.cf_role)));
}

/** Lists the paths of what describes a mesh: its topology, coordinates and connectivities. Empty if an array is no topology. */
export function meshPaths(mesh: NamedArray, near: readonly NamedArray[]): string[] {
  if (!isMesh(mesh)) return [];
  const named = Object.entries(mesh.attrs).filter(([key]) => /_(?:coordinates|connectivity)$/.test(key));
  return [mesh, ...named.flatMap(([, names]) => namedBy(names, near))].map(({ path }) => path);
}

function isMesh({ attrs }: NamedArray): boolean {
  return attrs.cf_role === "mesh_topology";
}

function meshCells({ dims, attrs }: NamedArray, near: readonly NamedArray[]): CellList | undefined {
  const meshes = near.filter(isMesh);
  const own = meshes.filter(({ name }) => name === attrs.mesh);
  for (const mesh of own.length > 0 ? own : meshes) {
    const found = (["face", "node", "edge"] as const)
      .filter((location) => attrs.location === undefined || attrs.location === location)
      .map((location) => cellsAt(location, dims, mesh.attrs, near, attrs))
      .find((cells) => cells !== undefined);
    if (found !== undefined) return found;
  }
  return undefined;
}

function cellsAt(
  location: "face" | "node" | "edge",
  dims: readonly string[],
  mesh: JsonObject,
  near: readonly NamedArray[],
  attrs: JsonObject,
): CellList | undefined {
  const placesNamed = (names: JsonValue | undefined) => placesOf(namedBy(names, near), attrs, near);
  const nodes = placesNamed(mesh.node_coordinates);
  const own = location === "node" ? nodes : placesNamed(mesh[`${location}_coordinates`]);
  const key = location === "node" ? "face" : location;
  const [corners] = namedBy(mesh[`${key}_node_connectivity`], near);
  const named = mesh[`${key}_dimension`];
  const isTransposed = corners !== undefined && corners.dims[0] !== named && corners.dims[1] === named;
  const dim = location === "node" ? nodes?.dim : (corners?.dims[isTransposed ? 1 : 0] ?? own?.dim);
  const axis = dim === undefined ? -1 : dims.indexOf(dim);
  if (axis === -1) return undefined;
  const plane = { y: axis, x: axis };
  const hasOutlines = nodes !== undefined && corners?.dims.length === 2;
  if (!hasOutlines || (location === "edge" && own !== undefined)) return own && dotsAt(own, plane);
  return {
    ...dotsAt(nodes, plane),
    shape: `${location}s`,
    corners: corners.path,
    startIndex: toNumber(corners.attrs.start_index) ?? 0,
    isTransposed,
  };
}

function placesAlongAxis(
  { dims, shape, attrs }: NamedArray,
  near: readonly NamedArray[],
): CellList | undefined {
  for (const [axis, dim] of dims.entries()) {
    const along = near.filter((each) => each.dims.length === 1 && each.dims[0] === dim && each.name !== dim);
    const places = placesOf(along, attrs, near);
    if (places === undefined) continue;
    // A curtain along a track, or a section: both of its axes are worth a picture.
    const own = near.find(({ name }) => name === dim)?.attrs;
    const isTrack = axisRole(dim, own) === "T" || (own !== undefined && axisRole("", own) !== undefined);
    if (isTrack && shape.some((length, other) => other !== axis && length > 1)) return undefined;
    return { ...dotsAt(places, { y: axis, x: axis }), ...outlinesOf(places, near) };
  }
  return undefined;
}

/** Finds the corners of cells: bounds of their coordinates, or the vertices of an MPAS mesh. */
function outlinesOf({ latitude, longitude, dim }: Places, near: readonly NamedArray[]) {
  const bounds = [latitude, longitude].map(({ attrs }) => namedBy(attrs.bounds, near)[0]);
  const [y, x] = bounds.map((each) => (each?.dims[0] === dim && (each.shape[1] ?? 0) > 2 ? each : undefined));
  if (y !== undefined && x !== undefined)
    return { latitude: y.path, longitude: x.path, shape: "faces" } as const;
  const named = (name: string) => near.find((each) => each.name === name);
  const [vertexY, vertexX, corners] = ["latVertex", "lonVertex", "verticesOnCell"].map(named);
  if (vertexY !== undefined && vertexX !== undefined && corners?.dims[0] === dim) {
    const paths = { latitude: vertexY.path, longitude: vertexX.path, corners: corners.path };
    return { ...paths, shape: "faces", startIndex: 1 } as const;
  }
  return {};
}

/** Finds the places of ragged arrays: the cells of a place follow each other, or each cell has the index of its place. */
function raggedCells({ dims, attrs }: NamedArray, near: readonly NamedArray[]): CellList | undefined {
  for (const array of near) {
    const [own, ...others] = array.dims;
    const isCounts = array.attrs.sample_dimension !== undefined;
    const [cells, instances] = isCounts
      ? [array.attrs.sample_dimension, own]
      : [own, array.attrs.instance_dimension];
    const axis = dims.indexOf(String(cells));
    if (axis === -1 || instances === undefined || others.length > 0) continue;
    const along = near.filter((each) => each.dims.length === 1 && each.dims[0] === instances);
    const places = placesOf(along, attrs, near);
    if (places !== undefined)
      return { ...dotsAt(places, { y: axis, x: axis }), ragged: { path: array.path, isCounts } };
  }
  return undefined;
}

function tracks(
  { dims, attrs }: NamedArray,
  near: readonly NamedArray[],
  featureType: JsonValue | undefined,
): CellList | undefined {
  const lists = dims.filter((dim) => isListAxis(dim, near));
  const isFeature = /^(?:point|timeSeries|trajectory|profile)/i.test(String(featureType));
  const along = near.filter((each) => {
    const [outer, inner] = each.dims.map((dim) => dims.indexOf(dim));
    if (each.dims.length !== 2 || outer === -1 || inner === -1) return false;
    return isFeature || lists.includes(each.dims[0]!);
  });
  const places = placesOf(along, attrs, near);
  if (places === undefined) return undefined;
  const [y, x] = places.latitude.dims.map((dim) => dims.indexOf(dim)) as [number, number];
  return dotsAt(places, { y, x });
}

function dotsAt({ latitude, longitude, projection }: Places, plane: Plane): CellList {
  const { name, attrs } = latitude;
  // MPAS counts in radians, in old files without saying so.
  const isRadians =
    attrs.units === undefined ? /^lat(?:Cell|Edge|Vertex)$/.test(name) : /^rad/i.test(String(attrs.units));
  return {
    plane,
    latitude: latitude.path,
    longitude: longitude.path,
    shape: "dots",
    corners: undefined,
    startIndex: 0,
    isTransposed: false,
    isRadians,
    projection,
  };
}

interface Places {
  readonly latitude: NamedArray;
  readonly longitude: NamedArray;
  readonly dim: string;
  readonly projection?: GridProjection | undefined;
}

/**
 * Finds latitudes and longitudes among arrays: those that `coordinates` of a variable lists, else by standard name, units or name. If
 * there are none, finds x and y of a projection that is known.
 */
function placesOf(
  arrays: readonly NamedArray[],
  attrs: JsonObject,
  near: readonly NamedArray[],
): Places | undefined {
  const listed = namesIn(attrs.coordinates);
  const find = (standardName: string, isPlace: (attrs: JsonObject) => boolean, names: RegExp) =>
    arrays.find(({ name, attrs }) => listed.includes(name) && isPlace(attrs)) ??
    arrays.find(({ attrs }) => attrs.standard_name === standardName) ??
    arrays.find(({ attrs }) => isPlace(attrs)) ??
    arrays.find(({ name, attrs }) => names.test(name) && /^(?:undefined|deg|rad)/i.test(String(attrs.units)));
  const latitude = find("latitude", isLatitude, LATITUDE_NAMES);
  const longitude = find("longitude", isLongitude, LONGITUDE_NAMES);
  if (latitude === undefined && longitude === undefined) return projectedPlaces(arrays, attrs, near);
  if (latitude === undefined || `${latitude.dims}` !== `${longitude?.dims}`) return undefined;
  return { latitude, longitude: longitude!, dim: latitude.dims[0]! };
}

function projectedPlaces(
  arrays: readonly NamedArray[],
  { grid_mapping }: JsonObject,
  near: readonly NamedArray[],
): Places | undefined {
  const find = (standardName: string) => arrays.find(({ attrs }) => attrs.standard_name === standardName);
  const [y, x] = [find("projection_y_coordinate"), find("projection_x_coordinate")];
  if (y === undefined || x === undefined || `${y.dims}` !== `${x.dims}`) return undefined;
  const mappings = namedBy(grid_mapping, near);
  const references = (mappings.length > 0 ? mappings : near).map(({ attrs }) =>
    gridReferenceOf(attrs, x.attrs.units),
  );
  const projection = references.find((each) => typeof each === "object");
  // What proj4 reads from other definitions is not sure.
  if (projection?.definition.startsWith("+") !== true) return undefined;
  return { latitude: y, longitude: x, dim: y.dims[0]!, projection };
}

function namedBy(names: JsonValue | undefined, near: readonly NamedArray[]): NamedArray[] {
  return namesIn(names).flatMap((name) => near.find((each) => each.name === name) ?? []);
}

function namesIn(text: JsonValue | undefined): string[] {
  return typeof text === "string" ? text.split(/\s+/).filter((name) => name !== "") : [];
}
