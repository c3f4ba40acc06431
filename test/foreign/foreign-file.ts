import { readdirSync } from "node:fs";
import { open } from "node:fs/promises";
import { relative, resolve, sep } from "node:path";

/** A file that another project wrote. */
export interface ForeignFile {
  /** Path below the folder of all of them. */
  readonly id: string;
  readonly path: string;
}

/** Finds all files below a folder, sorted, less those whose name or folder begins with a dot. */
export function findFiles(directory: string): ForeignFile[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const path = resolve(entry.parentPath, entry.name);
      return { id: relative(directory, path).split(sep).join("/"), path };
    })
    .filter(({ id }) => !id.split("/").some((part) => part.startsWith(".")))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** The library that is asked for the truth about a file: h5py, netCDF4, rasterio. */
export type OracleFormat = "hdf5" | "netcdf3" | "tiff";

const HDF5_SIGNATURE = Buffer.from("\x89HDF\r\n\x1a\n", "latin1");
/** Places of the signature behind a user block that are looked at. */
const SIGNATURE_PLACES = [0, ...Array.from({ length: 12 }, (_, power) => 512 * 2 ** power)];
const CDF_STARTS = ["CDF\x01", "CDF\x02", "CDF\x05"];
const TIFF_STARTS = ["II*\0", "MM\0*", "II+\0", "MM\0+"];

/** Tells the format of a file from its bytes, without any code of the readers; undefined if it has none. */
export async function oracleFormatOf(path: string): Promise<OracleFormat | undefined> {
  const file = await open(path);
  try {
    const read = async (offset: number): Promise<Buffer> => {
      const bytes = Buffer.alloc(8);
      const { bytesRead } = await file.read(bytes, 0, 8, offset);
      return bytes.subarray(0, bytesRead);
    };
    const start = (await read(0)).toString("latin1");
    if (CDF_STARTS.includes(start.slice(0, 4))) return "netcdf3";
    if (TIFF_STARTS.includes(start.slice(0, 4))) return "tiff";
    for (const place of SIGNATURE_PLACES) if ((await read(place)).equals(HDF5_SIGNATURE)) return "hdf5";
    return undefined;
  } finally {
    await file.close();
  }
}

/** How a file is served, compared with what its own libraries read. Without what varies from run to run. */
export interface ForeignOutcome {
  /** Why the service refuses the file. Default: it opens. */
  readonly refusedFile?: string;
  /** "unreadable" if the library cannot open it either, or "crash". Default: it opens it. */
  readonly oracle?: "unreadable" | "crash";
  /** Number of arrays whose values are equal. */
  readonly equal?: number;
  /** Refused arrays and groups, with the reason. */
  readonly refused?: Readonly<Record<string, string>>;
  /** Arrays that are served and that the library cannot read, so that nothing is known of their values. */
  readonly unread?: readonly string[];
  /** Arrays of other values, arrays that are neither served nor refused, and those the library does not have. */
  readonly differs?: Readonly<Record<string, string>>;
  /** Number of variables that xarray read from both, per engine and with and without decoding. */
  readonly compared?: number;
  /** Differences between what xarray reads from both. */
  readonly differences?: readonly string[];
}

/** An outcome with what it took. */
export interface MeasuredOutcome {
  readonly file: ForeignFile;
  readonly format: OracleFormat | undefined;
  readonly outcome: ForeignOutcome;
  /** Milliseconds that opening took. */
  readonly openMs: number;
  /** Longest time in milliseconds for which opening held the event loop. */
  readonly heldMs: number;
}
