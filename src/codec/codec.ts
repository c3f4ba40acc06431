import { ZpublishError } from "../errors.js";
import type { CodecStep } from "../zarr/codec-step.js";
import type { KernelMemory } from "./kernel/kernel-memory.js";

/**
 * A codec: bytes to bytes. Implementations are pure and never change their input; they may return a view of it, or of the
 * memory they were given. Options have been checked before (`zarr/plan/codec-rules.ts`), stored bytes have not.
 */
export interface Codec {
  /** Decodes stored bytes; the caller checks the length. @throws ZpublishError `corrupt-chunk` */
  readonly decode: Transform;
  /**
   * Encodes bytes; absent if the codec is only decoded. The same input gives the same output on all machines for which
   * `encoder-revision.ts` gives the same revision.
   * @throws ZpublishError `codec-failed`
   */
  readonly encode?: Transform;
}

/** @param memory For the result, if the codec can use it; the caller gives it back. Default: memory of its own. */
type Transform = (
  bytes: Uint8Array,
  step: CodecStep,
  memory?: KernelMemory,
) => Uint8Array | Promise<Uint8Array>;

/** Creates an error about stored bytes. `run-steps.ts` puts the name of the chunk before its message. */
export function corrupt(message: string, cause?: unknown): ZpublishError {
  return new ZpublishError("corrupt-chunk", message, cause === undefined ? {} : { cause });
}

/** The same bytes as a plain `Uint8Array`: V8 runs loops that also meet a `Buffer` more slowly. */
export function plainBytes({ buffer, byteOffset, byteLength }: Uint8Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** Longest input of an encoder; longer ones have not been tested. */
const MAX_ENCODE_BYTES = 512 * 2 ** 20;

/** Checks the length of an input to encode. @throws ZpublishError `codec-failed` if it is too long. */
export function checkEncodable(id: string, bytes: Uint8Array): void {
  if (bytes.length <= MAX_ENCODE_BYTES) return;
  throw new ZpublishError(
    "codec-failed",
    `${id}: expected at most ${MAX_ENCODE_BYTES} bytes to encode, received ${bytes.length}`,
  );
}

/** Compares a decoded length, announced or real, with the plan. @throws ZpublishError `corrupt-chunk` if it differs. */
export function checkDecodedLength(id: string, byteLength: number, step: CodecStep): void {
  const { decodedByteLength, maxDecodedByteLength } = step;
  if (decodedByteLength !== null && byteLength !== decodedByteLength) {
    throw corrupt(`${id}: decodes to ${byteLength} bytes, expected ${decodedByteLength}`);
  }
  if (byteLength > maxDecodedByteLength) {
    throw corrupt(`${id}: decodes to ${byteLength} bytes, expected at most ${maxDecodedByteLength}`);
  }
}
