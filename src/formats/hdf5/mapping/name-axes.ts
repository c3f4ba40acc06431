import type { CooperativeTask } from "../../../event-loop/cooperative-task.js";
import type { Hdf5Dataset, Hdf5Type } from "../hdf5-model.js";
import {
  addToGroup,
  lengthKey,
  type NetcdfDimension,
  type NetcdfFile,
  type NetcdfGroup,
  type NetcdfVariable,
  numbersOf,
} from "./netcdf-file.js";

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
        if (isAtomic(variable.dataset.type) === isKnown) makeUpDimensions(file, group, variable);
      }
    }
  }
  for (const group of file.groups) {
    yield;
    for (const { dims, shape } of group.variables) {
      dims.forEach((dimension, axis) => {
        if (dimension?.isUnlimited) dimension.length = Math.max(dimension.length, shape[axis] as number);
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
    known.forEach((dimension, axis) => {
      dims[axis] = dimension;
    });
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

/** Gives axes without scale a dimension, as `create_phony_dims` of netCDF does. */
function makeUpDimensions(file: NetcdfFile, group: NetcdfGroup, variable: NetcdfVariable): void {
  variable.dims.forEach((dimension, axis) => {
    if (dimension === undefined) variable.dims[axis] = makeUp(file, group, variable, axis);
  });
}

/** Finds a dimension of the group that has the length of an axis and is on no other axis, or makes a new one. */
function makeUp(
  file: NetcdfFile,
  group: NetcdfGroup,
  { dims, shape, dataset }: NetcdfVariable,
  axis: number,
): NetcdfDimension {
  const length = shape[axis] as number;
  const isUnlimited = dataset.maxShape[axis] === null;
  const others = group.byLength.get(lengthKey(length, isUnlimited));
  const found = others?.find((dimension) => dimension.length === length && !dims.includes(dimension));
  if (found !== undefined) return found;
  const id = file.takeId();
  const dimension = { name: `phony_dim_${id}`, id, length, isUnlimited };
  addToGroup(group, dimension);
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
