import { ZpublishError } from "../errors.js";
import type { CodecStep } from "../zarr/encoding-plan.js";
import type { KernelMemory } from "./kernel/kernel-memory.js";

/**
 * How one codec turns bytes into bytes. Implementations are pure, never change their input, and may return a view of
 * it, or of memory that they were given. What a configuration may be is settled before (`zarr/codec-rules.ts`); what
 * stored bytes may be is not.
 */
export interface Codec {
  /**
   * @param memory For the result, where the codec can use it; it is the caller's to give back. Default: memory of its own.
   * @returns Bytes of `step.decodedByteLength`, at most of `step.maxDecodedByteLength`; the caller checks as well.
   * @throws ZpublishError `corrupt-chunk`
   */
  readonly decode: (
    bytes: Uint8Array,
    step: CodecStep,
    memory?: KernelMemory,
  ) => Uint8Array | Promise<Uint8Array>;
  /**
   * The same input gives the same output wherever `encoder-revision.ts` says the same of the codec. Absent where a codec is
   * only decoded.
   * @throws ZpublishError `codec-failed`
   */
  readonly encode?: (
    bytes: Uint8Array,
    step: CodecStep,
    memory?: KernelMemory,
  ) => Uint8Array | Promise<Uint8Array>;
}

/** An error about stored bytes, without a name: whoever knows the chunk puts it in front. */
export function corrupt(message: string, cause?: unknown): ZpublishError {
  return new ZpublishError("corrupt-chunk", message, cause === undefined ? {} : { cause });
}

/** Refuses a decoded length, announced or found, that is not the one the plan expects. */
export function checkDecodedLength(id: string, byteLength: number, step: CodecStep): void {
  const { decodedByteLength, maxDecodedByteLength } = step;
  if (decodedByteLength !== null && byteLength !== decodedByteLength) {
    throw corrupt(`${id}: decodes to ${byteLength} bytes, expected ${decodedByteLength}`);
  }
  if (byteLength > maxDecodedByteLength) {
    throw corrupt(`${id}: decodes to ${byteLength} bytes, expected at most ${maxDecodedByteLength}`);
  }
}
