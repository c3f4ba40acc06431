import { existsSync, readFileSync, writeFileSync } from "node:fs";
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
import { type FuzzOptions, fuzzBatch, fuzzText, keepFailure, runFuzz } from "./fuzz.js";

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

t.test("a process that dies, is stuck or needs too much memory is a failure with its input", async (t) => {
  const folder = t.testdir({});
  const ends = {
    "ended with 3: dead": 'console.error("dead"); process.exit(3);',
    stuck: "for (;;);",
    "ended with SIGABRT": "const all = []; for (;;) all.push(new Array(1e6).fill(all.length + 0.5));",
  };
  for (const [problem, end] of Object.entries(ends)) {
    const worker = join(folder, "worker.mjs");
    writeFileSync(
      worker,
      `import { writeFileSync } from "node:fs";
       const { seed, folder } = JSON.parse(process.argv[2]);
       const say = (line) => process.stdout.write(JSON.stringify(line) + "\\n");
       say({ begins: { subject: "t" + seed, seed } });
       writeFileSync(folder + "/current", Buffer.from([2, 0, 0, 0, 7, 8, 9]));
       if (seed === 1) { ${end} }
       say({ ends: { row: "r", counts: { inputs: 10 }, longestMs: 1, failures: [], largestAllocation: 1, rss: 1 } });`,
    );
    const options = { ...OPTIONS, seed: 1, maxBatches: 2, folder, worker };
    const report = await runFuzz({ ...options, batchTimeoutMs: problem === "stuck" ? 2_000 : 60_000 });
    t.match(report.failures, [{ subject: "t1", seed: 1, problem: new RegExp(problem) }]);
    t.match(report.rows.get("r"), { inputs: 10 });
    const file = keepFailure(report.failures[0]!, folder);
    t.ok(existsSync(`${file}.json`));
    t.same([...readFileSync(file)], [7, 8]);
    t.match(fuzzText(report, 1, [file]), /\*\*FAILED\*\* t1, seed 1.*kept in /);
  }
});
