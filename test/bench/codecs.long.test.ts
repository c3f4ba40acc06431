import t from "tap";
import { type CheckedCase, checkCase, writeTruth } from "../../bench/codecs/check-case.js";
import { CODEC_CASES, type CodecCase, caseKey, GOAL_CASE } from "../../bench/codecs/codec-cases.js";
import type { CodecAnswer, CodecJob, Operation } from "../../bench/codecs/codec-job.js";
import { startCodecProcess } from "../../bench/codecs/codec-process.js";
import {
  type CodecSubject,
  NATIVE,
  NODE_ZLIB,
  NUMCODECS_JS,
  OURS,
  OWN_MEMORY,
  startCodecSubjects,
  stopCodecSubjects,
} from "../../bench/codecs/codec-subjects.js";
import { codecRatio, summarizeCodecs } from "../../bench/codecs/summarize-codecs.js";
import { type CodecRound, timeCase } from "../../bench/codecs/time-case.js";
import { fieldValues } from "../../bench/data/field.js";
import { FIELD_TYPES, type FieldType, typedChunk } from "../../bench/data/typed-field.js";
import { codecReport, type MeasuredCase } from "../../bench/report/codec-report.js";
import { experimentSection, goalSection } from "../../bench/report/experiment-section.js";
import {
  FRESH,
  NATIVE_LOOP,
  RUNNING,
  SERVERS,
  transcodeReport,
} from "../../bench/report/transcode-report.js";
import { clientMissing } from "../require-client.js";

const folder = t.testdir({});
const CHUNK_BYTES = 2 ** 15;

t.test("chunks of every type have the length that was asked for, and differ", (t) => {
  for (const type of Object.keys(FIELD_TYPES) as FieldType[]) {
    const [first, second] = [0, 1].map((number) => typedChunk(type, number, CHUNK_BYTES));
    t.equal(first!.length, CHUNK_BYTES, type);
    t.not(Buffer.compare(first!, second!), 0, type);
    t.ok(new Set(first).size > 30, `${type} is no constant`);
  }
  const values = fieldValues({ begin: [2, 0, 1024], length: [1, 16, 512] });
  t.equal(Buffer.compare(typedChunk("<f4", 2, CHUNK_BYTES), new Uint8Array(values.buffer)), 0);
  t.end();
});

t.test("cases differ, and there are some of every codec that was asked for", (t) => {
  t.equal(new Set(CODEC_CASES.map(caseKey)).size, CODEC_CASES.length);
  t.equal(CODEC_CASES[0], GOAL_CASE);
  const ids = new Set(CODEC_CASES.map(({ codec }) => codec.id));
  t.same([...ids].sort(), [
    "bitround",
    "blosc",
    "crc32",
    "crc32c",
    "delta",
    "gzip",
    "lz4",
    "shuffle",
    "zlib",
    "zstd",
  ]);
  t.end();
});

