import fc from "fast-check";
import t from "tap";
import { createRandom } from "../../bench/random.js";
import { setKernelUse } from "../../src/codec/kernel/kernel-use.js";
import { decodeSteps, encodeSteps } from "../../src/codec/run-steps.js";
import { ZpublishError } from "../../src/errors.js";
import type { CodecSpec } from "../../src/zarr/codec-spec.js";
import type { CodecStep } from "../../src/zarr/encoding-plan.js";
import { bloscFrame } from "./blosc-frame.js";
import { DAMAGED_FRAMES } from "./damaged-frames.js";
import { LZ4 } from "./hostile-frame.js";
import { HOSTILE_BLOCKS } from "./hostile-lz4.js";
import { MUTATION_KINDS, mutations } from "./mutate-chunk.js";
import { reportFailures } from "./report-failures.js";
import { SAMPLE_KINDS, sampleOf } from "./sample-bytes.js";
import { stepOf } from "./step.js";
import { UNUSUAL_FRAMES } from "./unusual-frames.js";

t.setTimeout(240_000);

const RUNS = 1200;
const DAMAGED_RUNS = 250;
/** Every mutation so many times. */
const ROUNDS = 2;

t.teardown(() => setKernelUse(true));

const itemSizes = fc.oneof(fc.constantFrom(1, 2, 4, 8), fc.integer({ min: 1, max: 300 }));

const codecs: fc.Arbitrary<CodecSpec> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      id: fc.constant("blosc"),
      cname: fc.oneof(fc.constant("lz4"), fc.constantFrom("lz4hc", "blosclz", "zlib", "zstd")),
      // The slowest levels of zstd would take all the time there is.
      clevel: fc.integer({ min: 0, max: 7 }),
      shuffle: fc.integer({ min: -1, max: 2 }),
      blocksize: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 20_000 })),
    }),
  },
  fc.record({
    id: fc.constant("lz4"),
    acceleration: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 70_000 })),
  }),
  fc.record({ id: fc.constant("shuffle"), elementsize: itemSizes }),
  fc.record({ id: fc.constantFrom("zstd", "gzip", "zlib"), level: fc.integer({ min: 1, max: 6 }) }),
  fc.record({ id: fc.constantFrom("adler32", "crc32", "crc32c") }),
);

/** A codec, and bytes for it; they begin wherever a view may. */
const chunks = fc
  .record({
    codec: codecs,
    itemSize: itemSizes,
    kind: fc.constantFrom(...SAMPLE_KINDS),
    byteLength: fc.oneof(fc.nat(40), fc.nat(3000), fc.nat(200_000)),
    seed: fc.nat(1_000_000),
    offset: fc.nat(17),
  })
  .map(({ codec, itemSize, kind, byteLength, seed, offset }) => {
    const unit = typeof codec.elementsize === "number" ? codec.elementsize : 1;
    const sample = sampleOf(kind, byteLength - (byteLength % unit), itemSize, seed);
    const bytes = new Uint8Array(offset + sample.length).subarray(offset);
    bytes.set(sample);
    return { step: stepOf(codec, bytes.length, itemSize), bytes, seed };
  });

t.test("with the kernel and without it, a chunk encodes to what the other decodes", async () => {
  await fc.assert(
    fc.asyncProperty(chunks, fc.boolean(), async ({ step, bytes }, isOn) => {
      setKernelUse(isOn);
      const encoded = await encodeSteps(bytes, [step], "x");
      const sameWay = await decodeSteps(encoded, [step], "x");
      setKernelUse(!isOn);
      const otherWay = await decodeSteps(encoded, [step], "x");
      return Buffer.compare(sameWay, bytes) === 0 && Buffer.compare(otherWay, bytes) === 0;
    }),
    { numRuns: RUNS },
  );
});

t.test("with the kernel and without it, the same damaged chunks are corrupt", async () => {
  await fc.assert(
    fc.asyncProperty(chunks, async ({ step, bytes, seed }) => {
      setKernelUse(true);
      const encoded = await encodeSteps(bytes, [step], "x");
      const damaged = mutations(encoded, [], createRandom(seed));
      for (let count = ROUNDS * MUTATION_KINDS.length; count > 0; count--) {
        const { kind, bytes: chunk } = damaged.next().value;
        const problem = await differenceOf(chunk, step);
        if (problem !== undefined) throw new Error(`${kind}: ${problem}`);
      }
    }),
    { numRuns: DAMAGED_RUNS },
  );
});

t.test("with the kernel and without it, the same hand-made chunks are corrupt", async (t) => {
  const failures: string[] = [];
  let count = 0;
  for (const { name, chunk, byteLength } of handMade()) {
    count++;
    const difference = await differenceOf(chunk, stepOf({ id: "blosc" }, byteLength));
    if (difference !== undefined) failures.push(`${name}: ${difference}`);
  }
  reportFailures(t, failures, count);
});

function* handMade() {
  yield* UNUSUAL_FRAMES;
  yield* DAMAGED_FRAMES;
  for (const { name, block, byteLength } of HOSTILE_BLOCKS) {
    yield { name, chunk: bloscFrame({ flags: LZ4, byteLength, blocks: [[block()]] }), byteLength };
  }
}

/** How the outcomes with and without the kernel differ; undefined: they do not. */
async function differenceOf(chunk: Uint8Array, step: CodecStep): Promise<string | undefined> {
  setKernelUse(true);
  const withKernel = await outcomeOf(chunk, step);
  setKernelUse(false);
  const without = await outcomeOf(chunk, step);
  if (typeof withKernel === "string" || typeof without === "string") {
    return withKernel === without ? undefined : `with it ${said(withKernel)}, without it ${said(without)}`;
  }
  return Buffer.compare(withKernel, without) === 0 ? undefined : "other bytes";
}

/** The bytes, or the code of the error. */
async function outcomeOf(chunk: Uint8Array, step: CodecStep): Promise<Uint8Array | string> {
  try {
    return new Uint8Array(await decodeSteps(chunk, [step], "x"));
  } catch (error) {
    if (error instanceof ZpublishError) return error.code;
    throw error;
  }
}

function said(outcome: Uint8Array | string): string {
  return typeof outcome === "string" ? outcome : `${outcome.length} bytes`;
}
