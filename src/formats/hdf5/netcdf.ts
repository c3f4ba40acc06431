import type { CooperativeTask } from "../../event-loop/cooperative-task.js";
import { isJsonArray, type JsonObject, type JsonValue, setEntry } from "../../json/json-value.js";
import { pythonFloat } from "../../json/stringify-json.js";
import { innerShapeOf, isBool } from "./datatypes.js";
import type { Hdf5Attribute, Hdf5Dataset, Hdf5File, Hdf5Group, Hdf5Item, Hdf5Type } from "./hdf5-model.js";

/** Prefix of a variable's name in the file if it shares its name with a dimension but is no coordinate of it. */
const NON_COORDINATE = "_nc4_non_coord_";
/** Begins the NAME of a dimension scale without values of its own. */
const HIDDEN_SCALE = "This is a netCDF dimension but not a netCDF variable";

/** A dimension: a scale, or one that is made up for axes without scale. */
interface NetcdfDimension {
  readonly name: string;
  /** As `_Netcdf4Coordinates` names it. */
  readonly id: number;
  /** Grows with the variables that use it if `isUnlimited`. */
  length: number;
  readonly isUnlimited: boolean;
}

/** A dataset that is an array to netCDF. */
export interface NetcdfVariable {
  readonly name: string;
  readonly dataset: Hdf5Dataset;
  /** As stored, with the axes of an array type behind those of the dataset. */
  readonly shape: readonly number[];
  /** The dimension that it is the scale of. */
  readonly scaleOf?: NetcdfDimension;
  readonly group: NetcdfGroup;
  /** Undefined along axes that have none yet. */
  readonly dims: (NetcdfDimension | undefined)[];
}

/** A group with its dimensions and variables, in the order in which netCDF numbers them. */
export interface NetcdfGroup {
  readonly group: Hdf5Group;
  /** `/`, `/a/b`: a group with two hard links is there under both paths. */
  readonly path: string;
  readonly parent: NetcdfGroup | undefined;
  readonly children: NetcdfGroup[];
  /** By length and whether it is unlimited, in the order of the file. */
  readonly byLength: Map<string, NetcdfDimension[]>;
  /** By address of its scale; only the dimensions of this group. */
  readonly byScale: Map<number, NetcdfDimension>;
  readonly variables: NetcdfVariable[];
}

/** A file in terms of netCDF. */
interface NetcdfFile {
  readonly root: NetcdfGroup;
  /** Parents before children, in the order of the file. */
  readonly groups: readonly NetcdfGroup[];
  readonly byId: ReadonlyMap<number, NetcdfDimension>;
  /** By address of the scale, wherever in the file. */
  readonly byScale: ReadonlyMap<number, NetcdfDimension>;
  /** Returns the number of the next dimension that is made up. */
  takeId(): number;
}

/**
 * Finds the dimensions and variables of a file, as netCDF does: a group's own before those of its children. Axes get no dimensions
 * yet, except for scales. Datasets without items are neither.
 */
export function* netcdfFileSteps(file: Hdf5File): CooperativeTask<NetcdfFile> {
  const groups: NetcdfGroup[] = [];
  const byId = new Map<number, NetcdfDimension>();
  const byScale = new Map<number, NetcdfDimension>();
  let nextId = 0;

  function* groupSteps(
    group: Hdf5Group,
    path: string,
    parent: NetcdfGroup | undefined,
  ): CooperativeTask<NetcdfGroup> {
    const maps = { byLength: new Map(), byScale: new Map() };
    const own: NetcdfGroup = { group, path, parent, children: [], ...maps, variables: [] };
    groups.push(own);
    for (const [name, dataset] of group.datasets) {
      yield;
      if (dataset.shape === null) continue;
      const shape = [...dataset.shape, ...innerShapeOf(dataset.type)];
      const isScale = textOf(dataset, "CLASS") === "DIMENSION_SCALE" && dataset.shape.length > 0;
      const scaleOf = isScale ? addDimension(own, name, dataset) : undefined;
      if (scaleOf !== undefined && isHiddenScale(dataset)) continue;
      const dims = shape.map((_, axis) => (axis === 0 ? scaleOf : undefined));
      const variable = { name: variableName(name, group), dataset, shape, group: own, dims };
      own.variables.push(scaleOf === undefined ? variable : { ...variable, scaleOf });
    }
    for (const [name, child] of group.groups) {
      const below = path === "/" ? `/${name}` : `${path}/${name}`;
      own.children.push(yield* groupSteps(child, below, own));
    }
    return own;
  }

  function addDimension(own: NetcdfGroup, name: string, dataset: Hdf5Dataset): NetcdfDimension {
    const given = numbersOf(dataset, "_Netcdf4Dimid")?.[0];
    const id = given ?? nextId;
    nextId = Math.max(nextId, id + 1);
    const isUnlimited = dataset.maxShape[0] === null;
    const dimension = { name, id, length: dataset.shape?.[0] ?? 0, isUnlimited };
    ofLength(own, dimension.length, isUnlimited).push(dimension);
    // A scale with several names has the first one for axes that refer to it.
    if (!own.byScale.has(dataset.address)) own.byScale.set(dataset.address, dimension);
    if (!byScale.has(dataset.address)) byScale.set(dataset.address, dimension);
    if (!byId.has(id)) byId.set(id, dimension);
    return dimension;
  }

  const root = yield* groupSteps(file.root, "/", undefined);
  return { root, groups, byId, byScale, takeId: () => nextId++ };
}

