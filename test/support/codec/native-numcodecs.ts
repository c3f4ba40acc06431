import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import type { CodecSpec } from "../../../src/zarr/codec-step.js";
import { PYTHON } from "../clients/require-client.js";
import { uint32 } from "./blosc-frame.js";

/** One job for the native numcodecs: what comes of a chunk through one codec. */
export interface NativeJob {
  readonly operation: "encode" | "decode";
  readonly codec: CodecSpec;
  readonly bytes: Uint8Array;
  /** numpy type that the bytes are handed over as, which Blosc takes its typesize from; default `u1`. */
  readonly dtype?: string;
  /** Threads inside of Blosc; default 1, with which the same input always gives the same bytes. */
  readonly threads?: number;
}

/** What the native numcodecs made of a job. */
export interface NativeAnswer<Job extends NativeJob> {
  readonly job: Job;
  /** Undefined: refused. */
  readonly bytes: Buffer | undefined;
  /** What it said when it refused; undefined where it did not. */
  readonly refusal: string | undefined;
}

/**
 * Both ways a message is two lengths (uint32, little-endian) and what they are of: of a job, its JSON and its bytes; of
 * an answer, the refusal's text (none: no refusal) and the bytes.
 */
const SCRIPT = `
import json, struct, sys
import numpy, numcodecs, numcodecs.blosc
from numcodecs.compat import ensure_bytes

def run(job, data):
    dtype = numpy.dtype(job["dtype"])
    items = numpy.ndarray((len(data) // dtype.itemsize,), dtype, bytes(data))
    numcodecs.blosc.use_threads = job["threads"] > 1
    if job["threads"] > 1:
        numcodecs.blosc.set_nthreads(job["threads"])
    return ensure_bytes(getattr(numcodecs.get_codec(job["codec"]), job["operation"])(items))

while head := sys.stdin.buffer.read(8):
    job_length, byte_length = struct.unpack("<II", head)
    job = json.loads(sys.stdin.buffer.read(job_length))
    refusal, answer = b"", b""
    try:
        answer = run(job, sys.stdin.buffer.read(byte_length))
    except Exception as error:
        refusal = (type(error).__name__ + ": " + str(error)).encode()
    sys.stdout.buffer.write(struct.pack("<II", len(refusal), len(answer)))
    sys.stdout.buffer.write(refusal)
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
`;

const LENGTHS_BYTES = 8;
const MAX_ERROR_CHARACTERS = 4000;

/**
 * Runs jobs in one Python process, one after the other, and gives their answers as they come.
 * @throws Error with the end of its standard error where Python fails; whatever the jobs throw.
 */
export async function* streamNative<Job extends NativeJob>(
  jobs: Iterable<Job> | AsyncIterable<Job>,
): AsyncGenerator<NativeAnswer<Job>, void> {
  const python = spawn(PYTHON, ["-W", "ignore", "-c", SCRIPT], { stdio: ["pipe", "pipe", "pipe"] });
  const ended = once(python, "close");
  let complaint = "";
  python.stderr.on("data", (text: Buffer) => {
    complaint = (complaint + text.toString()).slice(-MAX_ERROR_CHARACTERS);
  });
  // A Python that is gone gives no answer.
  python.stdin.on("error", () => {});
  const read = createReader(python.stdout);
  try {
    for await (const job of jobs) {
      const { operation, codec, bytes, dtype = "u1", threads = 1 } = job;
      const text = Buffer.from(JSON.stringify({ operation, codec, dtype, threads }));
      python.stdin.write(Buffer.concat([uint32(text.length), uint32(bytes.length), text, bytes]));
      const lengths = await read(LENGTHS_BYTES);
      const refusal = lengths && (await read(lengths.readUInt32LE(0)));
      const answer = lengths && (await read(lengths.readUInt32LE(4)));
      if (refusal === undefined || answer === undefined) {
        await ended;
        throw new Error(`Python ended before the answer for ${JSON.stringify(codec)}: ${complaint}`);
      }
      const isRefused = refusal.length > 0;
      yield {
        job,
        bytes: isRefused ? undefined : answer,
        refusal: isRefused ? refusal.toString() : undefined,
      };
    }
  } finally {
    python.kill();
    await ended;
  }
}

/** Runs jobs in one Python process; an answer of undefined means that numcodecs refused. */
export async function runNative(jobs: readonly NativeJob[]): Promise<(Buffer | undefined)[]> {
  const answers: (Buffer | undefined)[] = [];
  for await (const { bytes } of streamNative(jobs)) answers.push(bytes);
  return answers;
}

/** Reads so many bytes into a buffer of their own; undefined where the stream ends before. */
function createReader(stream: Readable): (byteLength: number) => Promise<Buffer | undefined> {
  const pieces = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let rest: Uint8Array = new Uint8Array(0);
  return async (byteLength) => {
    const bytes = Buffer.alloc(byteLength);
    let filled = 0;
    while (filled < byteLength) {
      if (rest.length === 0) {
        const next = await pieces.next();
        if (next.done === true) return undefined;
        rest = next.value;
      }
      const some = rest.subarray(0, byteLength - filled);
      bytes.set(some, filled);
      filled += some.length;
      rest = rest.subarray(some.length);
    }
    return bytes;
  };
}
