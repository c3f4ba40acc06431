import t from "tap";
import { encodeChunk } from "../../bench/codecs/numcodecs-js.js";
import { createRandom } from "../../bench/random.js";
import { createKernel, type Kernel } from "../../src/codec/kernel/kernel.js";
import { streamsOf } from "../support/codec/blosc-frame.js";
import { HOSTILE_BLOCKS } from "../support/codec/hostile-lz4.js";
import { MUTATION_KINDS, mutations } from "../support/codec/mutate-chunk.js";
import { reportFailures } from "../support/codec/report-failures.js";
import { SAMPLE_KINDS, sampleOf } from "../support/codec/sample-bytes.js";
import { stepOf } from "../support/codec/step.js";
import { effort } from "../support/effort.js";

t.setTimeout(240_000);

/** What lies around source and target: once this, once that. */
const SURROUNDINGS = [0, 1];
const GAP_BYTES = 100;
/** So much behind the target is looked at: a decoder that lost its way writes far. */
const BEHIND_BYTES = 5000;
/** What is larger takes too long, or is not in the kernel's memory. */
const MAX_BYTES = 2 ** 16;

const ROUNDS = effort(200);
const BYTE_LENGTHS = [0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 255, 1000, 4099, 8192];
const ITEM_SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 64, 255];
const SHUFFLES = ["shuffleBytes", "unshuffleBytes", "shuffleBits", "unshuffleBits"] as const;

/** Encoders write so many bytes too many, for which there is room behind everything the kernel's memory gives. */
const ENCODER_OVERRUN_BYTES = 16;

const kernel = createKernel();

/** What an operation says of itself, and what it leaves in its target. */
type Operation = (kernel: Kernel, source: Uint8Array, target: Uint8Array) => boolean | number | undefined;

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
      for (let turn = 0; turn < ROUNDS * MUTATION_KINDS.length; turn++) {
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

t.test("encoders keep to their source and to targets that are too short", async (t) => {
  const failures: string[] = [];
  let count = 0;
  for (const kind of SAMPLE_KINDS) {
    for (const byteLength of BYTE_LENGTHS) {
      const sample = sampleOf(kind, byteLength);
      const room = byteLength + Math.floor(byteLength / 255) + 16;
      for (const targetLength of [room, byteLength, byteLength >> 1, byteLength >> 3, 1, 0]) {
        for (const [name, encode] of Object.entries(ENCODERS)) {
          count++;
          const problem = problemOf(sample, targetLength, encode, ENCODER_OVERRUN_BYTES);
          if (problem !== undefined) {
            failures.push(`${name} of ${byteLength} ${kind} bytes into ${targetLength}: ${problem}`);
          }
        }
      }
    }
  }
  reportFailures(t, failures, count);
});

const ENCODERS: Readonly<Record<string, Operation>> = {
  LZ4: (kernel, from, to) => kernel.encodeLz4(from, to, 1),
  "LZ4, quick": (kernel, from, to) => kernel.encodeLz4(from, to, 20),
};

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
function problemOf(
  source: Uint8Array,
  targetLength: number,
  operation: Operation,
  overrun = 0,
): string | undefined {
  const [first, second] = SURROUNDINGS.map((byte) =>
    outcomeAmid(byte, source, targetLength, operation, overrun),
  );
  if (first === undefined || second === undefined) return "wrote beside its target";
  return first === second ? undefined : "depends on what lies around it";
}

/** What comes of an operation, as text; undefined: it wrote beside its target. */
function outcomeAmid(
  byte: number,
  source: Uint8Array,
  targetLength: number,
  operation: Operation,
  overrun: number,
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
    expected.set(region.subarray(begin, begin + targetLength + overrun), begin);
    if (!expected.equals(region)) return undefined;
    // Behind what an encoder has written, and where a decoder has failed, anything may be.
    const written = typeof result === "number" ? result : result === false ? 0 : targetLength;
    return `${result} ${Buffer.from(target.subarray(0, written)).toString("latin1")}`;
  } finally {
    kernel.memory.rewind(mark);
  }
}