/** Returns the dimensions of a group that have a length, as a list to add to. */
function ofLength({ byLength }: NetcdfGroup, length: number, isUnlimited: boolean): NetcdfDimension[] {
  const key = `${length} ${isUnlimited}`;
  const found = byLength.get(key) ?? [];
  byLength.set(key, found);
  return found;
}

/** The integers of an attribute; undefined if there is no such attribute, or it has other values. */
function numbersOf(dataset: Hdf5Dataset, name: string): readonly number[] | undefined {
  const items = dataset.attributes
    .get(name)
    ?.items?.map((item) => (typeof item === "bigint" ? Number(item) : item));
  const isList = items?.every((item) => typeof item === "number" && Number.isSafeInteger(item) && item >= 0);
  return isList === true ? (items as readonly number[]) : undefined;
}

/** Tells if a dataset is a dimension scale without values of its own. */
function isHiddenScale(dataset: Hdf5Dataset): boolean {
  return textOf(dataset, "NAME")?.startsWith(HIDDEN_SCALE) === true;
}

function textOf(dataset: Hdf5Dataset, name: string): string | undefined {
  const text = dataset.attributes.get(name)?.items?.[0];
  return typeof text === "string" ? text.replace(/\0.*$/s, "") : undefined;
}

/** The name of a variable, which may be stored under another one. */
function variableName(name: string, group: Hdf5Group): string {
  if (!name.startsWith(NON_COORDINATE) || name === NON_COORDINATE) return name;
  const renamed = name.slice(NON_COORDINATE.length);
  const other = group.datasets.get(renamed);
  const isFree = (other === undefined || isHiddenScale(other)) && !group.groups.has(renamed);
  return isFree ? renamed : name;
}

/**
 * Gives each axis of each variable its dimension, as netCDF does, and unlimited dimensions the length of their longest variable.
 * @returns Warnings, beginning with the path of the variable in quotes.
 */
export function* axisSteps(file: NetcdfFile): CooperativeTask<string[]> {
  const warnings: string[] = [];
  for (const { variables } of file.groups) {
    for (const variable of variables) {
      yield;
      attachDimensions(file, variable, warnings);
    }
  }
  // Types that some versions of netCDF leave out come last: what netCDF calls the dimensions of the others does not change.
  for (const isKnown of [true, false]) {
    for (const group of childrenFirst(file)) {
      for (const variable of group.variables) {
        yield;
        if (isAtomic(variable.dataset.type) !== isKnown) continue;
        for (const [axis, dimension] of variable.dims.entries()) {
          variable.dims[axis] = dimension ?? makeUp(file, group, variable, axis);
        }
      }
    }
  }
  for (const group of file.groups) {
    yield;
    for (const { dims, shape } of group.variables) {
      dims.forEach((dimension, axis) => {
        if (dimension?.isUnlimited) dimension.length = Math.max(dimension.length, shape[axis]!);
      });
    }
  }
  for (const group of file.groups) {
    yield;
    separateNames(file, group, warnings);
  }
  return warnings;
}

/** Renames dimensions that share their name with another of the group and have another length: xarray opens no such group. */
function separateNames(file: NetcdfFile, group: NetcdfGroup, warnings: string[]): void {
  const byName = new Map<string, NetcdfDimension>();
  for (const variable of group.variables) {
    variable.dims.forEach((dimension, axis) => {
      if (dimension === undefined) return;
      const first = byName.get(dimension.name) ?? dimension;
      byName.set(dimension.name, first);
      if (first.length === dimension.length) return;
      warnings.push(`'${pathOf(variable)}': another dimension of the group has the name of axis ${axis}`);
      variable.dims[axis] = makeUp(file, group, variable, axis);
    });
  }
}

