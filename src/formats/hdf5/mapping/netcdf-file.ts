import type { CooperativeTask } from "../../../event-loop/cooperative-task.js";
import type { Hdf5Dataset, Hdf5File, Hdf5Group } from "../hdf5-model.js";
import { innerShapeOf } from "./map-type.js";

/** Prefix of a variable's name in the file if it shares its name with a dimension but is no coordinate of it. */
const NON_COORDINATE = "_nc4_non_coord_";
/** Begins the NAME of a dimension scale without values of its own. */
const HIDDEN_SCALE = "This is a netCDF dimension but not a netCDF variable";

/** A dimension: a scale, or one that is made up for axes without scale. */
export interface NetcdfDimension {
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
export interface NetcdfFile {
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
    const own = createGroup(group, path, parent);
    groups.push(own);
    for (const [name, dataset] of group.datasets) {
      yield;
      if (dataset.shape === null) continue;
      const shape = [...dataset.shape, ...innerShapeOf(dataset.type)];
      const scaleOf =
        isScale(dataset) && dataset.shape.length > 0 ? addDimension(own, name, dataset) : undefined;
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
    addToGroup(own, dimension);
    // A scale with several names has the first one for axes that refer to it.
    if (!own.byScale.has(dataset.address)) own.byScale.set(dataset.address, dimension);
    if (!byScale.has(dataset.address)) byScale.set(dataset.address, dimension);
    if (!byId.has(id)) byId.set(id, dimension);
    return dimension;
  }

  const root = yield* groupSteps(file.root, "/", undefined);
  return { root, groups, byId, byScale, takeId: () => nextId++ };
}

/** Adds a dimension to those of its group. */
export function addToGroup({ byLength }: NetcdfGroup, dimension: NetcdfDimension): void {
  const key = lengthKey(dimension.length, dimension.isUnlimited);
  const others = byLength.get(key);
  if (others === undefined) byLength.set(key, [dimension]);
  else others.push(dimension);
}

/** Key of `NetcdfGroup.byLength`. */
export function lengthKey(length: number, isUnlimited: boolean): string {
  return `${length} ${isUnlimited}`;
}

function createGroup(group: Hdf5Group, path: string, parent: NetcdfGroup | undefined): NetcdfGroup {
  return { group, path, parent, children: [], byLength: new Map(), byScale: new Map(), variables: [] };
}

/** The integers of an attribute; undefined if there is no such attribute, or it has other values. */
export function numbersOf(dataset: Hdf5Dataset, name: string): readonly number[] | undefined {
  const items = dataset.attributes
    .get(name)
    ?.items?.map((item) => (typeof item === "bigint" ? Number(item) : item));
  const isList = items?.every((item) => typeof item === "number" && Number.isSafeInteger(item) && item >= 0);
  return isList === true ? (items as readonly number[]) : undefined;
}

/** True if a dataset is a dimension scale without values of its own. */
function isHiddenScale(dataset: Hdf5Dataset): boolean {
  return textOf(dataset, "NAME")?.startsWith(HIDDEN_SCALE) === true;
}

function isScale(dataset: Hdf5Dataset): boolean {
  return textOf(dataset, "CLASS") === "DIMENSION_SCALE";
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
