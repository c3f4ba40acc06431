import nodeZlib from "node:zlib";
import { CODECS } from "../../src/codec/codecs.js";
import { currentKernel } from "../../src/codec/kernel/kernel.js";
import type { KernelLease, KernelMemory } from "../../src/codec/kernel/kernel-memory.js";
import { decodeSteps, encodeSteps } from "../../src/codec/run-steps.js";
import type { CodecStep } from "../../src/zarr/codec-step.js";
import { completeCodec } from "../../src/zarr/plan/codec-rules.js";
import { encodedCodec } from "../../src/zarr/plan/codec-steps.js";
import type { ChunksJob } from "./codec-subjects.js";
import { loadNumcodecsJs } from "./numcodecs-js.js";

type Run = (bytes: Uint8Array) => Uint8Array | Promise<Uint8Array>;

/** One codec of one library. */
export interface CodecRunner {
  readonly decode: Run;
  /** Absent where it only decodes. */
  readonly encode?: Run;
  /** Puts chunks where they would lie when they are worked on; absent: anywhere. */
  readonly place?: (chunks: readonly Uint8Array[]) => readonly Uint8Array[];
}

/** What a runner is made for: the chunks of a job. */
type Chunks = Pick<ChunksJob, "codec" | "itemSize" | "decodedByteLength">;

/** Makes a runner of a codec; undefined where there is no such codec. */
type MakeRunner = (chunks: Chunks) => Promise<CodecRunner | undefined>;

/** Who runs codecs in a Node process, by name. */
export const RUNNERS = {
  ours,
  "numcodecs.js": numcodecsJs,
  "node:zlib": nodeZlibRunner,
} as const satisfies Record<string, MakeRunner>;

/** One of `RUNNERS`. */
export type RunnerName = keyof typeof RUNNERS;

/** Beyond the chunks that wait for their turn: for what is done with one of them. */
const WORK_BYTES = 16 * 2 ** 20;

/**
 * As a worker calls them, checks of lengths included: from memory of the kernel, which it reads files into, to such
 * memory, which is used again for the next.
 */
async function ours(chunks: Chunks): Promise<CodecRunner | undefined> {
  let memory = leaseAgain();
  let mark = memory.mark();
  const runner = runnerIn(chunks, () => {
    memory.rewind(mark);
    return memory;
  });
  return (
    runner && {
      ...runner,
      place(chunks) {
        // It grows when nothing lies in it, to what did not fit.
        leaseAgain().allocate(chunks.reduce((sum, { length }) => sum + length, WORK_BYTES));
        memory = leaseAgain();
        const placed = chunks.map((chunk) => {
          const place = memory.allocate(chunk.length);
          place.set(chunk);
          return place;
        });
        mark = memory.mark();
        return placed;
      },
    }
  );
}

let lease: KernelLease | undefined;

/** The kernel's memory is for one task at a time: the last one's is given back. */
function leaseAgain(): KernelLease {
  lease?.end();
  lease = currentKernel().lease();
  return lease;
}

function runnerIn(
  { codec, itemSize, decodedByteLength }: Chunks,
  memory: () => KernelMemory,
): CodecRunner | undefined {
  const step: CodecStep = {
    codec: completeCodec(codec),
    decodedByteLength,
    maxDecodedByteLength: decodedByteLength,
    itemSize,
  };
  const own = CODECS[codec.id];
  if (own === undefined) return undefined;
  const decode: Run = (bytes) => decodeSteps(bytes, [step], "a chunk", memory());
  return own.encode === undefined || encodedCodec(step.codec) !== step.codec
    ? { decode }
    : { decode, encode: (bytes) => encodeSteps(bytes, [step], "a chunk", memory()) };
}

async function numcodecsJs({ codec }: Chunks): Promise<CodecRunner | undefined> {
  const made = await loadNumcodecsJs(codec);
  return made && { decode: (bytes) => made.decode(bytes), encode: (bytes) => made.encode(bytes) };
}

/** Newer than the types this is built with. */
interface Zstd {
  zstdCompressSync?(bytes: Uint8Array, options: object): Uint8Array;
  zstdDecompressSync?(bytes: Uint8Array, options: object): Uint8Array;
  readonly constants: { readonly ZSTD_c_compressionLevel?: number };
}

async function nodeZlibRunner({ codec, decodedByteLength }: Chunks): Promise<CodecRunner | undefined> {
  const { level } = codec as { level?: number };
  // One buffer that the result fits: with the default of 16 KiB it is put together of pieces.
  const decodeOptions = { chunkSize: decodedByteLength + 64 };
  const encodeOptions = { level, chunkSize: decodedByteLength + 64 };
  if (codec.id === "gzip") {
    return {
      decode: (bytes) => nodeZlib.gunzipSync(bytes, decodeOptions),
      encode: (bytes) => nodeZlib.gzipSync(bytes, encodeOptions),
    };
  }
  if (codec.id === "zlib") {
    return {
      decode: (bytes) => nodeZlib.inflateSync(bytes, decodeOptions),
      encode: (bytes) => nodeZlib.deflateSync(bytes, encodeOptions),
    };
  }
  const { zstdCompressSync, zstdDecompressSync, constants } = nodeZlib as unknown as Zstd;
  if (codec.id !== "zstd" || zstdCompressSync === undefined || zstdDecompressSync === undefined)
    return undefined;
  const params = { [constants.ZSTD_c_compressionLevel ?? 0]: level };
  return {
    decode: (bytes) => zstdDecompressSync(bytes, decodeOptions),
    encode: (bytes) => zstdCompressSync(bytes, { params, chunkSize: decodedByteLength + 64 }),
  };
}
