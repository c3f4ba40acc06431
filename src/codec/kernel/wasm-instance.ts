import { readFileSync } from "node:fs";

/** What `assembly/index.ts` exports. Places and lengths are bytes of the instance's memory; booleans are 0 and 1. */
export interface KernelExports {
  /** Memory that the encoders use at TABLE_BEGIN, at most. */
  readonly TABLE_BYTES: { readonly value: number };
  decodeLz4(source: number, sourceEnd: number, target: number, targetEnd: number): number;
  encodeLz4(
    source: number,
    length: number,
    target: number,
    capacity: number,
    acceleration: number,
    table: number,
  ): number;
  encodeLz4hc(
    source: number,
    length: number,
    target: number,
    capacity: number,
    level: number,
    tables: number,
  ): number;
  decodeBlosclz(source: number, sourceEnd: number, target: number, targetEnd: number): number;
  encodeBlosclz(
    source: number,
    length: number,
    target: number,
    capacity: number,
    level: number,
    isSplit: number,
    table: number,
  ): number;
  shuffleBytes(source: number, target: number, length: number, itemSize: number): void;
  unshuffleBytes(source: number, target: number, length: number, itemSize: number): void;
  shuffleBits(source: number, target: number, length: number, itemSize: number, scratch: number): void;
  unshuffleBits(source: number, target: number, length: number, itemSize: number, scratch: number): void;
}

/** The kernel with memory of its own, which never grows: views of it stay valid. */
export interface WasmInstance {
  readonly exports: KernelExports;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** As much of the engine's interface as is used; TypeScript has it with the browser's only. */
interface WebAssemblyInterface {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Memory: new (size: { initial: number }) => { readonly buffer: ArrayBuffer };
  readonly Instance: new (module: object, imports: object) => { readonly exports: unknown };
}

const { WebAssembly } = globalThis as unknown as { readonly WebAssembly: WebAssemblyInterface };

const PAGE_BYTES = 65_536;

/**
 * Memory for the tables of encoders; what lies before it is the module's own data (`memoryBase` and `lowMemoryLimit` in
 * asconfig.json: the compiler sees to it).
 */
export const TABLE_BEGIN = 4096;
/** Of the largest, LZ4HC's. A place of their own, so that no encoding depends on room for them; unused, it is no memory. */
const TABLE_BYTES = 262_144;
/** From here on memory is free. LZ4HC needs it to be above the farthest that a match reaches back (65,535). */
export const FREE_BEGIN = TABLE_BEGIN + TABLE_BYTES;

let module: object | undefined;

/**
 * @param byteLength Of free memory, at least.
 * @throws RangeError where there is not so much memory.
 */
export function createWasmInstance(byteLength: number): WasmInstance {
  module ??= new WebAssembly.Module(readFileSync(new URL("./kernel.wasm", import.meta.url)));
  const memory = new WebAssembly.Memory({ initial: Math.ceil((FREE_BEGIN + byteLength) / PAGE_BYTES) });
  const exports = new WebAssembly.Instance(module, { env: { memory } }).exports as KernelExports;
  if (exports.TABLE_BYTES.value !== TABLE_BYTES) {
    throw new Error(
      `expected a kernel with tables of ${TABLE_BYTES} bytes, received ${exports.TABLE_BYTES.value}`,
    );
  }
  return { exports, bytes: new Uint8Array(memory.buffer) };
}
