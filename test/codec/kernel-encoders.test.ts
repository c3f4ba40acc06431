import t from "tap";
import {
  createWasmInstance,
  FREE_BEGIN,
  type KernelExports,
  TABLE_BEGIN,
} from "../../src/codec/kernel/wasm-memory.js";
import { reportFailures } from "../support/codec/report-failures.js";
import { SAMPLE_KINDS, sampleOf } from "../support/codec/sample-bytes.js";

/** One of the kernel's encoders with its settings, and what undoes it. */
interface Encoder {
  readonly name: string;
  readonly encode: (source: number, length: number, target: number, capacity: number) => number;
  readonly decode: KernelExports["decodeLz4"];
}

const MAX_BYTES = 200_000;
/** So many bytes may be written behind the capacity, and read behind the source. */
const OVERRUN_BYTES = 16;
/** What memory is filled with that nobody may write into. */
const UNTOUCHED = 0xa5;
const GUARD_BYTES = 256;

const { exports: kernel, bytes: memory } = createWasmInstance(4 * MAX_BYTES);

const ENCODERS: readonly Encoder[] = [1, 5].map((acceleration) => ({
  name: `LZ4, acceleration ${acceleration}`,
  encode: (source, length, target, capacity) =>
    kernel.encodeLz4(source, length, target, capacity, acceleration, TABLE_BEGIN),
  decode: kernel.decodeLz4,
}));

/** Where the source and the target lie: whoever goes too far beyond the last of them leaves the memory, which traps. */
const PLACES = ["source last", "target last"] as const;

/**
 * Encodes into a capacity and looks at everything around.
 * @returns What is wrong; undefined: nothing.
 */
function problemOf(
  { encode, decode }: Encoder,
  bytes: Uint8Array,
  capacity: number,
  place: (typeof PLACES)[number],
): string | undefined {
  const first = FREE_BEGIN + GUARD_BYTES;
  const isSourceLast = place === "source last";
  const source = isSourceLast ? memory.length - OVERRUN_BYTES - bytes.length : first;
  const target = isSourceLast ? first : memory.length - OVERRUN_BYTES - capacity;
  const decoded = first + MAX_BYTES + 2 * GUARD_BYTES;
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
  const failures: string[] = [];
  let count = 0;
  for (const kind of SAMPLE_KINDS) {
    const bytes = sampleOf(kind, 420, 1, 3);
    for (const encoder of ENCODERS) {
      for (let capacity = 0; capacity <= bytes.length; capacity++) {
        for (const place of PLACES) {
          count++;
          const problem = problemOf(encoder, bytes, capacity, place);
          if (problem) failures.push(`${encoder.name}: ${kind}, capacity ${capacity}, ${place}: ${problem}`);
        }
      }
    }
  }
  reportFailures(t, failures, count);
});

t.test(
  "the kernel's encoders take bytes of every small length, and of some around their tables' reach",
  async (t) => {
    const failures: string[] = [];
    let count = 0;
    const lengths = [...Array(100).keys(), 4095, 16_385, 65_535, 65_536, 65_547, 65_548, 131_073, MAX_BYTES];
    for (const kind of SAMPLE_KINDS) {
      for (const length of lengths) {
        const bytes = sampleOf(kind, length, 1, length);
        for (const encoder of ENCODERS) {
          for (const capacity of [length, length >> 1, length >> 3]) {
            for (const place of PLACES) {
              count++;
              const problem = problemOf(encoder, bytes, capacity, place);
              if (problem)
                failures.push(
                  `${encoder.name}: ${length} ${kind} bytes into ${capacity}, ${place}: ${problem}`,
                );
            }
          }
        }
      }
    }
    reportFailures(t, failures, count);
  },
);

t.test("what the kernel's encoders can make shorter fits into a capacity of the same length", async (t) => {
  for (const encoder of ENCODERS) {
    for (const kind of ["repeating", "zeros", "nearMatches"] as const) {
      const bytes = sampleOf(kind, 5000, 1, 1);
      const source = FREE_BEGIN;
      const target = source + 2 * bytes.length;
      memory.set(bytes, source);
      const whole = encoder.encode(source, bytes.length, target, bytes.length);
      t.ok(whole > 0 && whole < bytes.length, `${encoder.name}: ${kind}: ${whole} bytes`);
      const room = whole + 16;
      t.equal(
        encoder.encode(source, bytes.length, target, room),
        whole,
        `${encoder.name}: ${kind}: the same in less room`,
      );
      t.equal(
        encoder.encode(source, bytes.length, target, whole - 1),
        0,
        `${encoder.name}: ${kind}: not in too little`,
      );
    }
  }
});
