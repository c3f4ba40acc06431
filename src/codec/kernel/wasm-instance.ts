import { readFileSync } from "node:fs";
import { messageOf, ZpublishError } from "../../errors.js";

/** The exports of `assembly/index.ts`. Places and lengths are in bytes of the instance's memory; booleans are 0 and 1. */
export interface KernelExports {
  decodeLz4(source: number, sourceEnd: number, target: number, targetEnd: number): number;
  encodeLz4(
    source: number,
    length: number,
    target: number,
    capacity: number,
    acceleration: number,
    table: number,
  ): number;
  decodeBlosclz(source: number, sourceEnd: number, target: number, targetEnd: number): number;
  shuffleBytes(source: number, target: number, length: number, itemSize: number): void;
  unshuffleBytes(source: number, target: number, length: number, itemSize: number): void;
  shuffleBits(source: number, target: number, length: number, itemSize: number, scratch: number): void;
  unshuffleBits(source: number, target: number, length: number, itemSize: number, scratch: number): void;
}

/** The kernel with its memory, which never grows, so that views of it stay valid. */
export interface WasmInstance {
  readonly exports: KernelExports;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** The part of `WebAssembly` that is used here; TypeScript declares it for browsers only. */
interface WebAssemblyInterface {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Memory: new (size: { initial: number }) => { readonly buffer: ArrayBuffer };
  readonly Instance: new (module: object, imports: object) => { readonly exports: unknown };
}

const { WebAssembly } = globalThis as unknown as { readonly WebAssembly: WebAssemblyInterface };

const PAGE_BYTES = 65_536;

/**
 * Begin of the LZ4 encoder's table. The module's own data lies before it (`memoryBase` and `lowMemoryLimit` in asconfig.json make
 * the compiler check this).
 */
export const TABLE_BEGIN = 4096;
/** As in `assembly/lz4-encode.ts`. */
const TABLE_BYTES = 16_384;
/** Begin of free memory. */
export const FREE_BEGIN = TABLE_BEGIN + TABLE_BYTES;

let module: object | undefined;

/**
 * Compiles the kernel, once per thread. V8 shares the code between threads.
 * @throws ZpublishError `unsupported` if there is no SIMD.
 */
export function compileKernel(): object {
  if (module !== undefined) return module;
  const code = readFileSync(new URL("./kernel.wasm", import.meta.url));
  try {
    module = new WebAssembly.Module(code);
  } catch (error) {
    throw new ZpublishError(
      "unsupported",
      `expected WebAssembly with SIMD, which Node.js ${process.versions.node} does not have on this machine: ${messageOf(error)}`,
      { cause: error },
    );
  }
  return module;
}

/**
 * Creates an instance with at least so many bytes of free memory.
 * @throws ZpublishError As {@link compileKernel}; RangeError if there is no memory.
 */
export function createWasmInstance(byteLength: number): WasmInstance {
  const compiled = compileKernel();
  const memory = new WebAssembly.Memory({ initial: Math.ceil((FREE_BEGIN + byteLength) / PAGE_BYTES) });
  const exports = new WebAssembly.Instance(compiled, { env: { memory } }).exports as KernelExports;
  return { exports, bytes: new Uint8Array(memory.buffer) };
}
