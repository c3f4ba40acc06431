import type { FileFormat } from "./file-format.js";
import { hdf5Format } from "./hdf5/hdf5-format.js";
import { netcdf3Format } from "./netcdf3/netcdf3-format.js";
import { tiffFormat } from "./tiff/tiff-format.js";

/** Formats of files that are tried by their first bytes, in this order. */
export const FORMATS: readonly FileFormat[] = Object.freeze([hdf5Format, netcdf3Format, tiffFormat]);
