import fc from "fast-check";
import t from "tap";
import { loadNumcodecsJs } from "../../bench/codecs/numcodecs-js.js";
import { createRandom } from "../../bench/random.js";
import { createKernel } from "../../src/codec/kernel/kernel.js";
import { decodeBlosclzBlock, decodeLz4Block } from "../../src/codec/plain/block-decoders.js";
import { unshuffleBits, unshuffleBytes } from "../../src/codec/plain/shuffles.js";
import { streamsOf } from "../support/codec/blosc-frame.js";
import { HOSTILE_BLOCKS } from "../support/codec/hostile-lz4.js";
import { MUTATION_KINDS, mutations } from "../support/codec/mutate-chunk.js";
import { reportFailures } from "../support/codec/report-failures.js";
import { SAMPLE_KINDS, sampleOf } from "../support/codec/sample-bytes.js";
import { effort } from "../support/effort.js";

t.setTimeout(240_000);

const RUNS = effort(5_000);
const DAMAGED_RUNS = effort(1_000);
/** How many times each mutation is applied. */
const ROUNDS = 2;

const kernel = createKernel();

type Decode = (source: Uint8Array, target: Uint8Array) => boolean;

/** A decoder of the kernel, and the plain one that it is proved against. */
interface Pair {
  readonly kernel: Decode;
  readonly plain: Decode;
}

const LZ4: Pair = { kernel: kernel.decodeLz4, plain: decodeLz4Block };
const BLOSCLZ: Pair = { kernel: kernel.decodeBlosclz, plain: decodeBlosclzBlock };

const samples = fc
  .record({
    kind: fc.constantFrom(...SAMPLE_KINDS),
    byteLength: fc.oneof(fc.nat(40), fc.nat(3000), fc.nat(200_000)),
    itemSize: fc.oneof(fc.constantFrom(1, 2, 4, 8), fc.integer({ min: 1, max: 300 })),
    seed: fc.nat(1_000_000),
    offset: fc.nat(17),
  })
  .map(({ kind, byteLength, itemSize, seed, offset }) => {
    // A view may begin anywhere.
    const bytes = new Uint8Array(offset + byteLength).subarray(offset);
    bytes.set(sampleOf(kind, byteLength, itemSize, seed));
    return { bytes, itemSize, seed };
  });

t.test("the kernel's shuffles and the plain ones agree", (t) => {
  fc.assert(
    fc.property(samples, ({ bytes, itemSize }) => {
      for (const [shuffle, unshuffle, plain] of [
        [kernel.shuffleBytes, kernel.unshuffleBytes, unshuffleBytes],
        [kernel.shuffleBits, kernel.unshuffleBits, unshuffleBits],
      ] as const) {
        const shuffled = new Uint8Array(bytes.length);
        shuffle(bytes, shuffled, itemSize);
        const outcomes = [kernel, plain].map(() => new Uint8Array(bytes.length + 1).subarray(1));
        const [ours, expected] = outcomes as [Uint8Array, Uint8Array];
        plain(shuffled, expected, itemSize);
        if (!areEqual(expected, bytes)) return false;
        unshuffle(bytes, ours, itemSize);
        plain(bytes, expected, itemSize);
        if (!areEqual(ours, expected)) return false;
      }
      return true;
    }),
    { numRuns: RUNS },
  );
  t.end();
});

t.test("the kernel's LZ4 blocks, whole and damaged, decode as the plain decoder decodes them", (t) => {
  const encode = (bytes: Uint8Array, seed: number) => {
    const target = new Uint8Array(bytes.length + Math.ceil(bytes.length / 255) + 16);
    return target.slice(0, kernel.encodeLz4(bytes, target, 1 + (seed % 30)));
  };
  fc.assert(
    fc.property(samples, ({ bytes, seed }) => {
      const block = encode(bytes, seed);
      return decodesTo(LZ4, block, bytes);
    }),
    { numRuns: RUNS },
  );
  fc.assert(
    fc.property(samples, ({ bytes, seed }) => {
      checkDamaged(LZ4, encode(bytes, seed), bytes.length, seed);
    }),
    { numRuns: DAMAGED_RUNS },
  );
  t.end();
});

t.test(
  "BloscLZ streams of numcodecs.js, whole and damaged, decode as the plain decoder decodes them",
  async () => {
    await fc.assert(
      fc.asyncProperty(samples, fc.integer({ min: 1, max: 9 }), async ({ bytes, seed }, clevel) => {
        const codec = { id: "blosc", cname: "blosclz", clevel, shuffle: 0, blocksize: 0 };
        if (bytes.length === 0) return;
        const frame = await (await loadNumcodecsJs(codec))?.encode(bytes);
        for (const { stream, place } of streamsOf(frame as Uint8Array)) {
          const original = bytes.subarray(...place);
          if (!decodesTo(BLOSCLZ, stream, original)) throw new Error("other bytes");
          checkDamaged(BLOSCLZ, stream, original.length, seed);
        }
      }),
      { numRuns: DAMAGED_RUNS },
    );
  },
);

t.test("hand-made LZ4 blocks decode as the plain decoder decodes them", async (t) => {
  const failures: string[] = [];
  for (const { name, block, byteLength } of HOSTILE_BLOCKS) {
    const difference = differenceOf(LZ4, block(), byteLength);
    if (difference !== undefined) failures.push(`${name}: ${difference}`);
  }
  reportFailures(t, failures, HOSTILE_BLOCKS.length);
});

function decodesTo(pair: Pair, block: Uint8Array, bytes: Uint8Array): boolean {
  return [pair.kernel, pair.plain].every((decode) => {
    const target = new Uint8Array(bytes.length);
    return decode(block, target) && areEqual(target, bytes);
  });
}

function checkDamaged(pair: Pair, block: Uint8Array, byteLength: number, seed: number): void {
  const damaged = mutations(block, [], createRandom(seed));
  for (let count = ROUNDS * MUTATION_KINDS.length; count > 0; count--) {
    const { kind, bytes } = damaged.next().value;
    const difference = differenceOf(pair, bytes, byteLength);
    if (difference !== undefined) throw new Error(`${kind}: ${difference}`);
  }
}

/** How the outcomes of both decoders differ; undefined if they agree. */
function differenceOf(pair: Pair, block: Uint8Array, byteLength: number): string | undefined {
  const [ours, expected] = [new Uint8Array(byteLength), new Uint8Array(byteLength)];
  const isWhole = pair.kernel(block, ours);
  if (pair.plain(block, expected) !== isWhole)
    return `the kernel ${isWhole ? "decodes" : "refuses"} it alone`;
  return isWhole && !areEqual(ours, expected) ? "other bytes" : undefined;
}

function areEqual(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
