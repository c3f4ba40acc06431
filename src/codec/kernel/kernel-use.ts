import type { Kernel } from "./kernel.js";
import { PLAIN_KERNEL } from "./plain-kernel.js";
import { createWasmKernel } from "./wasm-kernel.js";

let wasmKernel: Kernel | undefined;
/** Undefined: not settled. */
let isUsed: boolean | undefined;
let problem: unknown;

/**
 * The kernel of this thread.
 * @throws Error where there is to be one, and there is not the memory for it.
 */
export function currentKernel(): Kernel {
  if (!isKernelUsed()) return PLAIN_KERNEL;
  wasmKernel ??= createWasmKernel();
  return wasmKernel;
}

/**
 * Whether this thread uses the WebAssembly kernel, or does without: the same arrays, more slowly. What is encoded may be other
 * bytes, so the thread that makes plans tells those that encode, once for the whole process. Until it is said, it is used
 * where it can be had.
 */
export function setKernelUse(on: boolean): void {
  isUsed = on;
}

export function isKernelUsed(): boolean {
  if (isUsed === undefined) {
    try {
      wasmKernel = createWasmKernel();
      isUsed = true;
    } catch (error) {
      problem = error;
      isUsed = false;
    }
  }
  return isUsed;
}

/** Why this thread does without the kernel though nobody said so: no SIMD, or no memory. Undefined: it does not. */
export function kernelProblem(): unknown {
  return isKernelUsed() ? undefined : problem;
}
