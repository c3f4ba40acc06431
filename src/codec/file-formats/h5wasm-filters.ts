import { messageOf, ZpublishError } from "../../errors.js";
import { type Codec, corrupt } from "../codec.js";

/** The parts of h5wasm's module that are used: the HDF5 library in WebAssembly, with files in memory. */
interface H5wasm {
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

/** Loads h5wasm once for this thread, which takes 0.3 s and some 60 MB. @throws ZpublishError `unsupported` if it is missing. */
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

/** A filter of HDF5 with its client data. */
interface ChunkFilter {
  readonly id: number;
  readonly values: readonly number[];
}

/** Name of the dataset in the file. */
const DATASET_NAME = "data";

/**
 * Superblock of version 0, and the root group: an object header with one link, `data`, to the object header that follows. All that
 * changes is the length of the file.
 */
const FILE_HEAD = Buffer.from(
  [
    "894844460d0a1a0a000000000008080004001000000000000000000000000000ffffffffffffffff0000000000000000",
    "ffffffffffffffff00000000000000006000000000000000000000000000000000000000000000000000000000000000",
    "0100020001000000380000000000000002001800000000000000ffffffffffffffffffffffffffffffff000000000000",
    "060010000000000001000464617461a80000000000000000",
  ].join(""),
  "hex",
);
const FILE_LENGTH_AT = 40;
/** Codes of messages (HDF5 File Format Specification, IV.A.2). */
const DATASPACE = 1;
const DATATYPE = 3;
const FILL_VALUE = 5;
const LAYOUT = 8;
const PIPELINE = 11;

/**
 * Makes an HDF5 file of one dataset, which has one chunk of bytes, so that HDF5 itself undoes filters. No filter needs to know the type
 * of the items: what it depends on is in its client data.
 * @param byteLength Length of the decoded chunk.
 */
function hdf5ChunkFile(stored: Uint8Array, byteLength: number, filters: readonly ChunkFilter[]): Uint8Array {
  const headerOf = (chunkAt: number) => datasetHeader(chunkAt, byteLength, stored.length, filters);
  // The address of the chunk is known once the length of the header is.
  const chunkAt = FILE_HEAD.length + headerOf(0).length;
  const file = Buffer.concat([FILE_HEAD, Uint8Array.from(headerOf(chunkAt)), stored]);
  file.writeBigUInt64LE(BigInt(file.length), FILE_LENGTH_AT);
  return file;
}

/** Object header (version 1) of a dataset with one chunk. */
function datasetHeader(
  chunkAt: number,
  byteLength: number,
  storedBytes: number,
  filters: readonly ChunkFilter[],
): number[] {
  // HDF5 refuses chunk shapes that are wider than they need to be.
  const width = Math.floor((Math.floor(Math.log2(byteLength)) + 8) / 8);
  const pipeline = filters.flatMap(({ id, values }) => [
    ...little(id, 2),
    // Only filters that are not HDF5's own have a name.
    ...(id < 256 ? [] : [0, 0]),
    ...little(0, 2),
    ...little(values.length, 2),
    ...values.flatMap((value) => little(value, 4)),
  ]);
  const messages = [
    message(DATASPACE, [2, 1, 0, 1, ...little(byteLength, 8)]),
    // Unsigned integers of 8 bits.
    message(DATATYPE, [0x10, 0, 0, 0, ...little(1, 4), ...little(0, 2), ...little(8, 2)]),
    message(FILL_VALUE, [3, 0x0b]),
    // Version 4, chunked, a single chunk with filters; its shape and the size of an item.
    message(LAYOUT, [
      ...[4, 2, 2, 2, width, ...little(byteLength, width), ...little(1, width), 1],
      ...[...little(storedBytes, 8), ...little(0, 4), ...little(chunkAt, 8)],
    ]),
    message(PIPELINE, [2, filters.length, ...pipeline]),
  ];
  const body = messages.flat();
  return [1, 0, ...little(messages.length, 2), ...[1, body.length, 0].flatMap((n) => little(n, 4)), ...body];
}

/** Returns a message of an object header, which takes a multiple of 8 bytes. */
function message(type: number, body: readonly number[]): number[] {
  const padding = -body.length & 7;
  const head = [type, body.length + padding, 0, 0].flatMap((number) => little(number, 2));
  return [...head, ...body, ...little(0, padding)];
}

/** Returns the bytes of a number, the least significant first. */
function little(value: number, byteLength: number): number[] {
  return Array.from({ length: byteLength }, (_, place) => Math.floor(value / 256 ** place) % 256);
}

const SZIP = 4;
/** Bytes that another filter may have added before szip. */
const SLACK_BYTES = 64 * 1024;

/** Differs between files, since HDF5 takes a file of the same name that was not closed for the same. */
let files = 0;

/**
 * Filters of HDF5 that only HDF5 itself decodes: szip, scale-offset, n-bit, and those between them, in the order of encoding, each with
 * `id` and `values` (its client data). h5wasm reads a file that is made of the chunk.
 */
export const hdf5Filters: Codec = {
  async decode(bytes, { codec, decodedByteLength }, memory) {
    if (decodedByteLength === null || decodedByteLength === 0) {
      throw corrupt(
        `hdf5-filters: expected chunks of a known length, received ${decodedByteLength ?? "none"}`,
      );
    }
    const filters = codec.filters as unknown as readonly ChunkFilter[];
    checkSzipLength(bytes, filters, decodedByteLength);
    const module = await loadH5wasm();
    const decoded = memory?.allocate(decodedByteLength) ?? new Uint8Array(decodedByteLength);
    let isRead: boolean;
    try {
      isRead = readFile(module, hdf5ChunkFile(bytes, decodedByteLength, filters), decoded);
    } catch (error) {
      // WebAssembly has trapped, within which call is not known.
      dropH5wasm();
      if (error instanceof ZpublishError) throw error;
      throw corrupt(`hdf5-filters: HDF5 failed on the chunk: ${messageOf(error)}`, error);
    }
    if (!isRead) {
      const ids = filters.map(({ id }) => id).join(", ");
      throw corrupt(`hdf5-filters: HDF5 does not decode ${bytes.length} bytes with filters ${ids}`);
    }
    return decoded;
  },
};

/** Checks the length that a chunk of szip announces: HDF5 allocates it before it decodes. */
function checkSzipLength(
  bytes: Uint8Array,
  filters: readonly ChunkFilter[],
  decodedByteLength: number,
): void {
  if (filters.at(-1)?.id !== SZIP || bytes.length < 4) return;
  const announced = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const limit = 2 * decodedByteLength + SLACK_BYTES;
  if (announced > limit) {
    throw corrupt(`hdf5-filters: szip announces ${announced} bytes, expected at most ${limit}`);
  }
}

/** Reads the dataset of a file. @returns False if HDF5 cannot decode it. */
function readFile(module: H5wasm, file: Uint8Array, target: Uint8Array): boolean {
  const path = `/chunk-${files++}.h5`;
  const address = module._malloc(target.length);
  if (address === 0) {
    throw new ZpublishError("codec-failed", `hdf5-filters: h5wasm has no memory for ${target.length} bytes`);
  }
  try {
    module.FS.writeFile(path, file);
    const { H5F_ACC_RDONLY, H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST } = module;
    const id = module.open(path, H5F_ACC_RDONLY, false, H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST);
    if (id < 0) return false;
    try {
      const status = module.get_dataset_data(id, DATASET_NAME, null, null, null, BigInt(address));
      if (status < 0) return false;
      target.set(module.HEAPU8.subarray(address, address + target.length));
      return true;
    } finally {
      module.close_file(id);
    }
  } finally {
    module.FS.unlink(path);
    module._free(address);
  }
}