t.test("everybody encodes, and decodes what the others encode, to the same bytes", async (t) => {
  const { subjects, notes } = await startCodecSubjects();
  t.teardown(() => stopCodecSubjects(subjects));
  const isNative = clientMissing("numcodecs") === false;
  t.match(notes.join("\n"), isNative ? /Native: numcodecs \d/ : /Without native numcodecs/);
  const namesOf = (checked: CheckedCase, operation: Operation) =>
    checked.subjects[operation].map(({ name }) => name);
  const native = isNative ? [NATIVE] : [];
  const checkOne = async (codecCase: CodecCase) => {
    const truth = writeTruth(codecCase.type, 2, CHUNK_BYTES, folder);
    return checkCase(codecCase, truth, subjects, folder);
  };

  const goal = await checkOne(GOAL_CASE);
  t.same(namesOf(goal, "decode"), [OURS, OWN_MEMORY, NUMCODECS_JS, ...native]);
  t.same(namesOf(goal, "encode"), namesOf(goal, "decode"));
  t.same(goal.notes, []);
  t.ok(goal.sizes[OURS]! < 2 * CHUNK_BYTES);
  t.match(
    goal.inputs.decode[0],
    isNative ? /encoded-native/ : /encoded-zpublish-0/,
    "all decode the same bytes",
  );

  const rounds = await timeCase(goal, { rounds: 2, seconds: 0.001 });
  t.equal(rounds.length, 2 * 2 * namesOf(goal, "decode").length);
  t.ok(rounds.every(({ mbPerSecond, chunks }) => mbPerSecond > 0 && chunks > 0));
  const order = (round: number) =>
    rounds
      .filter((each) => each.round === round && each.operation === "decode")
      .map(({ subject }) => subject);
  t.same(order(1), order(0).reverse(), "the order is turned round");

  const gzip = await checkOne(CODEC_CASES.find(({ name }) => name === "gzip")!);
  t.ok(namesOf(gzip, "encode").includes(NODE_ZLIB));
  const shuffle = await checkOne(CODEC_CASES.find(({ name }) => name === "shuffle")!);
  t.notOk(namesOf(shuffle, "encode").includes(NUMCODECS_JS), "who has no such codec is left out");
  const bitround = await checkOne(CODEC_CASES.find(({ name }) => name === "bitround")!);
  t.same(namesOf(bitround, "encode"), []);
  const views = await timeCase(bitround, { rounds: 1, seconds: 0.001 });
  t.match(
    views,
    namesOf(bitround, "decode").map(() => ({ isView: true })),
  );
});

/** Somebody whose answers are made up. */
function subjectOf(name: string, answer: (job: CodecJob) => CodecAnswer): CodecSubject {
  return {
    name,
    process: { pid: 0, greeting: "", ask: async (job) => answer(job), stop: async () => undefined },
  };
}

const DONE: CodecAnswer = { chunks: 1, seconds: 1, isView: false };

t.test("who is wrong ends the run, but for numcodecs.js, which is left out", async (t) => {
  const truth = { byteLength: CHUNK_BYTES, files: [] };
  const wrong = (job: CodecJob): CodecAnswer => (job.job === "check" ? { error: "other bytes" } : DONE);
  const right = subjectOf(OURS, () => DONE);
  await t.rejects(checkCase(GOAL_CASE, truth, [right, subjectOf(NATIVE, wrong)], folder), {
    message: /blosc lz4, byte shuffle 5, <f4: native numcodecs decodes what zpublish encoded: other bytes/,
  });
  const checked = await checkCase(GOAL_CASE, truth, [right, subjectOf(NUMCODECS_JS, wrong)], folder);
  t.same(checked.subjects, { encode: [right], decode: [right] });
  t.match(checked.notes[0], /Without numcodecs\.js where it is wrong/);
  const failing = subjectOf(OURS, ({ job }) => (job === "time" ? { error: "no memory" } : DONE));
  const ready = await checkCase(GOAL_CASE, truth, [failing], folder);
  await t.rejects(timeCase(ready, { rounds: 1, seconds: 1 }), { message: /zpublish: no memory/ });
});

