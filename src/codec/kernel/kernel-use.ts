import type { Kernel } from "./kernel.js";
import { PLAIN_KERNEL } from "./plain-kernel.js";
import { createWasmKernel } from "./wasm-kernel.js";

let wasmKernel: Kernel | undefined;
let isUsed = true;

/** The kernel of this thread. */
export function currentKernel(): Kernel {
  if (!isUsed) return PLAIN_KERNEL;
  wasmKernel ??= createWasmKernel();
  return wasmKernel;
}

/**
 * Whether this thread uses the WebAssembly kernel (default), or does without: the same arrays, more slowly. What is
 * encoded may be other bytes, so the thread that makes plans must be told what those that encode are.
 */
export function setKernelUse(on: boolean): void {
  isUsed = on;
}

export function isKernelUsed(): boolean {
  return isUsed;
}
