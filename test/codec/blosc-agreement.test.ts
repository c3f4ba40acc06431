import t, { type Test } from "tap";
import { encodeSteps } from "../../src/codec/run-steps.js";
import { clientMissing } from "../require-client.js";
import {
  type BloscCase,
  bytesOfCase,
  ENCODED_CNAMES,
  hugeBloscCases,
  labelOfCase,
  largeBloscCases,
  smallBloscCases,
} from "./blosc-cases.js";
import { decodingProblem } from "./decoding-problem.js";
import { type NativeJob, streamNative } from "./native-numcodecs.js";
import { reportFailures } from "./report-failures.js";
import { stepOf } from "./step.js";

t.setTimeout(240_000);

const skip = clientMissing("numcodecs");

/** A job with what is to come of it. */
interface CheckedJob extends NativeJob {
  readonly label: string;
  readonly original: Uint8Array;
  readonly itemSize: number;
}

t.test("short chunks of every level, shuffle and typesize go from here to native and back", { skip }, (t) =>
  checkBothWays(t, smallBloscCases(ENCODED_CNAMES)),
);

t.test("long chunks go from here to native and back", { skip }, (t) =>
  checkBothWays(t, largeBloscCases(ENCODED_CNAMES)),
);

t.test("chunks of 64 MiB go from here to native and back", { skip }, (t) =>
  checkBothWays(t, hugeBloscCases(ENCODED_CNAMES)),
);

t.test("what native encodes with Snappy is decoded here", { skip }, async (t) => {
  await checkJobs(t, nativeEncodings([...smallBloscCases(["snappy"]), ...largeBloscCases(["snappy"])]));
});

t.test("blocks are decoded in whatever order the threads of native wrote them", { skip }, async (t) => {
  const cases = [...largeBloscCases(["lz4", "zstd"])].filter(({ byteLength }) => byteLength >= 2 ** 18);
  await checkJobs(
    t,
    cases.map((one) => ({ ...nativeEncoding(one), threads: 4 })),
  );
});

async function checkBothWays(t: Test, cases: Iterable<BloscCase>): Promise<void> {
  const failures: string[] = [];
  await checkJobs(t, jobsOf(cases, failures), failures);
}

/** Ours for native to decode, and the original for native to encode. */
async function* jobsOf(cases: Iterable<BloscCase>, failures: string[]): AsyncGenerator<CheckedJob> {
  for (const one of cases) {
    const { codec, itemSize } = one;
    const original = bytesOfCase(one);
    const label = labelOfCase(one);
    const step = stepOf(codec, original.length, itemSize);
    const encoded = await encodeSteps(original, [step], label);
    const problem = await decodingProblem(encoded, step, original, label);
    if (problem !== undefined) failures.push(`encoded and decoded here: ${problem}`);
    // numcodecs takes the 0 that Blosc answers for an error.
    if (original.length > 0) yield { operation: "decode", codec, bytes: encoded, label, original, itemSize };
    yield nativeEncoding(one, original);
  }
}

function* nativeEncodings(cases: Iterable<BloscCase>): Generator<CheckedJob> {
  for (const one of cases) yield nativeEncoding(one);
}

/** Native takes whole items only. */
function nativeEncoding(one: BloscCase, bytes = bytesOfCase(one)): CheckedJob {
  const { codec, itemSize } = one;
  const original = bytes.subarray(0, bytes.length - (bytes.length % itemSize));
  return {
    operation: "encode",
    codec,
    bytes: original,
    dtype: `V${itemSize}`,
    label: labelOfCase(one),
    original,
    itemSize,
  };
}

async function checkJobs(
  t: Test,
  jobs: Iterable<CheckedJob> | AsyncIterable<CheckedJob>,
  failures: string[] = [],
): Promise<void> {
  let count = 0;
  for await (const { job, bytes, refusal } of streamNative(jobs)) {
    const { operation, codec, original, label, itemSize } = job;
    count++;
    if (bytes === undefined) failures.push(`native refused to ${operation} ${label}: ${refusal}`);
    else if (operation === "decode") {
      if (!bytes.equals(original)) failures.push(`native decoded something else: ${label}`);
    } else {
      const step = stepOf(codec, original.length, itemSize);
      const problem = await decodingProblem(bytes, step, original, label);
      if (problem !== undefined) failures.push(`encoded by native, decoded here: ${problem}`);
    }
  }
  reportFailures(t, failures, count);
}
