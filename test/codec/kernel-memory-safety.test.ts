import t from "tap";
import { encodeChunk } from "../../bench/codecs/numcodecs-js.js";
import { createRandom } from "../../bench/random.js";
import { currentKernel } from "../../src/codec/kernel/kernel.js";
import { decodeSteps } from "../../src/codec/run-steps.js";
import { ZpublishError } from "../../src/errors.js";
import type { CodecSpec, CodecStep } from "../../src/zarr/codec-step.js";
import { bloscFrame } from "../support/codec/blosc-frame.js";
import { DAMAGED_FRAMES } from "../support/codec/damaged-frames.js";
import { LZ4 } from "../support/codec/hostile-frame.js";
import { HOSTILE_BLOCKS } from "../support/codec/hostile-lz4.js";
import { MUTATION_KINDS, mutations } from "../support/codec/mutate-chunk.js";
import { reportFailures } from "../support/codec/report-failures.js";
import { SAMPLE_KINDS, sampleOf } from "../support/codec/sample-bytes.js";
import { stepOf } from "../support/codec/step.js";
import { UNUSUAL_FRAMES } from "../support/codec/unusual-frames.js";
import { effort } from "../support/effort.js";

t.setTimeout(240_000);

/** Every mutation so many times, for each good chunk. */
const ROUNDS = effort(60);
const BYTE_LENGTH = 6048;
const ITEM_SIZES = [1, 2, 3, 4, 8, 16];

/** More than any of these chunks needs. */
const POISONED_BYTES = 2 ** 17;
const CANARY_BYTES = 512;
/** Larger ones are not in the kernel's memory, or are all of it. */
const MAX_CHUNK_BYTES = 2 ** 16;

const FUZZED: CodecSpec[] = [
  ...["lz4", "lz4hc", "blosclz", "zlib"].flatMap((cname) =>
    [0, 1, 2].flatMap((shuffle) =>
      [0, 512].map((blocksize) => ({ id: "blosc", cname, clevel: 5, shuffle, blocksize })),
    ),
  ),
  { id: "lz4", acceleration: 1 },
  ...[2, 3, 8].map((elementsize) => ({ id: "shuffle", elementsize })),
];

/** A chunk, good or not. */
interface Case {
  readonly name: string;
  readonly step: CodecStep;
  readonly chunk: Uint8Array;
}

t.test("no chunk touches what lies beside it in the kernel, or shows what lay there before", async (t) => {
  const failures: string[] = [];
  let count = 0;
  for await (const { name, step, chunk } of cases()) {
    if (chunk.length > MAX_CHUNK_BYTES) continue;
    count++;
    const amidZeros = await decodeAmid(chunk, step, 0);
    // Ones make offsets that reach back 257 bytes, which is good where zeros are not.
    const amidOnes = await decodeAmid(chunk, step, 1);
    if (!amidZeros.isUntouched || !amidOnes.isUntouched) failures.push(`${name}: wrote beside its memory`);
    if (amidZeros.outcome !== amidOnes.outcome) {
      failures.push(`${name}: the outcome depends on what was in memory before`);
    }
  }
  reportFailures(t, failures, count);
});

async function* cases(): AsyncGenerator<Case> {
  for (const { name, chunk, byteLength } of [...UNUSUAL_FRAMES, ...DAMAGED_FRAMES]) {
    yield { name, chunk, step: stepOf({ id: "blosc" }, byteLength) };
  }
  for (const { name, block, byteLength } of HOSTILE_BLOCKS) {
    const chunk = bloscFrame({ flags: LZ4, byteLength, blocks: [[block()]] });
    yield { name, chunk, step: stepOf({ id: "blosc" }, byteLength) };
  }
  for (const [index, codec] of FUZZED.entries()) {
    const itemSize = ITEM_SIZES[index % ITEM_SIZES.length]!;
    const step = stepOf(codec, BYTE_LENGTH, itemSize);
    const sample = sampleOf(SAMPLE_KINDS[index % SAMPLE_KINDS.length]!, BYTE_LENGTH, itemSize);
    const encoded = await encodeChunk(sample, step);
    const damaged = mutations(encoded, [], createRandom(index + 1));
    for (let turn = 0; turn < ROUNDS * MUTATION_KINDS.length; turn++) {
      const { kind, bytes } = damaged.next().value;
      yield { name: `${JSON.stringify(codec)}, ${kind}, turn ${turn}`, step, chunk: bytes };
    }
  }
}

/** Decodes a chunk in the kernel's memory, where all that is free holds one byte. */
async function decodeAmid(chunk: Uint8Array, step: CodecStep, poison: number) {
  const lease = currentKernel().lease();
  try {
    const mark = lease.mark();
    lease.allocate(POISONED_BYTES).fill(poison);
    lease.rewind(mark);
    const before = lease.allocate(CANARY_BYTES).fill(7);
    const inside = lease.allocate(chunk.length);
    inside.set(chunk);
    const behind = lease.allocate(CANARY_BYTES).fill(7);
    if (inside.buffer !== behind.buffer) throw new Error("expected all of it to lie in the kernel");
    const outcome = await outcomeOf(() => decodeSteps(inside, [step], "x", lease));
    const isUntouched =
      [...before, ...behind].every((byte) => byte === 7) && Buffer.compare(inside, chunk) === 0;
    return { outcome, isUntouched };
  } finally {
    lease.end();
  }
}

/** The bytes as text, or the code of the error. */
async function outcomeOf(decode: () => Promise<Uint8Array>): Promise<string> {
  try {
    return Buffer.from(await decode()).toString("latin1");
  } catch (error) {
    if (error instanceof ZpublishError) return error.code;
    throw error;
  }
}