/** Path of a variable without a leading slash. */
export function pathOf({ name, group }: Pick<NetcdfVariable, "name" | "group">): string {
  const { path } = group;
  return path === "/" ? name : `${path.slice(1)}/${name}`;
}

/** Attaches the dimensions that attributes of the variable name. */
function attachDimensions(file: NetcdfFile, variable: NetcdfVariable, warnings: string[]): void {
  const { dataset, dims, scaleOf, shape } = variable;
  if (scaleOf !== undefined && shape.length === 1) return;
  const ids = numbersOf(dataset, "_Netcdf4Coordinates");
  const known = ids?.map((id) => file.byId.get(id));
  if (known?.length === shape.length && known.every((dimension, axis) => fits(dimension, variable, axis))) {
    dims.splice(0, dims.length, ...known);
    return;
  }
  if (scaleOf !== undefined) return;
  const scales = scalesOf(dataset);
  // netCDF looks at the first axis only to find out if there are scales.
  if (scales === undefined || scales[0]?.length === 0) return;
  scales.forEach((addresses, axis) => {
    if (addresses.length > 1) {
      warnings.push(
        `'${pathOf(variable)}': axis ${axis} has ${addresses.length} scales; the last one is taken`,
      );
    }
    const address = addresses.at(-1);
    const dimension = address === undefined ? undefined : findScale(file, variable.group, address);
    if (dimension !== undefined && fits(dimension, variable, axis)) dims[axis] = dimension;
    else if (addresses.length > 0)
      warnings.push(`'${pathOf(variable)}': the scale of axis ${axis} does not fit it`);
  });
}

/** True if a dimension has the length of an axis, or one that may be longer. */
function fits(
  dimension: NetcdfDimension | undefined,
  { dataset, shape }: NetcdfVariable,
  axis: number,
): boolean {
  if (dimension === undefined) return false;
  return dimension.length === shape[axis] || (dimension.isUnlimited && dataset.layout.kind === "chunked");
}

/** Finds a scale in a group and its ancestors, else anywhere: a dataset may have several names. */
function findScale(file: NetcdfFile, group: NetcdfGroup, address: number): NetcdfDimension | undefined {
  for (let at: NetcdfGroup | undefined = group; at !== undefined; at = at.parent) {
    const found = at.byScale.get(address);
    if (found !== undefined) return found;
  }
  return file.byScale.get(address);
}

/** Addresses of the scales of each axis; undefined if the dataset names none. */
function scalesOf(dataset: Hdf5Dataset): readonly (readonly number[])[] | undefined {
  const axes = dataset.attributes.get("DIMENSION_LIST")?.items;
  if (axes === undefined || axes.length !== dataset.shape?.length) return undefined;
  return axes.map((axis) => {
    if (!Array.isArray(axis)) return [];
    return axis.flatMap((item) =>
      typeof item === "object" && "address" in item ? (item.address ?? []) : [],
    );
  });
}

/**
 * Makes up the dimension of an axis without scale, as `create_phony_dims` of netCDF does: one of the group that has its length and is
 * on no other axis, or a new one.
 */
function makeUp(
  file: NetcdfFile,
  group: NetcdfGroup,
  { dims, shape, dataset }: NetcdfVariable,
  axis: number,
): NetcdfDimension {
  const length = shape[axis]!;
  const isUnlimited = dataset.maxShape[axis] === null;
  const others = ofLength(group, length, isUnlimited);
  const found = others.find((dimension) => dimension.length === length && !dims.includes(dimension));
  if (found !== undefined) return found;
  const id = file.takeId();
  const dimension = { name: `phony_dim_${id}`, id, length, isUnlimited };
  others.push(dimension);
  return dimension;
}

/** The groups in the order in which netCDF makes up dimensions. */
function childrenFirst({ root }: NetcdfFile): NetcdfGroup[] {
  const groups: NetcdfGroup[] = [];
  const visit = (group: NetcdfGroup): void => {
    group.children.forEach(visit);
    groups.push(group);
  };
  visit(root);
  return groups;
}

/** True for types that every version of netCDF reads. */
function isAtomic({ kind }: Hdf5Type): boolean {
  return kind === "integer" || kind === "float" || kind === "string" || kind === "vlen-string";
}

