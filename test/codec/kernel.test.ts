import fc from "fast-check";
import t from "tap";
import { encodeChunk, loadNumcodecsJs } from "../../bench/codecs/numcodecs-js.js";
import { createRandom } from "../../bench/random.js";
import { swapWords } from "../../src/codec/item-reader.js";
import { createKernel, type Kernel } from "../../src/codec/kernel/kernel.js";
import { OWN_MEMORY } from "../../src/codec/kernel/kernel-memory.js";
import {
  createWasmInstance,
  FREE_BEGIN,
  type KernelExports,
  TABLE_BEGIN,
} from "../../src/codec/kernel/wasm-memory.js";
import { decodeBlosclzBlock, decodeLz4Block } from "../../src/codec/plain/block-decoders.js";
import { unshuffleBits, unshuffleBytes } from "../../src/codec/plain/shuffles.js";
import { streamsOf } from "../support/codec/blosc-frame.js";
import { HOSTILE_BLOCKS } from "../support/codec/hostile-lz4.js";
import { MUTATION_KINDS, mutations } from "../support/codec/mutate-chunk.js";
import { SAMPLE_KINDS, sampleOf } from "../support/codec/sample-bytes.js";
import { reportFailures, stepOf } from "../support/codec/steps.js";
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

t.test("the kernel's shuffles and the plain ones agree", async () => {
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
});

t.test("words are turned round in the kernel's memory, or in a copy", async (t) => {
  fc.assert(
    fc.property(samples, fc.constantFrom(2, 4, 8), ({ bytes: all }, wordSize) => {
      const bytes = all.subarray(0, all.length - (all.length % wordSize));
      const before = bytes.slice();
      const expected = bytes.slice();
      swapWords(expected, wordSize);
      const copy = kernel.swappedWords(bytes, wordSize, OWN_MEMORY);
      if (!areEqual(copy, expected) || !areEqual(bytes, before)) return false;
      const lease = kernel.lease();
      try {
        const own = lease.allocate(bytes.length);
        own.set(bytes);
        return kernel.swappedWords(own, wordSize, lease) === own && areEqual(own, expected);
      } finally {
        lease.end();
      }
    }),
    { numRuns: RUNS },
  );
  t.pass();
});

