import { join } from "node:path";
import t from "tap";
import { createRandom } from "../../../bench/random.js";
import { CODECS } from "../../../src/codec/codecs.js";
import { hasJpeg } from "../../../src/codec/file-formats/jpeg.js";
import { MUTATION_KINDS } from "../../support/codec/mutate-chunk.js";
import {
  createDecoderTargets,
  type Decode,
  type DecoderTarget,
  decodeInLease,
  decoderSubject,
} from "./codec-fuzz.js";
import { type FuzzOptions, fuzzBatch, fuzzText, runFuzz } from "./fuzz.js";

const root = t.testdir({});
const { targets } = await createDecoderTargets();
const target = targets.find(({ name }) =>
  name.startsWith("blosc lz4, shuffle 1, items of 4"),
) as DecoderTarget;

async function tryDamage(each: DecoderTarget, seed: number, decode?: Decode) {
  const subject = decoderSubject(each, decode);
  const batch = await subject.begin(createRandom(seed));
  return fuzzBatch(subject, batch, seed, 2 * MUTATION_KINDS.length);
}

t.test("every decoder is fed, and makes of damaged chunks the planned length or an error", async (t) => {
  const ids = new Set(targets.flatMap(({ chunks }) => chunks.map(({ step }) => step.codec.id)));
  const expected = Object.keys(CODECS).filter((id) => id !== "jpeg" || hasJpeg());
  t.same([...ids].sort(), expected.sort());
  for (const [i, each] of targets.entries()) {
    const { failures, counts } = await tryDamage(each, 100 + i);
    t.same(failures, [], each.name);
    t.equal(counts.decoded! + counts.refused!, counts.inputs);
  }
});

t.test("a decoder that is wrong is found out", async (t) => {
  const cases: readonly (readonly [problem: RegExp, decode: Decode])[] = [
    [/expected \d+ bytes, received \d+/, async (...args) => (await decodeInLease(...args)).subarray(1)],
    [/expected corrupt-chunk, received out of luck/, () => Promise.reject(new TypeError("out of luck"))],
    [
      /the input was changed/,
      async (...args) => {
        const decoded = await decodeInLease(...args);
        args[0].fill(0);
        return decoded;
      },
    ],
  ];
  for (const [problem, decode] of cases) {
    const { failures } = await tryDamage(target, 1, decode);
    t.match(failures[0], { subject: target.name, seed: 1, problem });
  }
});

const OPTIONS: FuzzOptions = {
  ...{ kind: "codecs", seed: 5, seconds: 60, maxBatches: targets.length + 3, inputsPerBatch: 25, only: "" },
  folder: join(root, "fuzz"),
  batchTimeoutMs: 60_000,
  onProgress: () => {},
};

t.test("a run feeds one subject after the other and says what came of it", async (t) => {
  const report = await runFuzz(OPTIONS);
  t.same(report.failures, []);
  t.same(
    [...report.rows.keys()],
    targets.map(({ name }) => name),
  );
  const rows = [...report.rows.values()];
  t.equal(
    rows.reduce((sum, { inputs }) => sum + inputs!, 0),
    OPTIONS.maxBatches * 25,
  );
  t.equal(report.nextSeed, OPTIONS.seed + OPTIONS.maxBatches);
  t.ok(rows.every(({ largestAllocation }) => largestAllocation! > 0));
  const text = fuzzText(report, OPTIONS.seed, []);
  t.match(text, `damaged inputs, seeds 5 to ${4 + OPTIONS.maxBatches}, 1 process.`);
  t.match(text, "- Nothing failed.");
  t.notMatch(text, /NaN|undefined/);
});
