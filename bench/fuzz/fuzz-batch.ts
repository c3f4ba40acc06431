import { setImmediate as nextTurn } from "node:timers/promises";
import { currentKernel } from "../../src/codec/kernel/kernel.js";
import { decodeSteps } from "../../src/codec/run-steps.js";
import { messageOf, ZpublishError } from "../../src/errors.js";
import type { CodecStep } from "../../src/zarr/codec-step.js";
import { type Mutation, mutations } from "../../test/codec/mutate-chunk.js";
import { createRandom } from "../random.js";
import type { FuzzTarget, GoodChunk } from "./fuzz-targets.js";

/** Decodes a chunk as the plan says. @returns Bytes that stay what they are. @throws ZpublishError */
export type Decode = (bytes: Uint8Array, step: CodecStep) => Promise<Uint8Array>;

/** What came of some damaged chunks; sums of two results are made by `addResults`. */
export interface FuzzResult {
  readonly inputs: number;
  /** To bytes of the planned length, which may be wrong ones: most formats have no checksum. */
  readonly decoded: number;
  /** As corrupt. */
  readonly refused: number;
  readonly longestMs: number;
  readonly failures: readonly FuzzFailure[];
}

/** Something that must not happen. */
export interface FuzzFailure {
  readonly target: string;
  readonly seed: number;
  /** Which one of the batch, from 0. */
  readonly number: number;
  /** What was done to the chunk. */
  readonly kind: string;
  readonly problem: string;
  readonly step: CodecStep;
  readonly bytes: Uint8Array;
}

/** Before the first batch. */
export const NO_RESULT: FuzzResult = {
  inputs: 0,
  decoded: 0,
  refused: 0,
  longestMs: 0,
  failures: [],
};

/** Longer than the slowest honest chunk of this length takes, also when others use the processor. */
const MAX_INPUT_MS = 5_000;
const INPUTS_PER_TURN = 16;
/** Bytes in front of the input that nobody may write to. */
const GUARD_BYTES = 64;
const GUARD = 0xa5;

/**
 * Decodes damaged copies of one of the target's chunks, and after them a good chunk.
 * @param decode Default: as a worker decodes.
 * @param onInput Told each one before it is decoded.
 */
export async function fuzzBatch(
  target: FuzzTarget,
  seed: number,
  count: number,
  decode: Decode = decodeInLease,
  onInput: (input: Uint8Array) => void = () => undefined,
): Promise<FuzzResult> {
  const random = createRandom(seed);
  const chunk = target.chunks[Math.floor(random() * target.chunks.length)]!;
  const others = target.chunks.map(({ encoded }) => encoded);
  const source = mutations(chunk.encoded, others, random);
  let result = NO_RESULT;
  for (let number = 0; number < count; number++) {
    // zlib gives back what it has refused in a later turn of the event loop.
    if (number % INPUTS_PER_TURN === 0) await nextTurn();
    const mutation = source.next().value;
    onInput(mutation.bytes);
    const { problem, ...one } = await decodeDamaged(mutation, chunk.step, decode);
    const failures: FuzzFailure[] =
      problem === undefined
        ? []
        : [{ target: target.name, seed, number, ...mutation, problem, step: chunk.step }];
    result = addResults(result, { ...one, failures });
  }
  const problem = await checkGood(chunk, decode);
  if (problem === undefined) return result;
  const { encoded: bytes, step } = chunk;
  const failure = {
    target: target.name,
    seed,
    number: count,
    kind: "a good chunk afterwards",
    problem,
    step,
    bytes,
  };
  return { ...result, failures: [...result.failures, failure] };
}

/** Sums, and the longest of both. */
export function addResults(a: FuzzResult, b: FuzzResult): FuzzResult {
  return {
    inputs: a.inputs + b.inputs,
    decoded: a.decoded + b.decoded,
    refused: a.refused + b.refused,
    longestMs: Math.max(a.longestMs, b.longestMs),
    failures: b.failures.length === 0 ? a.failures : [...a.failures, ...b.failures],
  };
}

/** What a decoder made of a damaged chunk. */
type Outcome = { readonly bytes: Uint8Array } | { readonly refusal: string } | { readonly problem: string };

async function decodeDamaged(
  { bytes }: Mutation,
  step: CodecStep,
  decode: Decode,
): Promise<Omit<FuzzResult, "failures"> & { readonly problem?: string }> {
  const began = performance.now();
  const original = bytes.slice();
  const outcome = await outcomeOf(decode, bytes, step);
  const longestMs = performance.now() - began;
  const result = {
    inputs: 1,
    decoded: "bytes" in outcome ? 1 : 0,
    refused: "refusal" in outcome ? 1 : 0,
    longestMs,
  };
  const problem =
    ("problem" in outcome ? outcome.problem : undefined) ??
    (Buffer.compare(bytes, original) === 0 ? undefined : "the input was changed") ??
    (longestMs > MAX_INPUT_MS ? `expected at most ${MAX_INPUT_MS} ms, took ${longestMs}` : undefined);
  return problem === undefined ? result : { ...result, problem };
}

async function outcomeOf(decode: Decode, bytes: Uint8Array, step: CodecStep): Promise<Outcome> {
  let decoded: Uint8Array;
  try {
    decoded = await decode(bytes, step);
  } catch (error) {
    if (error instanceof ZpublishError && error.code === "corrupt-chunk") return { refusal: error.message };
    const code = error instanceof ZpublishError ? `${error.code}: ` : "";
    return { problem: `expected corrupt-chunk, received ${code}${messageOf(error)}` };
  }
  const { decodedByteLength, maxDecodedByteLength } = step;
  const isPlanned =
    decodedByteLength === null
      ? decoded.length <= maxDecodedByteLength
      : decoded.length === decodedByteLength;
  if (isPlanned) return { bytes: decoded };
  return {
    problem: `expected ${decodedByteLength ?? `at most ${maxDecodedByteLength}`} bytes, received ${decoded.length}`,
  };
}

async function checkGood({ encoded, decoded, step }: GoodChunk, decode: Decode): Promise<string | undefined> {
  const outcome = await outcomeOf(decode, new Uint8Array(encoded), step);
  if ("bytes" in outcome && Buffer.compare(outcome.bytes, decoded) === 0) return undefined;
  return `expected the bytes that were encoded, received ${"bytes" in outcome ? "others" : Object.values(outcome)[0]}`;
}

/** Decodes as a worker does: from the kernel's memory into the kernel's memory. */
export async function decodeInLease(bytes: Uint8Array, step: CodecStep): Promise<Uint8Array> {
  const lease = currentKernel().lease();
  try {
    const place = lease.allocate(GUARD_BYTES + bytes.length);
    place.fill(GUARD, 0, GUARD_BYTES);
    const input = place.subarray(GUARD_BYTES);
    input.set(bytes);
    const decoded = await decodeSteps(input, [step], "a damaged chunk", lease).catch((error: unknown) => ({
      error,
    }));
    const isWhole = place.subarray(0, GUARD_BYTES).every((byte) => byte === GUARD);
    if (!isWhole || Buffer.compare(input, bytes) !== 0) throw new Error("memory of others was written to");
    if ("error" in decoded) throw decoded.error;
    return decoded.slice();
  } finally {
    lease.end();
  }
}
