import t, { type Test } from "tap";
import { createRandom } from "../../bench/random.js";
import { createKernel, currentKernel } from "../../src/codec/kernel/kernel.js";
import { lz4 } from "../../src/codec/lz4.js";
import { makeChunk } from "../../src/codec/make-chunk.js";
import { decodeSteps } from "../../src/codec/run-steps.js";
import { ZpublishError } from "../../src/errors.js";
import type { ChunkReader } from "../../src/zarr/chunk-reader.js";
import type { CodecSpec } from "../../src/zarr/codec-step.js";
import { createEncodingPlan } from "../../src/zarr/plan/create-encoding-plan.js";
import { clientMissing } from "../support/clients/require-client.js";
import { bloscFrame, uint32 } from "../support/codec/blosc-frame.js";
import { DAMAGED_FRAMES, LZ4, packed, UNUSUAL_FRAMES } from "../support/codec/hostile-frame.js";
import { HOSTILE_BLOCKS, type HostileBlock } from "../support/codec/hostile-lz4.js";
import { streamNative } from "../support/codec/native-numcodecs.js";
import { reportFailures, stepOf } from "../support/codec/steps.js";
import { storedArray } from "../support/datasets/stored-array.js";
import { arrayBytes, readerOf } from "../support/datasets/stored-chunks.js";

t.setTimeout(240_000);

const MIB = 2 ** 20;

t.test("one lease at a time; others have memory of their own", async (t) => {
  const kernel = createKernel();
  const first = kernel.lease();
  const bytes = first.allocate(100).fill(7);
  const other = kernel.lease();
  const apart = other.allocate(100);
  t.not(apart.buffer, bytes.buffer);
  t.equal(apart.byteLength, apart.buffer.byteLength);
  other.end();
  t.not(kernel.lease().allocate(100).buffer, bytes.buffer, "ending the other ends nothing of the first");
  t.ok(bytes.every((byte) => byte === 7));
  first.end();
  t.equal(kernel.lease().allocate(100).buffer, bytes.buffer);
});

t.test("memory grows to what was wanted once nothing is allocated, up to its bound", async (t) => {
  const kernel = createKernel();
  const first = kernel.lease();
  const small = first.allocate(10).fill(3);
  const large = first.allocate(20 * MIB);
  t.not(large.buffer, small.buffer, "no room: memory of its own");
  t.equal(large.length, 20 * MIB);
  first.end();
  const second = kernel.lease();
  const again = second.allocate(10);
  t.equal(second.allocate(20 * MIB).buffer, again.buffer, "now there is room");
  t.same([...small], Array(10).fill(3), "an old view is still what it was");
  const tooLarge = second.allocate(200 * MIB);
  t.not(tooLarge.buffer, again.buffer);
  second.end();
  const third = kernel.lease();
  const bounded = third.allocate(10);
  t.ok(bounded.buffer.byteLength <= 97 * MIB, "no more than the bound is kept");
  third.end();
});

t.test("a lease ends once, and a mark is gone back to once", async (t) => {
  const kernel = createKernel();
  const first = kernel.lease();
  first.end();
  const second = kernel.lease();
  const kept = second.allocate(10).fill(1);
  first.end();
  t.not(kernel.lease().allocate(10).buffer, kept.buffer, "the second is still leased");
  t.throws(() => first.allocate(10), /lease that has not ended/);
  const mark = kernel.memory.mark();
  second.end();
  t.throws(() => kernel.memory.rewind(mark), /expected a mark of at most/);
});

t.test(
  "chunks that are made at the same time on one thread do not get into each other's memory",
  async (t) => {
    for (const encoder of ["lz4", "zlib"]) {
      const stored = storedArray({
        shape: [16, 65_536],
        chunkShape: [1, 65_536],
        codecs: [{ id: "blosc", cname: "lz4", clevel: 5, shuffle: 1, blocksize: 0 }],
        axisOrder: [0, 1],
      });
      const whole = await readerOf(stored, arrayBytes(stored.shape, stored.dataType.itemSize));
      const random = createRandom(7);
      const wait = async (turns: number) => {
        for (let turn = Math.floor(random() * turns); turn > 0; turn--) await undefined;
      };
      const reader: ChunkReader = {
        ...whole,
        async read(coords, options) {
          await wait(5);
          const chunk = await whole.read(coords);
          if (chunk === undefined) return undefined;
          const bytes = options?.allocate?.(chunk.bytes.length) ?? new Uint8Array(chunk.bytes.length);
          bytes.set(chunk.bytes);
          return { ...chunk, bytes };
        },
      };
      const compressor = { id: "blosc", cname: encoder, clevel: 1, shuffle: 1, blocksize: 0 };
      const { plan } = createEncodingPlan(stored, { compressor, chunkShape: [2, 65_536] });
      const bytesOf = async (row: number) => {
        const made = await makeChunk(plan, [row, 0], reader);
        return made.status === "encoded" ? Buffer.from(made.bytes) : Buffer.alloc(0);
      };
      const top = currentKernel().memory.mark();
      const expected: Buffer[] = [];
      for (let row = 0; row < 8; row++) expected.push(await bytesOf(row));
      for (let round = 0; round < 10; round++) {
        const made = await Promise.all(expected.map((_, row) => wait(9).then(() => bytesOf(row))));
        made.forEach((bytes, row) => {
          if (!bytes.equals(expected[row]!)) t.fail(`${encoder}: round ${round}, row ${row}`);
        });
      }
      t.equal(currentKernel().memory.mark(), top, `${encoder}: all of it is given back`);
    }
  },
);

t.test("more than the kernel keeps memory for is encoded and decoded all the same", async (t) => {
  const pattern = new Uint8Array(MIB).map((_, index) => (index >> 4) % 251);
  const bytes = new Uint8Array(100 * MIB);
  for (let at = 0; at < bytes.length; at += MIB) bytes.set(pattern, at);
  const step = stepOf({ id: "lz4", acceleration: 1 }, bytes.length);
  const encoded = await lz4.encode?.(bytes, step);
  t.ok(encoded !== undefined && encoded.length < bytes.length / 2);
  const decoded = await lz4.decode(encoded as Uint8Array, step);
  t.equal(Buffer.compare(decoded, bytes), 0);
});

const skip = clientMissing("numcodecs");

const CHUNK_NAME = "array 'a': stored chunk 0.1";
const POISONED_BYTES = 2 ** 17;

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
    const lease = currentKernel().lease();
    try {
      // Bytes of earlier chunks, which must not show in this one.
      const mark = lease.mark();
      lease.allocate(POISONED_BYTES).fill(1);
      lease.rewind(mark);
      const decoded = await decodeSteps(view, [stepOf(codec, byteLength)], CHUNK_NAME, lease);
      if (gives === "corrupt") failures.push(`${name}: decoded`);
      else if (Buffer.compare(decoded, gives) !== 0) failures.push(`${name}: other bytes`);
    } catch (error) {
      const isNamed =
        error instanceof ZpublishError &&
        error.code === "corrupt-chunk" &&
        error.message.startsWith(`${CHUNK_NAME}: `);
      if (!isNamed || (gives !== "corrupt" && !mayBeRefused)) failures.push(`${name}: ${error}`);
    } finally {
      lease.end();
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
