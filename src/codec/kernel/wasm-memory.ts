import type { KernelMemory } from "./kernel-memory.js";
import { createWasmInstance, FREE_BEGIN, type WasmInstance } from "./wasm-instance.js";

/** Behind everything that is allocated: encoders write up to 16 bytes too many. */
const SLACK_BYTES = 64;
const ALIGNMENT = 64;
/** Memory that is kept; what needs more gets memory of its own, which goes when it is done. */
const MAX_KEPT_BYTES = 96 * 2 ** 20;
/** Of that, for work on what lies elsewhere: chunks on their way do not take it. */
const RESERVED_BYTES = 8 * 2 ** 20;
/** Enough for chunks of 1 MiB, which then need no second instance. What is not touched takes no memory. */
const INITIAL_BYTES = RESERVED_BYTES + 8 * 2 ** 20;

/** The stack in the memory of an instance of the kernel, and the instance. */
export interface WasmMemory extends KernelMemory {
  /** Changes only while nothing is allocated. */
  readonly instance: WasmInstance;
  /** The place of so many bytes; undefined: no room. */
  push(byteLength: number): number | undefined;
  /** As `allocate`, but leaves what is reserved. */
  allocateLong(byteLength: number): Uint8Array<ArrayBuffer>;
}

/** How many bytes an allocation of so many takes. */
export function spaceFor(byteLength: number): number {
  return Math.ceil((byteLength + SLACK_BYTES) / ALIGNMENT) * ALIGNMENT;
}

/** Memory that begins with 16 MiB and grows to what was asked for, up to 96 MiB, once nothing is allocated. */
export function createWasmMemory(): WasmMemory {
  let instance = createWasmInstance(INITIAL_BYTES);
  let top = FREE_BEGIN;
  /** Where the top would have been, had there been room. */
  let wanted = top;
  let canGrow = true;

  /** A new instance, not more pages for the old one: that would end all views of it, also those nobody should have. */
  function grow(): void {
    const { length } = instance.bytes;
    if (wanted <= length || length >= MAX_KEPT_BYTES || !canGrow) return;
    try {
      // Twice as much at least, so that slowly growing chunks do not do so every time.
      instance = createWasmInstance(Math.min(Math.max(wanted, 2 * length), MAX_KEPT_BYTES) - FREE_BEGIN);
    } catch {
      // The system has no more: what there is must do.
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
