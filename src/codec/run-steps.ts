import { messageOf, ZpublishError } from "../errors.js";
import type { CodecStep } from "../zarr/codec-step.js";
import { checkDecodedLength, corrupt } from "./codec.js";
import { CODECS } from "./codecs.js";
import { type KernelMemory, OWN_MEMORY } from "./kernel/kernel-memory.js";

/**
 * Undoes codecs, outermost first, checking the length after each.
 * @param steps As in `EncodingPlan.decode`.
 * @param what The chunk, to begin error messages with: `'a/b' chunk 0.1`.
 * @param memory For the result and for intermediate bytes. Default: memory of its own.
 * @returns Bytes that may be a view of the input, or of that memory.
 * @throws ZpublishError `corrupt-chunk`, or `codec-failed`.
 */
export async function decodeSteps(
  bytes: Uint8Array,
  steps: readonly CodecStep[],
  what: string,
  memory: KernelMemory = OWN_MEMORY,
): Promise<Uint8Array> {
  let current = bytes;
  for (const step of steps) {
    const { id } = step.codec;
    try {
      current = await codecOf(id).decode(current, step, memory);
      checkDecodedLength(id, current.length, step);
    } catch (error) {
      throw named(error, what, id);
    }
  }
  return current;
}

/**
 * Applies codecs, innermost first.
 * @param steps As in `EncodingPlan.encode`.
 * @param memory As for {@link decodeSteps}.
 * @returns Bytes that may be a view of the input, or of that memory.
 * @throws ZpublishError `corrupt-chunk` if the bytes do not have the length to be encoded; `codec-failed`.
 */
export async function encodeSteps(
  bytes: Uint8Array,
  steps: readonly CodecStep[],
  what: string,
  memory: KernelMemory = OWN_MEMORY,
): Promise<Uint8Array> {
  let current = bytes;
  for (const step of steps) {
    const { id } = step.codec;
    const { encode } = codecOf(id);
    try {
      if (step.decodedByteLength !== null && current.length !== step.decodedByteLength) {
        throw corrupt(
          `${id}: expected ${step.decodedByteLength} bytes to encode, received ${current.length}`,
        );
      }
      if (encode === undefined)
        throw new ZpublishError("codec-failed", `${id}: expected a codec that encodes`);
      current = await encode(current, step, memory);
    } catch (error) {
      throw named(error, what, id);
    }
  }
  return current;
}

function codecOf(id: string) {
  const codec = Object.hasOwn(CODECS, id) ? CODECS[id] : undefined;
  if (codec === undefined) throw new ZpublishError("codec-failed", `codec ${id} is unknown here`);
  return codec;
}

function named(error: unknown, what: string, id: string): ZpublishError {
  if (error instanceof ZpublishError) {
    return new ZpublishError(error.code, `${what}: ${error.message}`, {
      details: error.details,
      cause: error.cause,
    });
  }
  return new ZpublishError("codec-failed", `${what}: ${id}: ${messageOf(error)}`, { cause: error });
}
