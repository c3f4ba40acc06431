import {
  type CoordinateAxis,
  type Coordinates,
  createDimNames,
  type DatasetView,
  dimOf,
  firstText,
  groupPathOf,
  type JsonObject,
  labelText,
  plainText,
  type Values,
  type Variable,
  variableFacts,
} from "../../plugin-api.js";

/** Variables that are described. */
const MAX_VARIABLES = 500;
/** NaT of `datetime64`. */
const NO_TIME = -(2n ** 63n);

/** What the extensions Datacube 2.2 and Projection 2.0 say about a dataset. */
export interface Cube {
  /** `cube:dimensions` and `cube:variables`. */
  readonly fields: JsonObject;
  /** `proj:…` of the first variable on a regular grid; undefined if there is none, or its system has no name. */
  readonly projection: JsonObject | undefined;
}

/**
 * Describes dimensions and variables of all groups. Coordinates are read, each once for a snapshot.
 * @throws what reading them throws
 */
export async function readCube(values: Pick<Values, "coordinates">, snapshot: DatasetView): Promise<Cube> {
  const nameOf = createDimNames([]);
  const dimensions = new Map<string, JsonObject>();
  const variables = new Map<string, JsonObject>();
  let projection: JsonObject | undefined;
  for (const array of [...snapshot.arrays.values()].slice(0, MAX_VARIABLES)) {
    const { variable } = array;
    const dims = variable.dims.map((_, at) => dimOf(snapshot, variable, at));
    const names = dims.map(nameOf);
    const coordinates = await values.coordinates(snapshot, array);
    const system = systemOf(snapshot, variable, coordinates);
    // A coordinate alone does not say in which system it is.
    for (const [at, name] of names.entries())
      if (!dimensions.has(name) || (system !== undefined && projection === undefined))
        dimensions.set(name, describeAxis(coordinates.axes[at]!, system));
    projection ??= system && projectionOf(coordinates, system);
    // A name is that of a dimension or of a variable.
    if (dims[0]?.owner !== variable)
      variables.set(variable.path, describeVariable(snapshot, variable, names));
  }
  const [dims, vars] = [dimensions, variables].map((each): JsonObject => Object.fromEntries(each));
  return { fields: { "cube:dimensions": dims!, "cube:variables": vars! }, projection };
}

function describeVariable(
  { tree }: DatasetView,
  variable: Variable,
  dimensions: readonly string[],
): JsonObject {
  const { name, attrs } = variable;
  const { description, unit } = variableFacts(attrs);
  const isCoordinate = tree.groups.get(groupPathOf(variable))?.coordinateNames.has(name) === true;
  return {
    dimensions,
    type: isCoordinate ? "auxiliary" : "data",
    ...(description !== undefined && { description }),
    ...(unit !== undefined && { unit }),
  };
}

/** Describes an axis by its coordinate; one without numbers by its indexes. */
function describeAxis(axis: CoordinateAxis, system: System | undefined): JsonObject {
  const { role, values, regular, calendar } = axis;
  const ends = endsOf(axis);
  if (ends === undefined) return { type: "index", extent: [0, Math.max(0, axis.length - 1)] };
  if (calendar !== undefined && /^(?:standard|gregorian|proleptic_gregorian)$/.test(calendar))
    return { type: "temporal", extent: ends.map((at) => `${labelText(axis, at)}Z`) };
  const unit = plainText(axis.units);
  const common = {
    extent: ends.map((at) => Number(values![at])),
    ...(regular !== undefined && { step: regular.step }),
    ...(unit !== undefined && { unit }),
  };
  if (calendar !== undefined) return { type: "temporal", ...common, reference_system: calendar };
  if (role === "Z") return { type: "spatial", axis: "z", ...common };
  if ((role !== "X" && role !== "Y") || system === undefined) return { type: "numbers", ...common };
  const { epsg, wkt2 = "" } = system;
  return { type: "spatial", axis: role.toLowerCase(), ...common, reference_system: epsg ?? wkt2 };
}

/** Returns the indexes of the least and the greatest value; undefined if there are no numbers. */
function endsOf({ values = [] }: CoordinateAxis): readonly number[] | undefined {
  let [low, high] = [-1, -1];
  for (const [at, value] of values.entries()) {
    if (typeof value === "string" || value === NO_TIME || !Number.isFinite(Number(value))) continue;
    // All are of one type.
    if (low < 0 || value < (values[low] as number)) low = at;
    if (high < 0 || value > (values[high] as number)) high = at;
  }
  return low < 0 ? undefined : [low, high];
}

/** A coordinate system, by names that other programs know: one of them is there. */
interface System {
  readonly epsg: number | undefined;
  readonly wkt2: string | undefined;
}

/** Names the system of an array's axes Y and X; undefined if it has none, or none with a name. */
function systemOf(
  { tree }: DatasetView,
  { attrs, path }: Variable,
  { crs }: Coordinates,
): System | undefined {
  if (crs === undefined || crs === "pixels") return undefined;
  if (crs === "degrees") return { epsg: 4326, wkt2: undefined };
  const name = typeof attrs.grid_mapping === "string" ? attrs.grid_mapping : "spatial_ref";
  const groups = [groupPathOf({ path }), "/"];
  const mapping = groups.map((group) => tree.groups.get(group)?.variables.get(name)).find(Boolean);
  const wkt = firstText(mapping?.attrs ?? attrs, ["crs_wkt", "spatial_ref"]) ?? "";
  const [, code] = /(?:AUTHORITY|ID)\[\s*"EPSG"\s*,\s*"?(\d{1,6})"?\s*\]\s*\]\s*$/.exec(wkt) ?? [];
  const wkt2 = /^(?:BOUND|COMPOUND|DERIVEDPROJ|GEOD|GEOG|PROJ)CRS\[/.test(wkt) ? wkt : undefined;
  const epsg = code === undefined ? undefined : Number(code);
  return epsg === undefined && wkt2 === undefined ? undefined : { epsg, wkt2 };
}

/** Describes the grid of an array whose axes Y and X are regular: values of coordinates are those of the centres of cells. */
function projectionOf({ axes }: Coordinates, { epsg, wkt2 }: System): JsonObject | undefined {
  const [y, x] = ["Y", "X"].map((role) => axes.find((axis) => axis.role === role));
  if (y?.regular === undefined || x?.regular === undefined) return undefined;
  const [left, top] = [x.regular, y.regular].map(({ first, step }) => first - step / 2);
  return {
    "proj:code": epsg === undefined ? null : `EPSG:${epsg}`,
    ...(wkt2 !== undefined && { "proj:wkt2": wkt2 }),
    "proj:shape": [y.length, x.length],
    "proj:transform": [x.regular.step, 0, left!, 0, y.regular.step, top!],
  };
}
