import t, { type Test } from "tap";
import { encodeSteps } from "../../src/codec/run-steps.js";
import type { CodecSpec } from "../../src/zarr/codec-spec.js";
import { clientMissing } from "../require-client.js";
import { decodingProblem } from "./decoding-problem.js";
import { type NativeJob, streamNative } from "./native-numcodecs.js";
import { reportFailures } from "./report-failures.js";
import { SAMPLE_KINDS, type SampleKind, sampleOf } from "./sample-bytes.js";
import { stepOf } from "./step.js";

t.setTimeout(240_000);

const skip = clientMissing("numcodecs");

const LEVELS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
const ACCELERATIONS = [1, 2, 3, 5, 10, 50, 1000, 65_537, 2 ** 31 - 1];
const ELEMENT_SIZES = [1, 2, 3, 4, 7, 8, 12, 16, 24, 255];

const LZ4: CodecSpec[] = ACCELERATIONS.map((acceleration) => ({ id: "lz4", acceleration }));
const ZSTD: CodecSpec[] = [-7, ...LEVELS, 15, 22].map((level) => ({ id: "zstd", level }));
const GZIP: CodecSpec[] = LEVELS.map((level) => ({ id: "gzip", level }));
const ZLIB: CodecSpec[] = LEVELS.map((level) => ({ id: "zlib", level }));
const FILTERS: CodecSpec[] = [
  ...ELEMENT_SIZES.map((elementsize) => ({ id: "shuffle", elementsize })),
  { id: "crc32" },
  { id: "adler32" },
];

const SHORT = [0, 1, 2, 3, 4, 5, 7, 8, 11, 12, 13, 15, 16, 17, 31, 63, 64, 65, 127, 128, 255, 256, 1000];
/** Around LZ4's reach and small table, deflate's window and longest stored block, the blocks of zstd. */
const MIDDLE = [4096, 32_767, 32_769, 65_535, 65_536, 65_537, 65_547, 2 * 65_535, 2 ** 17 - 1, 2 ** 17 + 1];
const LONG = [2 ** 20 + 17];
const HUGE = 64 * 2 ** 20;

/** The codecs of which numcodecs takes a decoded length of 0 for an error. */
const REFUSED_EMPTY = new Set(["lz4", "zstd"]);

interface AgreementCase {
  readonly codec: CodecSpec;
  readonly kind: SampleKind;
  readonly byteLength: number;
}

interface CheckedJob extends NativeJob {
  readonly label: string;
  readonly original: Uint8Array;
}

for (const [name, codecs] of Object.entries({
  LZ4,
  Zstandard: ZSTD,
  gzip: GZIP,
  zlib: ZLIB,
  filters: FILTERS,
})) {
  t.test(`${name}: chunks of all levels and lengths go from here to native and back`, { skip }, async (t) => {
    await checkBothWays(t, [
      ...casesOf(codecs, SHORT, SAMPLE_KINDS.length),
      ...casesOf(codecs, MIDDLE, 3),
      ...casesOf(codecs, LONG, 1),
    ]);
  });
}

t.test("chunks of 64 MiB go from here to native and back", { skip }, async (t) => {
  await checkBothWays(t, [
    { codec: { id: "lz4", acceleration: 1 }, kind: "smooth", byteLength: HUGE },
    { codec: { id: "lz4", acceleration: 5 }, kind: "noise", byteLength: HUGE },
    { codec: { id: "zstd", level: 1 }, kind: "counting", byteLength: HUGE },
    { codec: { id: "gzip", level: 1 }, kind: "zeros", byteLength: HUGE },
    { codec: { id: "zlib", level: 1 }, kind: "repeating", byteLength: HUGE },
    { codec: { id: "shuffle", elementsize: 4 }, kind: "smooth", byteLength: HUGE },
    { codec: { id: "crc32" }, kind: "noise", byteLength: HUGE },
  ]);
});

/** Every codec with every length; so many contents of each, which take turns. */
function* casesOf(
  codecs: readonly CodecSpec[],
  byteLengths: readonly number[],
  kinds: number,
): Generator<AgreementCase> {
  let turn = 0;
  for (const codec of codecs) {
    for (const byteLength of byteLengths) {
      for (let count = 0; count < kinds; count++) {
        yield { codec, byteLength, kind: SAMPLE_KINDS[turn++ % SAMPLE_KINDS.length]! };
      }
    }
    // Keeps the turns from falling together with the lengths.
    turn++;
  }
}

async function checkBothWays(t: Test, cases: Iterable<AgreementCase>): Promise<void> {
  const failures: string[] = [];
  let count = 0;
  for await (const { job, bytes, refusal } of streamNative(jobsOf(cases, failures))) {
    const { operation, codec, original, label } = job;
    count++;
    if (bytes === undefined) failures.push(`native refused to ${operation} ${label}: ${refusal}`);
    else if (operation === "decode") {
      if (!bytes.equals(original)) failures.push(`native decoded something else: ${label}`);
    } else {
      const step = stepOf(codec, original.length);
      const problem = await decodingProblem(bytes, step, original, label);
      if (problem !== undefined) failures.push(`encoded by native, decoded here: ${problem}`);
    }
  }
  reportFailures(t, failures, count);
}

/** Ours for native to decode, and the original for native to encode. */
async function* jobsOf(cases: Iterable<AgreementCase>, failures: string[]): AsyncGenerator<CheckedJob> {
  for (const { codec, kind, byteLength } of cases) {
    const itemSize = typeof codec.elementsize === "number" ? codec.elementsize : 1;
    const original = sampleOf(kind, byteLength - (byteLength % itemSize));
    const label = `${JSON.stringify(codec)} of ${original.length} ${kind} bytes`;
    const step = stepOf(codec, original.length);
    const encoded = await encodeSteps(original, [step], label);
    const problem = await decodingProblem(encoded, step, original, label);
    if (problem !== undefined) failures.push(`encoded and decoded here: ${problem}`);
    if (original.length > 0 || !REFUSED_EMPTY.has(codec.id)) {
      yield { operation: "decode", codec, bytes: encoded, label, original };
    }
    yield { operation: "encode", codec, bytes: original, label, original };
  }
}
