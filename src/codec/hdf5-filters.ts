import { messageOf, ZpublishError } from "../errors.js";
import { type Codec, corrupt } from "./codec.js";
import { dropH5wasm, type H5wasm, loadH5wasm } from "./h5wasm-module.js";
import { type ChunkFilter, DATASET_NAME, hdf5ChunkFile } from "./hdf5-chunk-file.js";

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