/** Attributes of HDF5's dimension scales and of netCDF, which are no attributes of the data. */
const BOOKKEEPING: ReadonlySet<string> = new Set([
  "CLASS",
  "NAME",
  "DIMENSION_LIST",
  "REFERENCE_LIST",
  "_Netcdf4Dimid",
  "_Netcdf4Coordinates",
  "_nc3_strict",
  "_NCProperties",
  // Names the dimensions of a Zarr array, so no file can have it as an attribute.
  "_ARRAY_DIMENSIONS",
]);

/**
 * Maps the attributes of a group or dataset as xarray's netCDF4 engine reads them: a list of one value is that value.
 *
 * A 32-bit float is written with the digits of its exact value. xarray computes with `scale_factor` in 64 bits, and a shorter text
 * would be another number then.
 * @param problems Receives a line for each attribute that is left out, without the path of its owner.
 */
export function mapAttributes(
  attributes: ReadonlyMap<string, Hdf5Attribute>,
  problems: string[],
): JsonObject {
  const attrs: Record<string, JsonValue> = {};
  for (const [name, attribute] of attributes) {
    if (BOOKKEEPING.has(name)) continue;
    const problem = typeProblem(attribute.type) ?? attribute.problem;
    if (problem === undefined) setEntry(attrs, name, mapAttribute(attribute));
    else problems.push(`attribute ${JSON.stringify(name)} is left out: ${problem}`);
  }
  return attrs;
}

/** Maps the value of an attribute whose items can be read. */
function mapAttribute({ type, shape, items }: Hdf5Attribute): JsonValue {
  // An empty dataspace: netCDF writes "" as one, and other libraries mean a list without items.
  if (shape === null || items === undefined) return type.kind === "string" ? "" : [];
  const values = items.map((item) => mapItem(item, type));
  // Texts are a flat list for netCDF, whatever their shape.
  const isText = type.kind === "string" || type.kind === "vlen-string";
  const value = isText && shape.length > 0 ? values : nested(values, shape);
  if (shape.length === 0 || !isJsonArray(value)) return value;
  return value.length === 1 ? (value[0] as JsonValue) : value;
}

/** Puts values in C order into lists of lists. */
function nested(values: readonly JsonValue[], shape: readonly number[]): JsonValue {
  if (shape.length === 0) return values[0] as JsonValue;
  let lists = values;
  for (let axis = shape.length - 1; axis > 0; axis--) {
    const length = shape[axis]!;
    const count = shape.slice(0, axis).reduce((product, extent) => product * extent, 1);
    // Without items there is no end to the lists that an extent may promise.
    if (lists.length === 0) return [];
    const from = lists;
    lists = Array.from({ length: count }, (_, index) => from.slice(index * length, (index + 1) * length));
  }
  return lists;
}

function mapItem(item: Hdf5Item, type: Hdf5Type): JsonValue {
  switch (type.kind) {
    case "float":
      return floatOf(item);
    case "enum":
      return isBool(type) ? Number(item) !== 0 : mapItem(item, type.base);
    case "string":
    case "vlen-string":
      // netCDF's texts end nowhere else, and Python's reader of them takes null characters out.
      return typeof item === "string" ? item.replaceAll("\0", "") : null;
    case "array":
      return nested(
        listOf(item).map((one) => mapItem(one, type.base)),
        type.shape,
      );
    case "vlen":
      return listOf(item).map((one) => mapItem(one, type.base));
    case "compound":
      // As Python's `tolist` gives the fields of a compound.
      return type.fields.map(({ name, type: field }) => {
        const value = typeof item === "object" && "fields" in item ? item.fields.get(name) : undefined;
        return value === undefined ? null : mapItem(value, field);
      });
    default:
      return integerOf(item);
  }
}

function floatOf(item: Hdf5Item): JsonValue {
  if (typeof item !== "number") return null;
  return Number.isFinite(item) ? pythonFloat(item) : item;
}

function integerOf(item: Hdf5Item): JsonValue {
  if (typeof item === "bigint") return Number.isSafeInteger(Number(item)) ? Number(item) : item;
  return typeof item === "number" ? item : null;
}

function listOf(item: Hdf5Item): readonly Hdf5Item[] {
  return Array.isArray(item) ? item : [];
}

/** Names a type that JSON has no form for; undefined if it has one. */
function typeProblem(type: Hdf5Type): string | undefined {
  switch (type.kind) {
    case "object-reference":
      return "references mean nothing outside of the file";
    case "opaque":
      return "JSON has no form for opaque bytes";
    case "other":
      return `${type.description} are not read`;
    case "array":
    case "vlen":
      return typeProblem(type.base);
    case "compound":
      return type.fields.map((field) => typeProblem(field.type)).find((problem) => problem !== undefined);
    default:
      return undefined;
  }
}
