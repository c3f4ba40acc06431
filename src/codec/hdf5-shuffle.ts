import type { Codec } from "./codec.js";
import { currentKernel } from "./kernel/kernel.js";
import { OWN_MEMORY } from "./kernel/kernel-memory.js";

/** Shuffle of HDF5, which leaves what is behind the last whole item as it is: a checksum, in files of netCDF-4. */
export const hdf5Shuffle: Codec = {
  decode(bytes, { codec }, memory = OWN_MEMORY) {
    const target = memory.allocate(bytes.length);
    currentKernel().unshuffleBytes(bytes, target, Number(codec.elementsize));
    return target;
  },
};
