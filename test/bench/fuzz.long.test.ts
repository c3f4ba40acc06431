import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { type Decode, decodeInLease, fuzzBatch } from "../../bench/fuzz/fuzz-batch.js";
import { createFuzzTargets, type FuzzTarget } from "../../bench/fuzz/fuzz-targets.js";
import { type FuzzOptions, runFuzz } from "../../bench/fuzz/run-fuzz.js";
import { fuzzText, replay, writeFailure } from "../../bench/fuzz-codecs.js";
import { createRandom } from "../../bench/random.js";
import { CODECS } from "../../src/codec/codecs.js";
import { hasJpeg } from "../../src/codec/file-formats/jpeg.js";
import { MUTATION_KINDS, mutations } from "../codec/mutate-chunk.js";

const root = t.testdir({});
const { targets } = await createFuzzTargets(join(root, "native"));
const target = targets.find(({ name }) => name.startsWith("blosc lz4, shuffle 1, items of 4")) as FuzzTarget;

t.test("damage is the same for the same seed, of every kind, and never done to the chunk itself", (t) => {
  const { encoded } = target.chunks[0]!;
  const before = new Uint8Array(encoded);
  const take = (chunk: Uint8Array, seed: number) => {
    const source = mutations(chunk, [before], createRandom(seed));
    return Array.from({ length: 3 * MUTATION_KINDS.length }, () => source.next().value);
  };
  const some = take(encoded, 1);
  const areSame = (others: typeof some) =>
    others.every(({ bytes }, i) => Buffer.compare(bytes, some[i]!.bytes) === 0);
  t.ok(areSame(take(Buffer.from(encoded), 1)), "of a Buffer, too");
  t.notOk(areSame(take(encoded, 2)));
  t.same([...new Set(some.map(({ kind }) => kind))], MUTATION_KINDS);
  t.equal(Buffer.compare(encoded, before), 0);
  t.ok(some.every(({ bytes }) => bytes.buffer !== encoded.buffer));
  for (const chunk of [new Uint8Array(0), new Uint8Array([7])]) t.doesNotThrow(() => take(chunk, 3));
  t.end();
});

t.test("every decoder is fed, and makes of damaged chunks the planned length or an error", async (t) => {
  const ids = new Set(targets.flatMap(({ chunks }) => chunks.map(({ step }) => step.codec.id)));
  t.same(
    [...ids].sort(),
    Object.keys(CODECS)
      .filter((id) => id !== "jpeg" || hasJpeg())
      .sort(),
  );
  for (const [i, each] of targets.entries()) {
    const result = await fuzzBatch(each, 100 + i, 2 * MUTATION_KINDS.length);
    t.same(result.failures, [], each.name);
    t.equal(result.decoded + result.refused, result.inputs);
  }
});

t.test("a decoder that is wrong is found out", async (t) => {
  const cases: readonly (readonly [problem: RegExp, decode: (original: Decode) => Decode])[] = [
    [
      /expected \d+ bytes, received \d+/,
      (decode) =>
        async (...args) =>
          (await decode(...args)).subarray(1),
    ],
    [
      /expected corrupt-chunk, received out of luck/,
      () => async () => {
        throw new TypeError("out of luck");
      },
    ],
    [
      /the input was changed/,
      (decode) =>
        async (...args) => {
          const decoded = await decode(...args);
          args[0].fill(0);
          return decoded;
        },
    ],
  ];
  for (const [problem, decode] of cases) {
    const { failures } = await fuzzBatch(target, 1, 2 * MUTATION_KINDS.length, decode(decodeInLease));
    t.match(failures[0]?.problem, problem);
    t.match(failures[0], { target: target.name, seed: 1 });
  }
});

