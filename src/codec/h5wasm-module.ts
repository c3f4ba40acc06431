import { messageOf, ZpublishError } from "../errors.js";

/** The parts of h5wasm's module that are used: the HDF5 library in WebAssembly, with files in memory. */
export interface H5wasm {
  readonly H5F_ACC_RDONLY: number;
  readonly H5F_LIBVER_EARLIEST: number;
  readonly H5F_LIBVER_LATEST: number;
  /** Replaced whenever the memory grows. */
  readonly HEAPU8: Uint8Array;
  readonly FS: {
    readonly streams: readonly unknown[];
    close(stream: unknown): void;
    open(path: string, flags: string): unknown;
    writeFile(path: string, bytes: Uint8Array): void;
    unlink(path: string): void;
  };
  /** Opens a file. @returns Its id, negative if HDF5 cannot open it. */
  open(path: string, mode: number, trackOrder: boolean, minVersion: number, maxVersion: number): bigint;
  close_file(file: bigint): number;
  /** Reads a whole dataset. @returns A negative number if HDF5 cannot decode it; the memory is not written then. */
  get_dataset_data(
    file: bigint,
    path: string,
    count: null,
    offset: null,
    strides: null,
    target: bigint,
  ): number;
  /** Allocates memory. @returns Its address; 0 if there is none. */
  _malloc(byteLength: number): number;
  _free(address: number): void;
}

/** Descriptor that HDF5 prints its errors to. */
const STANDARD_ERROR = 2;

let loading: Promise<H5wasm> | undefined;
let instances = 0;

/** Tells if h5wasm, an optional dependency, is installed. */
export function hasH5wasm(): boolean {
  try {
    import.meta.resolve("h5wasm");
    return true;
  } catch {
    return false;
  }
}

/**
 * Loads h5wasm once for this thread, which takes 0.3 s and some 60 MB.
 * @throws ZpublishError `unsupported` if it is not installed.
 */
export function loadH5wasm(): Promise<H5wasm> {
  loading ??= load(instances++);
  return loading;
}

/** Gives up the instance, whose memory may be damaged; the next call of {@link loadH5wasm} makes a new one. */
export function dropH5wasm(): void {
  loading = undefined;
}

async function load(instance: number): Promise<H5wasm> {
  try {
    // "h5wasm/node" has the files of the machine instead of files in memory, and workers would overwrite each other's.
    // The module makes one instance when it is imported, so that another one needs another URL.
    const url = `${import.meta.resolve("h5wasm")}${instance === 0 ? "" : `?${instance}`}`;
    const { ready } = (await import(url)) as { readonly ready: Promise<H5wasm> };
    const module = await ready;
    // HDF5 prints every error. The handler that throws instead leaves calls unfinished, so that ids and memory are lost.
    module.FS.close(module.FS.streams[STANDARD_ERROR]);
    module.FS.open("/dev/null", "w");
    return module;
  } catch (error) {
    throw new ZpublishError("unsupported", `expected h5wasm to be installed: ${messageOf(error)}`, {
      cause: error,
    });
  }
}
