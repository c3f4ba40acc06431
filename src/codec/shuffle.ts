import { type Codec, corrupt } from "./codec.js";
import type { Kernel } from "./kernel/kernel.js";
import { type KernelMemory, OWN_MEMORY } from "./kernel/kernel-memory.js";
import { currentKernel } from "./kernel/kernel-use.js";

/** `shuffle` of numcodecs: bytes of equal weight together. Lengths that are no multiple of `elementsize` are refused. */
export const shuffle: Codec = {
  decode: (bytes, { codec }, memory) => run("unshuffleBytes", bytes, codec.elementsize, memory),
  encode: (bytes, { codec }, memory) => run("shuffleBytes", bytes, codec.elementsize, memory),
};

function run(
  operation: keyof Kernel & ("shuffleBytes" | "unshuffleBytes"),
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
