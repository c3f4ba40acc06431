import t, { type Test } from "tap";
import { type NumcodecsName, runNumcodecs } from "../../src/codec/numcodecs-module.js";
import { encodeSteps } from "../../src/codec/run-steps.js";
import { messageOf } from "../../src/errors.js";
import type { CodecSpec } from "../../src/zarr/codec-spec.js";
import { bytesOfCase, ENCODED_CNAMES, labelOfCase, largeBloscCases, smallBloscCases } from "./blosc-cases.js";
import { decodingProblem } from "./decoding-problem.js";
import { reportFailures } from "./report-failures.js";
import { SAMPLE_KINDS, sampleOf } from "./sample-bytes.js";
import { stepOf } from "./step.js";

t.setTimeout(240_000);

/** One chunk to be compared. */
interface AgreementCase {
  readonly codec: CodecSpec;
  readonly itemSize: number;
  readonly bytes: Uint8Array;
  readonly label: string;
}

const MAX_BLOSC_BYTES = 2 ** 18;

const OTHER_CODECS: CodecSpec[] = [
  ...[1, 5, 1000].map((acceleration) => ({ id: "lz4", acceleration })),
  ...[1, 5, 19].map((level) => ({ id: "zstd", level })),
  ...[0, 1, 6, 9].map((level) => ({ id: "gzip", level })),
  ...[0, 1, 6, 9].map((level) => ({ id: "zlib", level })),
];
const OTHER_BYTE_LENGTHS = [1, 2, 5, 12, 13, 17, 64, 255, 1000, 4096, 65_536, 2 ** 17 + 1];

t.test("numcodecs.js decodes what is encoded here", async (t) => {
  await checkCases(t, async ({ codec, itemSize, bytes, label }) => {
    const encoded = await encodeSteps(bytes, [stepOf(codec, bytes.length, itemSize)], label);
    const decoded = await runNumcodecs(codec.id as NumcodecsName, "decode", {}, encoded);
    return Buffer.compare(decoded, bytes) === 0 ? undefined : `${label}: other bytes`;
  });
});

t.test("what numcodecs.js encodes is decoded here", async (t) => {
  await checkCases(t, async ({ codec, bytes, label }) => {
    // The build inside of it knows no automatic shuffle.
    if (codec.shuffle === -1) return undefined;
    const { id, ...options } = codec;
    const encoded = await runNumcodecs(id as NumcodecsName, "encode", options, bytes);
    return decodingProblem(encoded, stepOf(codec, bytes.length), bytes, label);
  });
});

async function checkCases(
  t: Test,
  problemOf: (one: AgreementCase) => Promise<string | undefined>,
): Promise<void> {
  const failures: string[] = [];
  let count = 0;
  for (const one of allCases()) {
    count++;
    const problem = await problemOf(one).catch((error: unknown) => `${one.label}: ${messageOf(error)}`);
    if (problem !== undefined) failures.push(problem);
  }
  reportFailures(t, failures, count);
}

/** Chunks of no bytes are left out: numcodecs.js takes them for failures. */
function* allCases(): Generator<AgreementCase> {
  let turn = 0;
  for (const one of smallBloscCases(ENCODED_CNAMES)) {
    // One of seven, which has no factor in common with any of the lists.
    if (turn++ % 7 === 0 && one.byteLength > 0) yield caseOf(one);
  }
  for (const one of largeBloscCases(ENCODED_CNAMES)) {
    if (one.byteLength <= MAX_BLOSC_BYTES) yield caseOf(one);
  }
  for (const codec of OTHER_CODECS) {
    for (const byteLength of OTHER_BYTE_LENGTHS) {
      for (const kind of SAMPLE_KINDS) {
        const label = `${JSON.stringify(codec)} of ${byteLength} ${kind} bytes`;
        yield { codec, itemSize: 1, bytes: sampleOf(kind, byteLength), label };
      }
    }
  }
}

function caseOf(one: Parameters<typeof bytesOfCase>[0]): AgreementCase {
  return { codec: one.codec, itemSize: one.itemSize, bytes: bytesOfCase(one), label: labelOfCase(one) };
}
