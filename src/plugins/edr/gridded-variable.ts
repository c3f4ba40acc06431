import {
  type ArrayView,
  type CoordinateAxis,
  type Coordinates,
  type DatasetView,
  dimOf,
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
export function axisNamed({ axes }: GriddedVariable, name: string): CoordinateAxis | undefined {
  return axes.find((each) => each.name === name)?.axis;
}

/**
 * Finds the parameters of a collection: data variables of numbers whose axes, or whose cells, have longitudes and latitudes.
 * @param names Paths; undefined for all.
 * @throws ZpublishError `invalid-query` if one of the names is no parameter
 */
export async function findParameters(
  values: Pick<Values, "coordinates">,
  snapshot: DatasetView,
  names?: readonly string[],
): Promise<GriddedVariable[]> {
  const candidates = [...snapshot.tree.groups.values()].flatMap(({ variables, coordinateNames }) =>
    [...variables.values()].filter(
      ({ name, dims, attrs, dataType: { kind } }) =>
        // Texts of times are no numbers.
        dims.length >= 2 &&
        "iuf".includes(kind) &&
        !coordinateNames.has(name) &&
        !/ since /.test(`${attrs.units}`),
    ),
  );
  const asked = names === undefined ? candidates : candidates.filter(({ path }) => names.includes(path));
  const found: GriddedVariable[] = [];
  for (const { path } of asked) {
    const array = snapshot.arrays.get(path)!;
    const coordinates = await values.coordinates(snapshot, array);
    const axes = nameAxes(snapshot, array.variable, coordinates);
    if (axes !== undefined) found.push({ array, coordinates, axes });
  }
  const unknown = names?.find((name) => !found.some(({ array }) => array.variable.path === name));
  if (unknown === undefined) return found;
  throw wrongParameter(
    "parameter-name",
    "unknown_variable",
    "names of the collection's parameter_names",
    unknown,
  );
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
  const z = axes.findIndex(
    ({ role, calendar }, at) => role === "Z" && calendar === undefined && at !== y && at !== x,
  );
  const known = new Map([
    [z, "z"],
    [t, "t"],
    [y, "y"],
    [x, "x"],
  ]);
  return axes.map((axis, at) => {
    const { key, name } = dimOf(snapshot, variable, at);
    return { axis, key, name: known.get(at) ?? name };
  });
}

/** Describes a parameter, as EDR and CoverageJSON have it. */
export function parameterOf({ array: { variable } }: GriddedVariable): JsonObject {
  const { path, attrs } = variable;
  const [label, standard, units] = [
    attrs.long_name ?? attrs.standard_name,
    attrs.standard_name,
    attrs.units,
  ].map((text) => (typeof text === "string" && text.trim() !== "" ? text.trim() : undefined));
  const id =
    standard && /^\w+$/.test(standard) ? `http://vocab.nerc.ac.uk/standard_name/${standard}/` : undefined;
  return {
    ...{ type: "Parameter", id: path },
    ...(units && { unit: { label: { en: units }, symbol: units } }),
    observedProperty: { ...(id && { id }), label: { en: label ?? path } },
  };
}
