import { readFileSync } from "node:fs";
import { messageOf, ZpublishError } from "../../errors.js";
import type { KernelMemory } from "./kernel-memory.js";

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
  swapWords(place: number, length: number, wordSize: number): void;
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

/** Bytes behind every allocation: encoders write up to 16 bytes too many. */
const SLACK_BYTES = 64;
const ALIGNMENT = 64;
/** Upper bound of the stack; work that needs more gets memory of its own. */
const MAX_KEPT_BYTES = 96 * 2 ** 20;
/** Part of the stack that chunks leave free, for work on views that lie elsewhere. */
const RESERVED_BYTES = 8 * 2 ** 20;
/** Enough for chunks of 1 MiB, so that they need no second instance. Untouched pages take no memory. */
const INITIAL_BYTES = RESERVED_BYTES + 8 * 2 ** 20;

/** The stack in an instance's memory, and the instance. */
interface WasmMemory extends KernelMemory {
  /** Changes only while nothing is allocated. */
  readonly instance: WasmInstance;
  /** Allocates bytes and returns their place; undefined if there is no room. */
  push(byteLength: number): number | undefined;
  /** As `allocate`, without the reserved part. */
  allocateLong(byteLength: number): Uint8Array<ArrayBuffer>;
}

/** Bytes of the stack that an allocation takes. */
export function spaceFor(byteLength: number): number {
  return Math.ceil((byteLength + SLACK_BYTES) / ALIGNMENT) * ALIGNMENT;
}

/** Creates a stack of 16 MiB. It grows to what was asked for, up to 96 MiB, once nothing is allocated. */
export function createWasmMemory(): WasmMemory {
  let instance = createWasmInstance(INITIAL_BYTES);
  let top = FREE_BEGIN;
  /** The highest top that was asked for. */
  let wanted = top;
  let canGrow = true;

  /** Grows by a new instance: more pages for the old one would detach all views of it. */
  function grow(): void {
    const { length } = instance.bytes;
    if (wanted <= length || length >= MAX_KEPT_BYTES || !canGrow) return;
    try {
      // At least twice as much, so that slowly growing chunks do not grow it each time.
      instance = createWasmInstance(Math.min(Math.max(wanted, 2 * length), MAX_KEPT_BYTES) - FREE_BEGIN);
    } catch {
      // The system has no more memory.
      canGrow = false;
    }
  }

  function push(byteLength: number, left = 0): number | undefined {
    const end = top + spaceFor(byteLength);
    wanted = Math.max(wanted, end + left);
    if (top === FREE_BEGIN) grow();
    if (end + left > instance.bytes.length) return undefined;
    const begin = top;
    top = end;
    return begin;
  }

  function allocate(byteLength: number, left = 0): Uint8Array<ArrayBuffer> {
    const begin = push(byteLength, left);
    return begin === undefined
      ? new Uint8Array(byteLength)
      : new Uint8Array(instance.bytes.buffer, begin, byteLength);
  }

  return {
    get instance() {
      return instance;
    },
    push: (byteLength) => push(byteLength),
    allocate: (byteLength) => allocate(byteLength),
    allocateLong: (byteLength) => allocate(byteLength, RESERVED_BYTES),
    mark: () => top,
    rewind(mark) {
      if (mark > top) throw new Error(`expected a mark of at most ${top}, received ${mark}`);
      top = mark;
    },
    keep: (bytes) => (bytes.buffer === instance.bytes.buffer ? bytes.slice() : bytes),
  };
}