t.test("a decoder that breaks after a damaged chunk is found out by the good one", async (t) => {
  let isBroken = false;
  const decode: Decode = async (bytes, step) => {
    if (isBroken) return new Uint8Array(step.maxDecodedByteLength).fill(1);
    return decodeInLease(bytes, step).catch((error) => {
      isBroken = true;
      throw error;
    });
  };
  const { failures } = await fuzzBatch(target, 1, 2 * MUTATION_KINDS.length, decode);
  t.match(failures.at(-1), {
    kind: "a good chunk afterwards",
    problem: /expected the bytes that were/,
  });
});

t.test("what has failed is kept, and can be decoded again", async (t) => {
  const [chunk] = target.chunks;
  const { encoded: bytes, step } = chunk!;
  const failure = { target: "x", seed: 1, number: 2, kind: "k", problem: "p", step, bytes };
  const file = writeFailure(failure, join(root, "kept"));
  const { length } = chunk!.decoded;
  t.equal(await replay(file), `${length} bytes, ${length} planned`);
  t.equal(writeFailure(failure, join(root, "kept")), file);
});

/** Every decoder has a turn, and some a second one. */
const BATCHES = targets.length + 3;

const OPTIONS: FuzzOptions = {
  seed: 5,
  seconds: 60,
  maxInputs: BATCHES * 25,
  inputsPerBatch: 25,
  only: "",
  folder: join(root, "fuzz"),
  batchTimeoutMs: 60_000,
  onProgress: () => {},
};

t.test("a run feeds one decoder after the other and says what came of it", async (t) => {
  const report = await runFuzz(OPTIONS);
  t.same(report.failures, []);
  t.same(
    report.targets.map((each) => each.target),
    targets.map(({ name }) => name),
  );
  t.equal(
    report.targets.reduce((sum, { inputs }) => sum + inputs, 0),
    OPTIONS.maxInputs,
  );
  t.equal(report.nextSeed, OPTIONS.seed + BATCHES);
  t.ok(report.targets.every(({ largestAllocation }) => largestAllocation > 0));
  const text = fuzzText(report, OPTIONS.seed, []);
  t.match(text, `damaged chunks, seeds 5 to ${4 + BATCHES}, 1 process.`);
  t.match(text, "- Nothing failed.");
  t.notMatch(text, /NaN|undefined/);
});

t.test("a process that dies or is stuck is a failure with its input, and is replaced", async (t) => {
  const folder = t.testdir({});
  const script = (end: string) => `
    import { writeFileSync } from "node:fs";
    const { seed, folder } = JSON.parse(process.argv[2]);
    const say = (line) => console.log(JSON.stringify(line));
    say({ begins: { target: "t" + seed, seed, number: 0 } });
    writeFileSync(folder + "/current", Buffer.from([2, 0, 0, 0, 7, 8, 9]));
    if (seed === 1) { ${end} }
    say({ ends: { target: "t" + seed, inputs: 10, decoded: 4, refused: 6, longestMs: 1,
      failures: [], largestAllocation: 1, rss: 1 } });`;
  const ends = {
    "ended with 3: dead": 'console.error("dead"); process.exit(3);',
    stuck: "for (;;);",
  };
  for (const [problem, end] of Object.entries(ends)) {
    const worker = join(folder, "worker.mjs");
    writeFileSync(worker, script(end));
    const report = await runFuzz({
      ...OPTIONS,
      seed: 1,
      maxInputs: 20,
      folder,
      batchTimeoutMs: 2_000,
      worker,
    });
    t.match(report.failures, [{ target: "t1", seed: 1, problem: new RegExp(problem) }]);
    t.same([...report.failures[0]!.bytes], [7, 8]);
    t.match(report.targets, [
      { target: "t2", inputs: 10, decoded: 4 },
      { target: "t3", inputs: 10 },
    ]);
    const file = writeFailure(report.failures[0]!, folder);
    t.ok(existsSync(file) && readFileSync(file, "utf8").includes('"problem"'));
    t.match(fuzzText(report, 1, [file]), /\*\*FAILED\*\* t1, seed 1.*kept in /);
  }
});
