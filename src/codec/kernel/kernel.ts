import type { KernelMemory, MemoryLease } from "./kernel-memory.js";

/**
 * What codecs do with bytes at speed. Bytes may be anywhere; those in the kernel's own memory are worked on in place.
 * Decoders and shuffles read and write nothing outside of the views that are passed, whatever the bytes are; encoders may
 * write up to 16 bytes behind their target, which is free there or theirs to write later. Source and target never overlap.
 */
export interface Kernel {
  /** For work that is done before anybody else has a turn: what is allocated is given back before that. */
  readonly memory: KernelMemory;
  /** Memory for one task; one at a time gets the kernel's, others memory of their own. */
  lease(): MemoryLease;
  /** @returns Whether the LZ4 block was whole and filled the target exactly. */
  decodeLz4(source: Uint8Array, target: Uint8Array): boolean;
  /**
   * Absent where the kernel cannot.
   * @param acceleration From 1.
   * @returns Encoded bytes at the beginning of the target; 0: they do not fit into it.
   */
  readonly encodeLz4?: (source: Uint8Array, target: Uint8Array, acceleration: number) => number;
  /**
   * LZ4 with a thorough search. Absent where the kernel cannot.
   * @param level 1 to 9.
   * @returns As of `encodeLz4`.
   */
  readonly encodeLz4hc?: (source: Uint8Array, target: Uint8Array, level: number) => number;
  /** @returns Whether the BloscLZ stream was whole and filled the target exactly. */
  decodeBlosclz(source: Uint8Array, target: Uint8Array): boolean;
  /**
   * Absent where the kernel cannot.
   * @param level 1 to 9.
   * @param isSplit Whether the stream is one of several of its block.
   * @returns Encoded bytes at the beginning of the target; 0: they do not fit into it, or are hardly fewer.
   */
  readonly encodeBlosclz?: (
    source: Uint8Array,
    target: Uint8Array,
    level: number,
    isSplit: boolean,
  ) => number;
  /** Byte `b` of item `i` goes to `b * count + i`; bytes behind the last whole item stay. Lengths are the same. */
  shuffleBytes(source: Uint8Array, target: Uint8Array, itemSize: number): void;
  unshuffleBytes(source: Uint8Array, target: Uint8Array, itemSize: number): void;
  /**
   * Bit `k` of byte `b` of all items goes to row `8 * b + k`, eight items to a byte. As Blosc does it: where the number of
   * items is no multiple of eight, the bytes are copied as they are. Absent where the kernel cannot.
   */
  readonly shuffleBits?: (source: Uint8Array, target: Uint8Array, itemSize: number) => void;
  unshuffleBits(source: Uint8Array, target: Uint8Array, itemSize: number): void;
}
