import { type Codec, corrupt } from "./codec.js";
import { currentKernel } from "./kernel/kernel.js";
import { type KernelMemory, OWN_MEMORY } from "./kernel/kernel-memory.js";

/** `shuffle` of numcodecs: bytes of equal weight lie together. Lengths must be multiples of `elementsize`. */
export const shuffle: Codec = {
  decode: (bytes, { codec }, memory) => run("unshuffleBytes", bytes, codec.elementsize, memory),
  encode: (bytes, { codec }, memory) => run("shuffleBytes", bytes, codec.elementsize, memory),
};

function run(
  operation: "shuffleBytes" | "unshuffleBytes",
  bytes: Uint8Array,
  elementSize: unknown,
  memory: KernelMemory = OWN_MEMORY,
): Uint8Array {
  const itemSize = typeof elementSize === "number" ? elementSize : 4;
  if (itemSize <= 1) return bytes;
  if (bytes.length % itemSize !== 0) {
    throw corrupt(`shuffle: expected a multiple of ${itemSize} bytes, received ${bytes.length}`);
  }
  const target = memory.allocate(bytes.length);
  currentKernel()[operation](bytes, target, itemSize);
  return target;
}
