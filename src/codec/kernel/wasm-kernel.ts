import type { Kernel } from "./kernel.js";
import { type MemoryLease, OWN_MEMORY } from "./kernel-memory.js";
import {
  createWasmInstance,
  FREE_BEGIN,
  type KernelExports,
  TABLE_BEGIN,
  type WasmInstance,
} from "./wasm-instance.js";
import { createWasmMemory, spaceFor } from "./wasm-memory.js";

/** Called with places in the instance's memory. */
type Operation<T> = (exports: KernelExports, source: number, target: number, scratch: number) => T;

/** The kernel in WebAssembly with SIMD, from `assembly/`; one per thread. */
export function createWasmKernel(): Kernel {
  const memory = createWasmMemory();
  let isLeased = false;

  /** Runs an operation; a source or a target that is not in the kernel's memory is copied in, and out. */
  function run<T>(source: Uint8Array, target: Uint8Array, scratchBytes: number, operation: Operation<T>): T {
    const { instance } = memory;
    const copied =
      (isIn(instance, source) ? 0 : spaceFor(source.length)) +
      (isIn(instance, target) ? 0 : spaceFor(target.length)) +
      scratchBytes;
    if (copied === 0) return operation(instance.exports, source.byteOffset, target.byteOffset, 0);
    const mark = memory.mark();
    const place = memory.push(copied);
    // Too much for the memory that is kept: an instance for this alone.
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

  function lease(): MemoryLease {
    if (isLeased) return OWN_MEMORY;
    isLeased = true;
    const begin = memory.mark();
    let isEnded = false;
    return {
      allocate(byteLength) {
        if (isEnded) throw new Error("expected a lease that has not ended");
        return memory.allocateLong(byteLength);
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
    memory,
    lease,
    decodeLz4: (source, target) =>
      run(source, target, 0, (kernel, from, to) =>
        kernel.decodeLz4(from, from + source.length, to, to + target.length),
      ) === 1,
    encodeLz4: (source, target, acceleration) =>
      run(source, target, 0, (kernel, from, to) =>
        kernel.encodeLz4(from, source.length, to, target.length, acceleration, TABLE_BEGIN),
      ),
    encodeLz4hc: (source, target, level) =>
      run(source, target, 0, (kernel, from, to) =>
        kernel.encodeLz4hc(from, source.length, to, target.length, level, TABLE_BEGIN),
      ),
    decodeBlosclz: (source, target) =>
      run(source, target, 0, (kernel, from, to) =>
        kernel.decodeBlosclz(from, from + source.length, to, to + target.length),
      ) === 1,
    encodeBlosclz: (source, target, level, isSplit) =>
      run(source, target, 0, (kernel, from, to) =>
        kernel.encodeBlosclz(from, source.length, to, target.length, level, isSplit ? 1 : 0, TABLE_BEGIN),
      ),
    shuffleBytes(source, target, itemSize) {
      run(source, target, 0, (kernel, from, to) => kernel.shuffleBytes(from, to, source.length, itemSize));
    },
    unshuffleBytes(source, target, itemSize) {
      run(source, target, 0, (kernel, from, to) => kernel.unshuffleBytes(from, to, source.length, itemSize));
    },
    shuffleBits(source, target, itemSize) {
      run(source, target, source.length, (kernel, from, to, scratch) =>
        kernel.shuffleBits(from, to, source.length, itemSize, scratch),
      );
    },
    unshuffleBits(source, target, itemSize) {
      run(source, target, source.length, (kernel, from, to, scratch) =>
        kernel.unshuffleBits(from, to, source.length, itemSize, scratch),
      );
    },
  };
}

function isIn(instance: WasmInstance, view: Uint8Array): boolean {
  return view.buffer === instance.bytes.buffer;
}

/** Runs an operation with copies, from `place` on, of what is not in the instance's memory, and scratch behind them. */
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
