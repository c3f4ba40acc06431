import type { KernelMemory } from "./kernel-memory.js";
import { createWasmInstance, FREE_BEGIN, type WasmInstance } from "./wasm-instance.js";

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
export interface WasmMemory extends KernelMemory {
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