t.test("a process that is not there, or ends, is an error with its last words", async (t) => {
  const start = (script: string) => startCodecProcess(process.execPath, ["-e", script]);
  await t.rejects(start('console.error("first"); console.error("no numcodecs"); process.exit(1)'), {
    message: "ended with 1: no numcodecs",
  });
  await t.rejects(start('console.log("hello")'), { message: /expected a line "ready/ });
  const child = await start('console.log("ready 1.2"); process.stdin.once("data", () => process.exit(4))');
  t.equal(child.greeting, "1.2");
  const { codec } = GOAL_CASE;
  const chunks = { codec, dtype: "<f4", itemSize: 4, decodedByteLength: 4, inputs: [] };
  await t.rejects(child.ask({ ...chunks, job: "encode", outputs: [] }), { message: "ended with 4" });
  await child.stop();
});

/** Rounds of the case the goals are about. */
function roundsOf(operation: Operation, rates: Readonly<Record<string, readonly number[]>>): CodecRound[] {
  return Object.entries(rates).flatMap(([subject, own]) =>
    own.map((mbPerSecond, round) => ({
      ...{ case: caseKey(GOAL_CASE), operation, subject, round, chunks: 1, seconds: 1, mbPerSecond },
      isView: false,
    })),
  );
}

const ROUNDS: readonly CodecRound[] = [
  ...roundsOf("decode", { [OURS]: [60, 80, 40], [OWN_MEMORY]: [30, 40, 20], [NATIVE]: [100, 100, 80] }),
  ...roundsOf("encode", { [OURS]: [30, 30, 30], [NUMCODECS_JS]: [5, 5, 5], [NATIVE]: [100, 100, 100] }),
];

t.test("a ratio of codecs is the median of those within rounds", (t) => {
  const where = { case: caseKey(GOAL_CASE), operation: "decode" } as const;
  t.equal(codecRatio(ROUNDS, where, OURS, NATIVE), 0.6);
  t.equal(codecRatio(ROUNDS, where, OURS, NUMCODECS_JS), undefined);
  t.match(summarizeCodecs(ROUNDS)[0], { subject: OURS, median: 60, range: [40, 80] });
  t.end();
});

t.test("the report of codecs says what is reached, with tables and pictures", (t) => {
  const measured: MeasuredCase = {
    checked: {
      codecCase: GOAL_CASE,
      chunks: { codec: GOAL_CASE.codec, dtype: "<f4", itemSize: 4, decodedByteLength: 100 },
      inputs: { decode: [], encode: [] },
      subjects: { decode: [], encode: [] },
      sizes: { [OURS]: 107, [NATIVE]: 100 },
      notes: ["left out"],
    },
    rounds: ROUNDS,
    decodedBytes: 214,
  };
  const result = codecReport([measured], [OURS, NUMCODECS_JS, NATIVE]);
  t.match(result.goals, [
    { expected: "at least 0.6 × native numcodecs", measured: "0.60 ×", isMet: true },
    { expected: "at least 0.4 × native numcodecs", measured: "0.30 ×", isMet: false },
    { expected: "at least 4 × numcodecs.js", measured: "6.00 ×", isMet: true },
    { expected: "at most 5 % above native numcodecs", measured: /^7\.0 %/, isMet: false },
  ]);
  const section = experimentSection({ name: "codecs", title: "codecs", result }).join("\n");
  t.match(
    section,
    "| blosc lz4, byte shuffle | 5 | `<f4` | 60.0 (40.0–80.0) | – | 100 (80.0–100) | 0.60 | – |",
  );
  t.match(section, "| blosc lz4, byte shuffle | 5 | `<f4` | 2 | – | 2.14 | 1.070 |");
  t.match(section, "![codecs-decode](codecs-decode.svg)");
  t.match(section, "decode 0.50 ×");
  t.notMatch(section + goalSection(result.goals).join("\n"), /NaN|undefined/);
  t.match(result.pictures?.["codecs-decode.svg"], /^<svg [\s\S]*60 MB\/s[\s\S]*<\/svg>\n$/);
  t.notMatch(result.pictures?.["codecs-decode.svg"], OWN_MEMORY);
  t.match(JSON.stringify(result.records.at(-1)), '"encodedBytes":{"zpublish":107,"native numcodecs":100}');
  t.end();
});

t.test(
  "transcoding is compared with the loop of its own round, and with nothing where there is none",
  (t) => {
    const record = (subject: string, round: number, chunksPerSecond: number) => ({
      ...{ subject, round, chunksPerSecond, chunks: 10, seconds: 1 },
    });
    const [fresh, running] = [FRESH, RUNNING].map((when) => `${SERVERS[0]!.name}, ${when}`) as [
      string,
      string,
    ];
    const records = [
      ...[record(fresh, 0, 70), record(running, 0, 90), record(NATIVE_LOOP, 0, 100)],
      ...[record(fresh, 1, 45), record(running, 1, 40), record(NATIVE_LOOP, 1, 50)],
    ];
    t.match(transcodeReport(records).goals, [
      { what: new RegExp(`${running}$`), measured: "0.85 ×", isMet: true },
    ]);
    t.same(transcodeReport(records.filter(({ subject }) => subject !== NATIVE_LOOP)).goals, []);
    t.end();
  },
);
