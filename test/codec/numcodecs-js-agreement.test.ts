import t, { type Test } from "tap";
import { loadNumcodecsJs } from "../../bench/codecs/numcodecs-js.js";
import { encodeSteps } from "../../src/codec/run-steps.js";
import { messageOf } from "../../src/errors.js";
import type { CodecSpec } from "../../src/zarr/codec-step.js";
import {
  ENCODED_CNAMES,
  largeBloscCases,
  nativeCases,
  smallBloscCases,
} from "../support/codec/blosc-cases.js";
import { decodingProblem } from "../support/codec/decoding-problem.js";
import type { NativeCase } from "../support/codec/native-checks.js";
import { reportFailures } from "../support/codec/report-failures.js";
import { SAMPLE_KINDS, sampleOf } from "../support/codec/sample-bytes.js";
import { stepOf } from "../support/codec/step.js";

t.setTimeout(240_000);

const MAX_BLOSC_BYTES = 2 ** 18;

const OTHER_CODECS: CodecSpec[] = [
  ...[1, 5, 1000].map((acceleration) => ({ id: "lz4", acceleration })),
  ...[1, 5, 19].map((level) => ({ id: "zstd", level })),
  ...[0, 1, 6, 9].map((level) => ({ id: "gzip", level })),
  ...[0, 1, 6, 9].map((level) => ({ id: "zlib", level })),
];
const OTHER_BYTE_LENGTHS = [1, 2, 5, 12, 13, 17, 64, 255, 1000, 4096, 65_536, 2 ** 17 + 1];

t.test("numcodecs.js decodes what is encoded here", async (t) => {
  await checkCases(t, ENCODED_CNAMES, async ({ codec, itemSize, bytes, label }) => {
    const encoded = await encodeSteps(bytes, [stepOf(codec, bytes.length, itemSize)], label);
    const decoded = await (await loadNumcodecsJs(codec))?.decode(encoded);
    return decoded !== undefined && Buffer.compare(decoded, bytes) === 0
      ? undefined
      : `${label}: other bytes`;
  });
});

t.test("what numcodecs.js encodes is decoded here", async (t) => {
  await checkCases(t, [...ENCODED_CNAMES, "lz4hc", "blosclz"], async ({ codec, bytes, label }) => {
    // The build inside of it knows no automatic shuffle.
    if (codec.shuffle === -1) return undefined;
    const encoded = await (await loadNumcodecsJs(codec))?.encode(bytes);
    return decodingProblem(encoded as Uint8Array, stepOf(codec, bytes.length), bytes, label);
  });
});

async function checkCases(
  t: Test,
  cnames: readonly string[],
  problemOf: (one: NativeCase) => Promise<string | undefined>,
): Promise<void> {
  const failures: string[] = [];
  let count = 0;
  for (const one of someCases(cnames)) {
    count++;
    const problem = await problemOf(one).catch((error: unknown) => `${one.label}: ${messageOf(error)}`);
    if (problem !== undefined) failures.push(problem);
  }
  reportFailures(t, failures, count);
}

/** Some cases: native numcodecs is asked about all of them. Chunks of no bytes are left out: numcodecs.js takes them for failures. */
function* someCases(cnames: readonly string[]): Generator<NativeCase> {
  let turn = 0;
  for (const one of smallBloscCases(cnames)) {
    // One of 61, which has no factor in common with any of the lists.
    if (turn++ % 61 === 0 && one.byteLength > 0) yield* nativeCases([one]);
  }
  for (const one of largeBloscCases(cnames)) {
    if (turn++ % 3 === 0 && one.byteLength <= MAX_BLOSC_BYTES) yield* nativeCases([one]);
  }
  for (const codec of OTHER_CODECS) {
    for (const byteLength of OTHER_BYTE_LENGTHS) {
      const kind = SAMPLE_KINDS[turn++ % SAMPLE_KINDS.length]!;
      const label = `${JSON.stringify(codec)} of ${byteLength} ${kind} bytes`;
      yield { codec, itemSize: 1, bytes: sampleOf(kind, byteLength), label };
    }
  }
}
