import { swapWords } from "../item-reader.js";
import { type KernelLease, type KernelMemory, OWN_MEMORY } from "./kernel-memory.js";
import {
  createWasmInstance,
  createWasmMemory,
  FREE_BEGIN,
  type KernelExports,
  spaceFor,
  TABLE_BEGIN,
  type WasmInstance,
} from "./wasm-memory.js";

const VECTOR_BYTES = 16;
/** Longest bytes of a lease in the kernel's memory, which stays. */
const MAX_LEASED_BYTES = 32 * 2 ** 20;

/** An operation on places in the memory of an instance. */
type Operation<T> = (exports: KernelExports, source: number, target: number, scratch: number) => T;

/**
 * Creates a kernel: decoders, encoders and shuffles in WebAssembly with SIMD, from `assembly/`.
 *
 * Views may lie anywhere; those outside of the kernel's memory are copied in and out. Source and target must not overlap. Decoders
 * and shuffles never read or write outside of the views. Encoders may write up to 16 bytes behind their target.
 * @throws ZpublishError `unsupported` if there is no SIMD; RangeError if there is no memory.
 */
export function createKernel() {
  const memory = createWasmMemory();
  let isLeased = false;

  /** Runs an operation, with copies of what does not lie in the kernel's memory. */
  function run<T>(source: Uint8Array, target: Uint8Array, scratchBytes: number, operation: Operation<T>): T {
    const { instance } = memory;
    const copied =
      (isIn(instance, source) ? 0 : spaceFor(source.length)) +
      (isIn(instance, target) ? 0 : spaceFor(target.length)) +
      scratchBytes;
    if (copied === 0) return operation(instance.exports, source.byteOffset, target.byteOffset, 0);
    const mark = memory.mark();
    const place = memory.push(copied);
    // No room: an instance for this operation alone.
    if (place === undefined) {
      const needed = spaceFor(source.length) + spaceFor(target.length) + spaceFor(scratchBytes);
      return runCopied(createWasmInstance(needed), FREE_BEGIN, source, target, operation);
    }
    try {
      return runCopied(memory.instance, place, source, target, operation);
    } finally {
      memory.rewind(mark);
    }
  }

  /** Leases memory to a task: the kernel's to one task at a time, memory of their own to others. */
  function lease(): KernelLease {
    if (isLeased) return OWN_MEMORY;
    isLeased = true;
    const begin = memory.mark();
    let isEnded = false;
    return {
      allocate(byteLength) {
        if (isEnded) throw new Error("expected a lease that has not ended");
        return byteLength > MAX_LEASED_BYTES ? new Uint8Array(byteLength) : memory.allocateLong(byteLength);
      },
      mark: memory.mark,
      rewind: memory.rewind,
      keep: memory.keep,
      end() {
        if (isEnded) return;
        isEnded = true;
        memory.rewind(begin);
        isLeased = false;
      },
    };
  }

  return {
    /** Memory for synchronous work, which has to release it before the next task runs. */
    memory: memory as KernelMemory,
    lease,
    /** Decodes an LZ4 block. @returns Whether it was whole and filled the target exactly. */
    decodeLz4: (source: Uint8Array, target: Uint8Array): boolean =>
      run(source, target, 0, (kernel, from, to) =>
        kernel.decodeLz4(from, from + source.length, to, to + target.length),
      ) === 1,
    /**
     * Encodes an LZ4 block.
     * @param acceleration From 1.
     * @returns Bytes at the beginning of the target; 0 if they do not fit.
     */
    encodeLz4: (source: Uint8Array, target: Uint8Array, acceleration: number): number =>
      run(source, target, 0, (kernel, from, to) =>
        kernel.encodeLz4(from, source.length, to, target.length, acceleration, TABLE_BEGIN),
      ),
    /** Decodes a BloscLZ stream. @returns Whether it was whole and filled the target exactly. */
    decodeBlosclz: (source: Uint8Array, target: Uint8Array): boolean =>
      run(source, target, 0, (kernel, from, to) =>
        kernel.decodeBlosclz(from, from + source.length, to, to + target.length),
      ) === 1,
    /** Puts byte `b` of item `i` at `b * count + i`; bytes behind the last whole item stay. Lengths are the same. */
    shuffleBytes(source: Uint8Array, target: Uint8Array, itemSize: number): void {
      run(source, target, 0, (kernel, from, to) => kernel.shuffleBytes(from, to, source.length, itemSize));
    },
    /** Undoes `shuffleBytes`. */
    unshuffleBytes(source: Uint8Array, target: Uint8Array, itemSize: number): void {
      run(source, target, 0, (kernel, from, to) => kernel.unshuffleBytes(from, to, source.length, itemSize));
    },
    /**
     * Turns round the bytes of words of 2, 4 or 8 bytes.
     * @returns The same memory if it is the kernel's, which no other task has; else a copy.
     */
    swappedWords(
      bytes: Uint8Array,
      wordSize: number,
      { allocate }: Pick<KernelMemory, "allocate">,
    ): Uint8Array {
      const { instance } = memory;
      const own = isIn(instance, bytes) ? bytes : allocate(bytes.length);
      if (own !== bytes) own.set(bytes);
      const whole = isIn(instance, own) ? own.length & -VECTOR_BYTES : 0;
      instance.exports.swapWords(own.byteOffset, whole, wordSize);
      swapWords(own.subarray(whole), wordSize);
      return own;
    },
    /**
     * Puts bit `k` of byte `b` of all items into row `8 * b + k`, eight items to a byte. As in Blosc, the bytes are copied
     * unchanged if the number of items is not a multiple of eight.
     */
    shuffleBits(source: Uint8Array, target: Uint8Array, itemSize: number): void {
      run(source, target, source.length, (kernel, from, to, scratch) =>
        kernel.shuffleBits(from, to, source.length, itemSize, scratch),
      );
    },
    /** Undoes `shuffleBits`. */
    unshuffleBits(source: Uint8Array, target: Uint8Array, itemSize: number): void {
      run(source, target, source.length, (kernel, from, to, scratch) =>
        kernel.unshuffleBits(from, to, source.length, itemSize, scratch),
      );
    },
  };
}

/** The operations of {@link createKernel}, and the memory they run in. */
export type Kernel = ReturnType<typeof createKernel>;

let threadKernel: Kernel | undefined;

/** The kernel of this thread, created at the first call. @throws As {@link createKernel}. */
export function currentKernel(): Kernel {
  threadKernel ??= createKernel();
  return threadKernel;
}

function isIn(instance: WasmInstance, view: Uint8Array): boolean {
  return view.buffer === instance.bytes.buffer;
}

/** Runs an operation. Views outside of the instance's memory are copied to `place`, scratch memory follows. */
function runCopied<T>(
  instance: WasmInstance,
  place: number,
  source: Uint8Array,
  target: Uint8Array,
  operation: Operation<T>,
): T {
  const { bytes, exports } = instance;
  let from = source.byteOffset;
  let free = place;
  if (!isIn(instance, source)) {
    from = free;
    bytes.set(source, from);
    free += spaceFor(source.length);
  }
  if (isIn(instance, target)) return operation(exports, from, target.byteOffset, free);
  const result = operation(exports, from, free, free + spaceFor(target.length));
  target.set(bytes.subarray(free, free + target.length));
  return result;
}
