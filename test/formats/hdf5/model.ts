import type {
  Hdf5Attribute,
  Hdf5Dataset,
  Hdf5File,
  Hdf5Group,
  Hdf5Item,
  Hdf5Type,
} from "../../../src/formats/hdf5/hdf5-model.js";

export const INT32: Hdf5Type = {
  ...{ kind: "integer", size: 4, isSigned: true, byteOrder: "<", precision: 32, bitOffset: 0 },
};
export const FLOAT32: Hdf5Type = { kind: "float", size: 4, byteOrder: "<" };
export const FLOAT64: Hdf5Type = { kind: "float", size: 8, byteOrder: "<" };
export const TEXT: Hdf5Type = { kind: "vlen-string", size: 16, charset: "utf-8" };
const REFERENCE: Hdf5Type = { kind: "object-reference", size: 8 };

/** A dataset for tests: of 32-bit integers and never written unless `more` says otherwise. */
export function dataset(
  address: number,
  shape: readonly number[] | null,
  attributes: Readonly<Record<string, Hdf5Attribute>> = {},
  more: Partial<Hdf5Dataset> = {},
): Hdf5Dataset {
  return {
    address,
    shape,
    maxShape: shape ?? [],
    type: INT32,
    fill: null,
    layout: { kind: "contiguous", address: null, byteLength: 0 },
    filters: [],
    attributes: new Map(Object.entries(attributes)),
    ...more,
  };
}

/** A group with datasets and children by name. */
export function group(
  path: string,
  datasets: Readonly<Record<string, Hdf5Dataset>>,
  groups: readonly Hdf5Group[] = [],
): Hdf5Group {
  return {
    ...{ address: 0, path, attributes: new Map(), datasets: new Map(Object.entries(datasets)) },
    groups: new Map(groups.map((child) => [child.path.slice(child.path.lastIndexOf("/") + 1), child])),
  };
}

/** A file of a root group. */
export function fileOf(root: Hdf5Group): Hdf5File {
  return { root, refused: [], warnings: [] };
}

/** A list of values; a scalar if `shape` is `[]`. */
export function attribute(
  type: Hdf5Type,
  items: readonly Hdf5Item[],
  shape: readonly number[] | null = [items.length],
): Hdf5Attribute {
  return { type, shape, items };
}

/** A scalar string. */
export function text(value: string): Hdf5Attribute {
  return attribute(TEXT, [value], []);
}

/** Attributes of a scale; `hidden` if it is no variable. */
export function scale(id?: number, hidden = false): Record<string, Hdf5Attribute> {
  return {
    CLASS: text("DIMENSION_SCALE"),
    NAME: text(hidden ? "This is a netCDF dimension but not a netCDF variable.         3" : "any"),
    ...(id === undefined ? {} : { _Netcdf4Dimid: attribute(INT32, [id], []) }),
  };
}

/** DIMENSION_LIST: the addresses of the scales of each axis. */
export function scales(...axes: readonly (readonly number[])[]): Record<string, Hdf5Attribute> {
  const items = axes.map((addresses) => addresses.map((address) => ({ address })));
  return { DIMENSION_LIST: attribute({ kind: "vlen", size: 16, base: REFERENCE }, items) };
}
