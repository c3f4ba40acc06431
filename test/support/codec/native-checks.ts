import type { Test } from "tap";
import { encodeSteps } from "../../../src/codec/run-steps.js";
import type { CodecSpec } from "../../../src/zarr/codec-step.js";
import { type NativeJob, streamNative } from "./native-numcodecs.js";
import { decodingProblem, reportFailures, stepOf } from "./steps.js";

/** A chunk that is taken through native numcodecs. */
export interface NativeCase {
  readonly codec: CodecSpec;
  /** Size of its items, which Blosc calls typesize. */
  readonly itemSize: number;
  readonly bytes: Uint8Array;
  readonly label: string;
  /** Threads inside of native Blosc. Default 1. */
  readonly threads?: number;
}

/** A job with what is to come of it. */
interface CheckedJob extends NativeJob {
  readonly label: string;
  readonly itemSize: number;
  readonly original: Uint8Array;
}

/** The codecs of which numcodecs takes a decoded length of 0 for an error. */
const REFUSED_EMPTY = new Set(["blosc", "lz4", "zstd"]);

/** Checks that native decodes what is encoded here, and the reverse. */
export async function checkBothWays(t: Test, cases: Iterable<NativeCase>): Promise<void> {
  const failures: string[] = [];
  await checkJobs(t, jobsOf(cases, failures), failures);
}

/** Checks that what native encodes is decoded here. */
export async function checkNativeEncodings(t: Test, cases: Iterable<NativeCase>): Promise<void> {
  await checkJobs(t, [...cases].map(nativeEncoding), []);
}

/** Ours for native to decode, and the original for native to encode. */
async function* jobsOf(cases: Iterable<NativeCase>, failures: string[]): AsyncGenerator<CheckedJob> {
  for (const one of cases) {
    const { codec, itemSize, bytes: original, label } = one;
    const step = stepOf(codec, original.length, itemSize);
    const encoded = await encodeSteps(original, [step], label);
    const problem = await decodingProblem(encoded, step, original, label);
    if (problem !== undefined) failures.push(`encoded and decoded here: ${problem}`);
    if (original.length > 0 || !REFUSED_EMPTY.has(codec.id)) {
      yield { operation: "decode", codec, bytes: encoded, label, original, itemSize };
    }
    yield nativeEncoding(one);
  }
}

function nativeEncoding({ codec, itemSize, bytes, label, threads = 1 }: NativeCase): CheckedJob {
  const original = wholeItems(bytes, itemSize);
  return {
    operation: "encode",
    codec,
    bytes: original,
    dtype: dtypeOf(itemSize),
    threads,
    label,
    original,
    itemSize,
  };
}

async function checkJobs(
  t: Test,
  jobs: Iterable<CheckedJob> | AsyncIterable<CheckedJob>,
  failures: string[],
): Promise<void> {
  let count = 0;
  for await (const { job, bytes, refusal } of streamNative(jobs)) {
    const { operation, codec, original, label, itemSize } = job;
    count++;
    if (bytes === undefined) failures.push(`native refused to ${operation} ${label}: ${refusal}`);
    else if (operation === "decode") {
      if (!bytes.equals(original)) failures.push(`native decoded something else: ${label}`);
    } else {
      const step = stepOf(codec, original.length, itemSize);
      const problem = await decodingProblem(bytes, step, original, label);
      if (problem !== undefined) failures.push(`encoded by native, decoded here: ${problem}`);
    }
  }
  reportFailures(t, failures, count);
}

const MAX_RATIO = 1.05;
/** Below this many bytes a header more or less is more than five percent. */
const MIN_COMPARED_BYTES = 4096;

/** Blosc copies what it cannot make shorter, and a hair's breadth may decide that: so much of the input, and so many bytes. */
const CLOSE_SHARE = 0.01;
const CLOSE_BYTES = 64;

const FLAG_COPIED = 0x02;
const HEADER_BYTES = 16;

/** Checks that Blosc chunks that are encoded here have native's header and, within 5 %, its size. */
export async function checkBloscSizes(t: Test, cases: Iterable<NativeCase>): Promise<void> {
  const wrongHeaders: string[] = [];
  const tooLong: string[] = [];
  let ourBytes = 0;
  let nativeBytes = 0;
  let count = 0;
  for await (const { job, bytes: native, refusal } of streamNative(sizeJobsOf(cases))) {
    const { label, ours, bytes } = job;
    count++;
    if (native === undefined) {
      tooLong.push(`refused by native: ${label}: ${refusal}`);
      continue;
    }
    const [received, expected] = [headerOf(ours), headerOf(native)];
    const isClose = Math.min(ours.length, native.length) > bytes.length * (1 - CLOSE_SHARE) - CLOSE_BYTES;
    if (isClose) received.flags = (received.flags & ~FLAG_COPIED) | (expected.flags & FLAG_COPIED);
    if (JSON.stringify(received) !== JSON.stringify(expected)) {
      wrongHeaders.push(
        `${label}: expected ${JSON.stringify(expected)}, received ${JSON.stringify(received)}`,
      );
    }
    if (bytes.length < MIN_COMPARED_BYTES) continue;
    ourBytes += ours.length;
    nativeBytes += native.length;
    if (ours.length > native.length * MAX_RATIO) {
      tooLong.push(`${label}: expected about ${native.length} bytes, received ${ours.length}`);
    }
  }
  reportFailures(t, wrongHeaders, count);
  reportFailures(t, tooLong, count);
  t.ok(
    ourBytes <= nativeBytes * MAX_RATIO,
    `all together ${ourBytes} bytes, of native ${nativeBytes}: ${(ourBytes / nativeBytes).toFixed(4)}`,
  );
}

async function* sizeJobsOf(cases: Iterable<NativeCase>) {
  for (const { codec, itemSize, bytes: all, label } of cases) {
    const bytes = wholeItems(all, itemSize);
    const ours = await encodeSteps(bytes, [stepOf(codec, bytes.length, itemSize)], label);
    yield { operation: "encode" as const, codec, dtype: dtypeOf(itemSize), bytes, ours, label };
  }
}

/** Native takes whole items only. */
function wholeItems(bytes: Uint8Array, itemSize: number): Uint8Array {
  return bytes.subarray(0, bytes.length - (bytes.length % itemSize));
}

function dtypeOf(itemSize: number): string {
  return itemSize === 1 ? "u1" : `V${itemSize}`;
}

/** All of a header but the length of the chunk. */
function headerOf(chunk: Uint8Array) {
  const view = new DataView(chunk.buffer, chunk.byteOffset, HEADER_BYTES);
  return {
    version: view.getUint8(0),
    innerVersion: view.getUint8(1),
    flags: view.getUint8(2),
    typeSize: view.getUint8(3),
    byteLength: view.getUint32(4, true),
    blockSize: view.getUint32(8, true),
  };
}
