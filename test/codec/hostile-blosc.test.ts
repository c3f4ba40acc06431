import t, { type Test } from "tap";
import { decodeSteps } from "../../src/codec/run-steps.js";
import { ZpublishError } from "../../src/errors.js";
import type { CodecSpec } from "../../src/zarr/codec-step.js";
import { clientMissing } from "../support/clients/require-client.js";
import { bloscFrame, uint32 } from "../support/codec/blosc-frame.js";
import { DAMAGED_FRAMES } from "../support/codec/damaged-frames.js";
import { LZ4, packed } from "../support/codec/hostile-frame.js";
import { HOSTILE_BLOCKS, type HostileBlock } from "../support/codec/hostile-lz4.js";
import { streamNative } from "../support/codec/native-numcodecs.js";
import { reportFailures } from "../support/codec/report-failures.js";
import { stepOf } from "../support/codec/step.js";
import { UNUSUAL_FRAMES } from "../support/codec/unusual-frames.js";

t.setTimeout(240_000);

const skip = clientMissing("numcodecs");

const CHUNK_NAME = "array 'a': stored chunk 0.1";

/** A chunk of any codec, and what must come of it. */
interface HostileChunk {
  readonly name: string;
  readonly codec: CodecSpec;
  readonly chunk: Uint8Array;
  readonly byteLength: number;
  readonly gives: Uint8Array | "corrupt";
  readonly mayBeRefused?: boolean;
  readonly notNative?: string | undefined;
}

t.test("unusual Blosc chunks decode", (t) => checkHere(t, bloscChunks(UNUSUAL_FRAMES)));

t.test("damaged Blosc chunks are corrupt, by name", (t) => checkHere(t, bloscChunks(DAMAGED_FRAMES)));

t.test("hand-made LZ4 blocks decode or are corrupt, alone and in Blosc", (t) => checkHere(t, lz4Chunks()));

t.test("native numcodecs does the same", { skip }, async (t) => {
  const failures: string[] = [];
  let count = 0;
  for await (const { job, bytes, refusal } of streamNative(nativeJobs())) {
    count++;
    if (job.gives === "corrupt") {
      if (bytes !== undefined) failures.push(`${job.name}: decoded`);
    } else if (bytes === undefined) failures.push(`${job.name}: ${refusal}`);
    else if (!bytes.equals(job.gives)) failures.push(`${job.name}: other bytes`);
  }
  reportFailures(t, failures, count);
});

async function checkHere(t: Test, chunks: Iterable<HostileChunk>): Promise<void> {
  const failures: string[] = [];
  let count = 0;
  for (const { name, codec, chunk, byteLength, gives, mayBeRefused = false } of chunks) {
    count++;
    const [view, surroundings] = amidOthers(chunk);
    try {
      const decoded = await decodeSteps(view, [stepOf(codec, byteLength)], CHUNK_NAME);
      if (gives === "corrupt") failures.push(`${name}: decoded`);
      else if (Buffer.compare(decoded, gives) !== 0) failures.push(`${name}: other bytes`);
    } catch (error) {
      const isNamed =
        error instanceof ZpublishError &&
        error.code === "corrupt-chunk" &&
        error.message.startsWith(`${CHUNK_NAME}: `);
      if (!isNamed || (gives !== "corrupt" && !mayBeRefused)) failures.push(`${name}: ${error}`);
    }
    if (!surroundings.equals(amidOthers(chunk)[1])) failures.push(`${name}: the chunk was changed`);
  }
  reportFailures(t, failures, count);
}

/** A chunk as a view of memory that has more in it, and all of that memory. */
function amidOthers(chunk: Uint8Array): [Uint8Array, Buffer] {
  const all = Buffer.concat([new Uint8Array(37).fill(1), chunk, new Uint8Array(64).fill(1)]);
  return [all.subarray(37, 37 + chunk.length), all];
}

function* bloscChunks(frames: readonly Omit<HostileChunk, "codec">[]): Generator<HostileChunk> {
  for (const frame of frames) yield { ...frame, codec: { id: "blosc" } };
}

/** Every block as a chunk of the codec `lz4`, as a Blosc chunk, and as the second block of one. */
function* lz4Chunks(): Generator<HostileChunk> {
  for (const one of HOSTILE_BLOCKS) {
    const block = one.block();
    const { byteLength } = one;
    yield { ...one, codec: { id: "lz4" }, chunk: Buffer.concat([uint32(byteLength), block]) };
    // Blosc takes a stream as long as its block for a copy.
    if (block.length === byteLength) continue;
    yield {
      ...one,
      name: `${one.name}, in Blosc`,
      codec: { id: "blosc" },
      chunk: bloscFrame({ flags: LZ4, byteLength, blocks: [[block]] }),
    };
    yield secondBlock(one, block);
  }
}

/** Whoever looks for the start of a chunk, not of the block, finds bytes before it. */
function secondBlock(one: HostileBlock, block: Uint8Array): HostileChunk {
  const first = new Uint8Array(one.byteLength).fill(77);
  return {
    ...one,
    name: `${one.name}, in Blosc, second block`,
    codec: { id: "blosc" },
    chunk: bloscFrame({
      flags: LZ4,
      byteLength: 2 * one.byteLength,
      blockSize: one.byteLength,
      blocks: [[packed(first)], [block]],
    }),
    byteLength: 2 * one.byteLength,
    gives: one.gives === "corrupt" ? "corrupt" : Buffer.concat([first, one.gives]),
  };
}

function* nativeJobs() {
  for (const chunks of [bloscChunks(UNUSUAL_FRAMES), bloscChunks(DAMAGED_FRAMES), lz4Chunks()]) {
    for (const one of chunks) {
      if (one.notNative !== undefined || one.mayBeRefused === true) continue;
      yield { ...one, operation: "decode" as const, bytes: one.chunk };
    }
  }
}
