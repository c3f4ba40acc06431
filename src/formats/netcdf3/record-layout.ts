import { printablePath } from "../../zarr/stored-tree.js";
import { invalid } from "./header-cursor.js";
import type { Netcdf3Header, Netcdf3Variable } from "./read-header.js";

/** Where the records of a file are. */
export interface RecordLayout {
  readonly count: number;
  /** Bytes from one record to the next. */
  readonly stride: number;
  /** True if only one variable has records. They are not padded then, and adjoin. */
  readonly isAlone: boolean;
}

/**
 * Finds out where the records are, and checks that the file has every item of every variable.
 * @throws ZpublishError `invalid-metadata`
 */
export function recordLayout({ variables, recordCount }: Netcdf3Header, fileLength: number): RecordLayout {
  for (const { name, dimensions } of variables) {
    if (dimensions.slice(1).some(({ length }) => length === 0))
      throw invalid(`expected the record dimension to be the first of variable '${printablePath(name)}'`);
  }
  const withRecords = variables.filter(hasRecords);
  const isAlone = withRecords.length === 1;
  const padding = isAlone ? 1 : 4;
  const stride = withRecords.reduce((sum, each) => sum + Math.ceil(storedBytes(each) / padding) * padding, 0);
  const layout = { count: recordCount ?? wholeRecords(withRecords, stride, fileLength), stride, isAlone };
  for (const variable of variables) {
    const end = endOf(variable, layout);
    // netCDF-C reads zeros there. A file that is still being copied would be served with values that it does not have.
    if (!(end <= fileLength))
      throw invalid(
        `expected ${end} bytes, since variable '${printablePath(variable.name)}' ends there, received ${fileLength}`,
      );
  }
  return layout;
}

/** Tells if the first dimension of a variable is the record dimension. */
export function hasRecords({ dimensions }: Netcdf3Variable): boolean {
  return dimensions[0]?.length === 0;
}

/** Returns the number of records of which the file has every item. */
function wholeRecords(withRecords: readonly Netcdf3Variable[], stride: number, fileLength: number): number {
  const most = withRecords.length === 0 ? 0 : Number.POSITIVE_INFINITY;
  const count = withRecords.reduce((least, variable) => {
    const whole = Math.floor((fileLength - variable.begin - storedBytes(variable)) / stride) + 1;
    return Math.min(least, whole);
  }, most);
  return Math.max(0, count);
}

/** Returns the offset behind the last item of a variable, padding left out. */
function endOf(variable: Netcdf3Variable, { count, stride }: RecordLayout): number {
  const bytes = storedBytes(variable);
  if (!hasRecords(variable)) return variable.begin + bytes;
  return count === 0 ? 0 : variable.begin + (count - 1) * stride + bytes;
}

/** Bytes of a variable, or of one of its records, without padding. Inexact beyond 2^53. */
function storedBytes({ dimensions, type }: Netcdf3Variable): number {
  return dimensions.reduce((bytes, { length }) => (length === 0 ? bytes : bytes * length), type.itemSize);
}
