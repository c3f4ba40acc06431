import { type CdfAttribute, type CdfVariable, cdfFile } from "./cdf-file.js";

/** Content of {@link gridFile}. */
export interface GridFile {
  /** Days since 2000-01-01, one per step; undefined for a file without a time. */
  readonly days?: readonly number[];
  /** Whether the time is a scalar instead of a dimension. */
  readonly isScalar?: boolean;
  readonly title?: string;
  readonly latitudes?: readonly number[];
  readonly longitudes?: readonly number[];
  /** Day from which times are counted, as days since 2000-01-01. Default 0. */
  readonly since?: number;
}

/** Makes a NetCDF-3 file of temperatures on a grid of latitudes and longitudes: `t2m[time, lat, lon]`. */
export function gridFile(content: GridFile): Uint8Array {
  const {
    days,
    isScalar = false,
    title,
    latitudes = [53, 49, 45],
    longitudes = [5, 8, 12],
    since = 0,
  } = content;
  const steps = days === undefined || isScalar ? 1 : days.length;
  const along = days === undefined || isScalar ? [] : [0];
  const origin = new Date(Date.UTC(2000, 0, 1 + since)).toISOString().slice(0, 10);
  const cells = latitudes.length * longitudes.length;
  const values = Float32Array.from({ length: steps * cells }, (_, index) => 280 + (index % cells));
  const coordinate = (
    name: string,
    dimension: number,
    items: readonly number[],
    units: string,
  ): CdfVariable => ({
    ...{ name, type: "double", dimensions: [dimension], attributes: [text("units", units)] },
    bytes: Buffer.from(Float64Array.from(items).buffer).swap64(),
  });
  const time = (days ?? []).map((day) => day - since);
  return cdfFile({
    version: 1,
    dimensions: [
      { name: "time", length: Math.max(1, steps) },
      { name: "lat", length: latitudes.length },
      { name: "lon", length: longitudes.length },
    ],
    attributes: title === undefined ? [] : [text("title", title)],
    variables: [
      ...(days === undefined
        ? []
        : [{ ...coordinate("time", 0, time, `days since ${origin}`), dimensions: along }]),
      coordinate("lat", 1, latitudes, "degrees_north"),
      coordinate("lon", 2, longitudes, "degrees_east"),
      {
        ...{ name: "t2m", type: "float", dimensions: [...along, 1, 2], attributes: [text("units", "K")] },
        bytes: Buffer.from(values.buffer).swap32(),
      },
    ],
  });
}

function text(name: string, value: string): CdfAttribute {
  return { name, type: "char", bytes: Buffer.from(value) };
}