t.test("the kernel's LZ4 blocks, whole and damaged, decode as the plain decoder decodes them", async () => {
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

/** What lies around source and target: once this, once that. */
const SURROUNDINGS = [0, 1];
const GAP_BYTES = 100;
/** So much behind the target is looked at: a decoder that lost its way writes far. */
const BEHIND_BYTES = 5000;
/** What is larger takes too long, or is not in the kernel's memory. */
const MAX_BYTES = 2 ** 16;

const DAMAGED_ROUNDS = effort(200);
const BYTE_LENGTHS = [0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 255, 1000, 4099, 8192];
const ITEM_SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 64, 255];
const SHUFFLES = ["shuffleBytes", "unshuffleBytes", "shuffleBits", "unshuffleBits"] as const;

/** What an operation says of itself, and what it leaves in its target. */
type Operation = (kernel: Kernel, source: Uint8Array, target: Uint8Array) => boolean | undefined;

t.test("decoders keep to their source and their target, whatever the bytes are", async (t) => {
  const failures: string[] = [];
  let count = 0;
  const check = (name: string, source: Uint8Array, targetLength: number, operation: Operation) => {
    if (source.length > MAX_BYTES || targetLength > MAX_BYTES) return;
    count++;
    const problem = problemOf(source, targetLength, operation);
    if (problem !== undefined) failures.push(`${name}: ${problem}`);
  };
  for (const { name, block, byteLength } of HOSTILE_BLOCKS) check(name, block(), byteLength, decodeLz4);
  for (const [index, kind] of SAMPLE_KINDS.entries()) {
    const sample = sampleOf(kind, 3000);
    const blosclz = { id: "blosc", cname: "blosclz", clevel: 9, shuffle: 0, blocksize: 0 };
    const frame = await encodeChunk(sample, stepOf(blosclz, sample.length));
    for (const [name, encoded, length, decode] of [
      ["LZ4", encodeLz4(sample), sample.length, decodeLz4] as const,
      ...[...streamsOf(frame)].map(
        ({ stream, place }) => ["BloscLZ", stream, place[1] - place[0], decodeBlosclz] as const,
      ),
    ]) {
      check(`${name} of ${kind}`, encoded, length, decode);
      const damaged = mutations(encoded, [], createRandom(index));
      for (let turn = 0; turn < DAMAGED_ROUNDS * MUTATION_KINDS.length; turn++) {
        const { kind: damage, bytes } = damaged.next().value;
        // Of another length as well: what fits into one target may not fit into the next.
        check(`${name} of ${kind}, ${damage}`, bytes, length - (turn % 3) * 7, decode);
      }
    }
  }
  reportFailures(t, failures, count);
});

t.test("shuffles keep to their source and their target", async (t) => {
  const failures: string[] = [];
  let count = 0;
  for (const name of SHUFFLES) {
    for (const itemSize of ITEM_SIZES) {
      for (const byteLength of BYTE_LENGTHS) {
        const problem = problemOf(
          sampleOf("noise", byteLength),
          byteLength,
          ({ [name]: shuffle }, from, to) => {
            shuffle(from, to, itemSize);
            return undefined;
          },
        );
        count++;
        if (problem !== undefined) failures.push(`${name} of ${byteLength} bytes by ${itemSize}: ${problem}`);
      }
    }
  }
  reportFailures(t, failures, count);
});

function decodeLz4(kernel: Kernel, source: Uint8Array, target: Uint8Array): boolean {
  return kernel.decodeLz4(source, target);
}

function decodeBlosclz(kernel: Kernel, source: Uint8Array, target: Uint8Array): boolean {
  return kernel.decodeBlosclz(source, target);
}

function encodeLz4(bytes: Uint8Array): Uint8Array {
  const target = new Uint8Array(bytes.length * 2);
  return target.slice(0, kernel.encodeLz4(bytes, target, 1));
}

/** What is wrong with an operation in the midst of other bytes; undefined: nothing. */
function problemOf(source: Uint8Array, targetLength: number, operation: Operation): string | undefined {
  const [first, second] = SURROUNDINGS.map((byte) => outcomeAmid(byte, source, targetLength, operation));
  if (first === undefined || second === undefined) return "wrote beside its target";
  return first === second ? undefined : "depends on what lies around it";
}

/** What comes of an operation, as text; undefined: it wrote beside its target. */
function outcomeAmid(
  byte: number,
  source: Uint8Array,
  targetLength: number,
  operation: Operation,
): string | undefined {
  const begin = GAP_BYTES + source.length + GAP_BYTES;
  const mark = kernel.memory.mark();
  const region = kernel.memory.allocate(begin + targetLength + BEHIND_BYTES).fill(byte);
  try {
    const expected = Buffer.from(region);
    expected.set(source, GAP_BYTES);
    region.set(source, GAP_BYTES);
    const target = region.subarray(begin, begin + targetLength);
    const result = operation(kernel, region.subarray(GAP_BYTES, GAP_BYTES + source.length), target);
    expected.set(region.subarray(begin, begin + targetLength), begin);
    if (!expected.equals(region)) return undefined;
    // If a decoder has failed, anything may be there.
    const written = result === false ? 0 : targetLength;
    return `${result} ${Buffer.from(target.subarray(0, written)).toString("latin1")}`;
  } finally {
    kernel.memory.rewind(mark);
  }
}

/** One of the kernel's encoders with its settings, and what undoes it. */
interface Encoder {
  readonly name: string;
  readonly encode: (source: number, length: number, target: number, capacity: number) => number;
  readonly decode: KernelExports["decodeLz4"];
}

const MAX_ENCODED_BYTES = 200_000;
/** So many bytes may be written behind the capacity, and read behind the source. */
const OVERRUN_BYTES = 16;
/** What memory is filled with that nobody may write into. */
const UNTOUCHED = 0xa5;
const GUARD_BYTES = 256;

const { exports: encodingKernel, bytes: memory } = createWasmInstance(4 * MAX_ENCODED_BYTES);

const KERNEL_ENCODERS: readonly Encoder[] = [1, 5].map((acceleration) => ({
  name: `LZ4, acceleration ${acceleration}`,
  encode: (source, length, target, capacity) =>
    encodingKernel.encodeLz4(source, length, target, capacity, acceleration, TABLE_BEGIN),
  decode: encodingKernel.decodeLz4,
}));

/** Where the source and the target lie: whoever goes too far beyond the last of them leaves the memory, which traps. */
const PLACES = ["source last", "target last"] as const;

/**
 * Encodes into a capacity and looks at everything around.
 * @returns What is wrong; undefined: nothing.
 */
function encodingProblem(
  { encode, decode }: Encoder,
  bytes: Uint8Array,
  capacity: number,
  place: (typeof PLACES)[number],
): string | undefined {
  const first = FREE_BEGIN + GUARD_BYTES;
  const isSourceLast = place === "source last";
  const source = isSourceLast ? memory.length - OVERRUN_BYTES - bytes.length : first;
  const target = isSourceLast ? first : memory.length - OVERRUN_BYTES - capacity;
  const decoded = first + MAX_ENCODED_BYTES + 2 * GUARD_BYTES;
  memory.set(bytes, source);
  const before = memory.subarray(target - GUARD_BYTES, target);
  const behind = memory.subarray(
    target + capacity + OVERRUN_BYTES,
    target + capacity + OVERRUN_BYTES + GUARD_BYTES,
  );
  before.fill(UNTOUCHED);
  behind.fill(UNTOUCHED);

  let length: number;
  try {
    length = encode(source, bytes.length, target, capacity);
  } catch (error) {
    return `expected no access outside, received ${String(error)}`;
  }
  if (length < 0 || length > capacity) return `expected at most ${capacity} bytes, received ${length}`;
  if (![before, behind].every((guard) => guard.every((byte) => byte === UNTOUCHED)))
    return "wrote outside of its place";
  if (Buffer.compare(memory.subarray(source, source + bytes.length), bytes) !== 0)
    return "changed its source";
  if (length === 0) return undefined;
  const isWhole = decode(target, target + length, decoded, decoded + bytes.length) === 1;
  return isWhole && Buffer.compare(memory.subarray(decoded, decoded + bytes.length), bytes) === 0
    ? undefined
    : "expected the bytes that were encoded, received others";
}

t.test("the kernel's encoders keep to every capacity, and what fits decodes to the same bytes", async (t) => {
  const reaches = [4095, 16_385, 65_535, 65_536, 65_547, 65_548, 131_073, MAX_ENCODED_BYTES];
  const cases = [
    ...Array.from({ length: 421 }, (_, capacity) => ({ length: 420, capacity })),
    ...[...Array(100).keys(), ...reaches].flatMap((length) =>
      [length, length >> 1, length >> 3].map((capacity) => ({ length, capacity })),
    ),
  ];
  const failures: string[] = [];
  for (const kind of SAMPLE_KINDS) {
    for (const { length, capacity } of cases) {
      const bytes = sampleOf(kind, length, 1, length);
      for (const encoder of KERNEL_ENCODERS) {
        for (const place of PLACES) {
          const problem = encodingProblem(encoder, bytes, capacity, place);
          const name = `${encoder.name}: ${length} ${kind} bytes into ${capacity}, ${place}`;
          if (problem) failures.push(`${name}: ${problem}`);
        }
      }
    }
  }
  reportFailures(t, failures, cases.length);
});
