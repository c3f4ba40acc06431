import { messageOf, ZpublishError } from "../errors.js";
import type { CodecStep } from "../zarr/encoding-plan.js";
import { checkDecodedLength, corrupt } from "./codec.js";
import { CODECS } from "./codecs.js";

/**
 * Undoes codecs, outermost first, checking the length after each.
 * @param steps As in `EncodingPlan.decode`.
 * @param what The chunk, to begin error messages with: `'a/b' chunk 0.1`.
 * @returns Bytes that may be a view of the input.
 * @throws ZpublishError `corrupt-chunk`, or `codec-failed`.
 */
export async function decodeSteps(
  bytes: Uint8Array,
  steps: readonly CodecStep[],
  what: string,
): Promise<Uint8Array> {
  let current = bytes;
  for (const step of steps) {
    const { id } = step.codec;
    try {
      current = await codecOf(id).decode(current, step);
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
 * @returns Bytes that may be a view of the input.
 * @throws ZpublishError `corrupt-chunk` where what was decoded has not the length that is to be encoded; `codec-failed`.
 */
export async function encodeSteps(
  bytes: Uint8Array,
  steps: readonly CodecStep[],
  what: string,
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
      current = await encode(current, step);
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
