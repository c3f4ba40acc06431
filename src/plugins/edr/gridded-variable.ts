import {
  type ArrayView,
  type CoordinateAxis,
  type Coordinates,
  type DatasetView,
  dimOf,
  firstText,
  type JsonObject,
  type Values,
  type Variable,
  wrongParameter,
} from "../../plugin-api.js";

/** A variable on a grid of longitudes and latitudes: a parameter of a collection. */
export interface GriddedVariable {
  readonly array: ArrayView;
  readonly coordinates: Coordinates;
  /** Its dimensions, in order. */
  readonly axes: readonly NamedAxis[];
}

/** An axis of a parameter. */
export interface NamedAxis {
  /** `x`, `y`, `z`, `t`, or the name of the dimension: a custom one. */
  readonly name: string;
  readonly axis: CoordinateAxis;
  /** The same for all variables with this dimension. */
  readonly key: string;
}

/** Returns an axis by its name. */
export function axisNamed({ axes }: Pick<GriddedVariable, "axes">, name: string): CoordinateAxis | undefined {
  return axes.find((each) => each.name === name)?.axis;
}

/**
 * Finds the parameters of a collection: data variables of numbers whose axes, or whose cells, have longitudes and latitudes.
 * @param asked Paths, with or without spaces around them; undefined for all.
 * @throws ZpublishError `invalid-query` if one of the names is no parameter
 */
export async function findParameters(
  values: Pick<Values, "coordinates">,
  snapshot: DatasetView,
  asked?: readonly string[],
): Promise<GriddedVariable[]> {
  const names = asked?.map((name) => name.trim());
  const found: GriddedVariable[] = [];
  for (const { variables, coordinateNames } of snapshot.tree.groups.values())
    for (const { name, path, dims, attrs, dataType } of variables.values()) {
      // Texts of times are no numbers.
      const isData = dims.length >= 2 && "iuf".includes(dataType.kind) && !/ since /.test(`${attrs.units}`);
      if (!isData || coordinateNames.has(name) || names?.includes(path) === false) continue;
      const array = snapshot.arrays.get(path)!;
      const coordinates = await values.coordinates(snapshot, array);
      const axes = nameAxes(snapshot, array.variable, coordinates);
      if (axes !== undefined) found.push({ array, coordinates, axes });
    }
  const unknown = names?.find((name) => !found.some(({ array }) => array.variable.path === name));
  if (unknown === undefined) return found;
  const expected = "names of the collection's parameter_names";
  throw wrongParameter("parameter-name", "unknown_variable", expected, unknown);
}

/** Names the axes of a variable; undefined if it does not lie on a grid of longitudes and latitudes. */
function nameAxes(
  snapshot: DatasetView,
  variable: Variable,
  { axes, grid, crs }: Coordinates,
): NamedAxis[] | undefined {
  const find = (role: CoordinateAxis["role"]) =>
    axes.findIndex((axis) => axis.role === role && axis.values instanceof Float64Array && axis.length > 0);
  const [y, x] = grid ? [grid.y, grid.x] : crs === "degrees" ? [find("Y"), find("X")] : [-1, -1];
  if (y < 0 || x < 0) return undefined;
  const t = axes.findIndex(({ role, calendar }) => role === "T" && calendar !== undefined);
  const isLevel = ({ role, calendar }: CoordinateAxis) => role === "Z" && calendar === undefined;
  const z = axes.findIndex((axis, at) => isLevel(axis) && at !== y && at !== x);
  const known = ["x", "y", "z", "t"];
  return axes.map((axis, at) => {
    const { key, name } = dimOf(snapshot, variable, at);
    return { axis, key, name: known[[x, y, z, t].indexOf(at)] ?? name };
  });
}

/** Tells whether dates of a calendar are those of ISO 8601. */
export function isGregorian(calendar: string | undefined): boolean {
  return /^(?:standard|gregorian|proleptic_gregorian)$/i.test(calendar ?? "");
}

/** Describes parameters by their paths, as EDR and CoverageJSON have it. */
export function describeParameters(variables: readonly GriddedVariable[]): Record<string, JsonObject> {
  return Object.fromEntries(
    variables.map(({ array: { variable } }) => [variable.path, parameterOf(variable)]),
  );
}

function parameterOf({ path, attrs }: Variable): JsonObject {
  const textOf = (...names: string[]) => firstText(attrs, names)?.trim() || undefined;
  const [standard, units] = [textOf("standard_name") ?? "", textOf("units")];
  const id = `http://vocab.nerc.ac.uk/standard_name/${standard}/`;
  const label = { en: textOf("long_name", "standard_name") ?? path };
  return {
    ...{ type: "Parameter", id: path },
    ...(units && { unit: { label: { en: units }, symbol: units } }),
    observedProperty: { ...(/^\w+$/.test(standard) && { id }), label },
  };
}
