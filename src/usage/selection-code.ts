import type { CodeSelection } from "./code-selection.js";
import { gdalCode } from "./gdal-code.js";
import { xarrayCode } from "./xarray-code.js";
import { zarritaCode } from "./zarrita-code.js";

/** Code for one client, complete: it can be run as it is. */
export interface ClientCode {
  readonly client: "xarray" | "zarrita" | "GDAL";
  readonly language: "python" | "javascript" | "shell";
  readonly code: string;
}

/**
 * Writes the code that reads a selection with each client: the same cells with all of them.
 *
 * ```python
 * import xarray as xr
 *
 * ds = xr.open_zarr("https://data.example/datasets/air/zarr")
 * data = ds["air"].sel(time="2013-01-01T06:00:00", method="nearest").sel(lat=slice(60, 30))
 * ```
 *
 * xarray selects by values, which stay right if a dataset grows; zarrita and GDAL know indices only. zarrita gives numbers as they are
 * stored, so packed ones are unpacked by a further line.
 */
export function selectionCode(selection: CodeSelection): ClientCode[] {
  return [
    { client: "xarray", language: "python", code: xarrayCode(selection) },
    { client: "zarrita", language: "javascript", code: zarritaCode(selection) },
    { client: "GDAL", ...gdalCode(selection) },
  ];
}
