import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CodecSpec } from "../../src/zarr/codec-step.js";
import {
  type ChunksJob,
  type CodecAnswer,
  type CodecSubject,
  NATIVE,
  NUMCODECS_JS,
  type Operation,
  OURS,
  startCodecSubjects,
  stopCodecSubjects,
} from "../codecs/codec-subjects.js";
import { type FieldType, itemSizeOf, typedChunk } from "../data/field.js";
import type { BenchContext, BenchTable, Contest, Contestant, Figures } from "../harness/harness.js";

/** `goalSeconds` is the length of a measurement of the case that goals are about, `seconds` that of the others. */
const SIZES = {
  full: { cases: Number.POSITIVE_INFINITY, chunks: 6, chunkBytes: 2 ** 20, seconds: 0.04, goalSeconds: 0.3 },
  small: { cases: 12, chunks: 4, chunkBytes: 2 ** 20, seconds: 0.025, goalSeconds: 0.12 },
  tiny: { cases: 2, chunks: 2, chunkBytes: 2 ** 16, seconds: 0.002, goalSeconds: 0.002 },
} as const;
const SIZE = `bytes ÷ ${NATIVE}'s`;
/** Share of a measurement that runs before it. */
const WARM_UP_SHARE = 0.25;

/** A codec with its options, on the field as one type. */
interface CodecCase {
  readonly name: string;
  readonly type: FieldType;
  readonly codec: CodecSpec;
}

const SHUFFLES = ["no shuffle", "byte shuffle", "bit shuffle"] as const;

function blosc(cname: string, shuffle: number, clevel: number, type: FieldType): CodecCase {
  const codec = { id: "blosc", cname, clevel, shuffle, blocksize: 0 };
  return { name: `Blosc-${cname} ${clevel}, ${SHUFFLES[shuffle]}, ${typeText(type)}`, type, codec };
}

function other(codec: CodecSpec, type: FieldType): CodecCase {
  const { id, ...options } = codec;
  return { name: [id, ...Object.values(options), typeText(type)].join(", "), type, codec };
}

function typeText(type: FieldType): string {
  return type.replace(/^[<|]/, "");
}

/** What zarr-python and xarray write by default, on the field as it is. */
const GOAL_CASE = blosc("lz4", 1, 5, "<f4");

/** Each option is varied while the others are the common ones. */
const CASES: readonly CodecCase[] = [
  GOAL_CASE,
  other({ id: "zstd", level: 1 }, "<f4"),
  blosc("lz4", 2, 5, "<f4"),
  ...(["<f8", "<i2", "|u1"] as const).map((type) => blosc("lz4", 1, 5, type)),
  ...["lz4hc", "blosclz", "zstd", "zlib"].map((cname) => blosc(cname, 1, 5, "<f4")),
  other({ id: "gzip", level: 1 }, "<f4"),
  other({ id: "shuffle", elementsize: 4 }, "<f4"),
  ...[1, 9].map((level) => blosc("lz4", 1, level, "<f4")),
  blosc("lz4", 0, 5, "<f4"),
  ...[1, 9].map((level) => blosc("zstd", 1, level, "<f4")),
  other({ id: "lz4", acceleration: 1 }, "|u1"),
  other({ id: "zlib", level: 1 }, "<f4"),
  other({ id: "gzip", level: 5 }, "<f4"),
  other({ id: "zstd", level: 5 }, "<f4"),
  other({ id: "delta", dtype: "<i2", astype: "<i2" }, "<i2"),
  other({ id: "crc32" }, "<f4"),
  other({ id: "crc32c" }, "<f4"),
];

/** How fast codecs are beside others, and how small they make chunks. */
export const codecs: BenchTable = {
  title: "codecs on one thread by codec, level and type, beside numcodecs.js, Node.js and native numcodecs",
  async *contests(context) {
    const { cases, chunks, chunkBytes } = SIZES[context.size];
    const { subjects, notes } = await startCodecSubjects();
    const how = [
      `${chunks} chunks of ${chunkBytes / 1024} KiB in rotation, of the benchmark's field as it is (f4), packed (i2), in steps of a third of a kelvin (u1), in degrees Fahrenheit (f8). Columns are 10^6 bytes of decoded items per second, on one thread.`,
      "All processes were checked before: each decodes what each has encoded, and the bytes are compared. Timed is the decoding of what native numcodecs has written, or zpublish if that is missing.",
      "zpublish as a worker calls it: lengths checked, from memory of the kernel to memory of the kernel. Native numcodecs as zarr-python calls it: a fresh result each time; the loop and the clock are in Python. Other builds are not measured.",
    ];
    try {
      const checked: CheckedCase[] = [];
      for (const each of CASES.slice(0, cases)) checked.push(await checkCase(each, subjects, context));
      const problems = checked.flatMap((each) => each.problems);
      yield contestOf("decode", checked, context, [...how, ...notes, ...problems]);
      yield contestOf("encode", checked, context, []);
    } finally {
      await stopCodecSubjects(subjects);
    }
  },
};

/** A case that is ready to be timed. */
interface CheckedCase {
  readonly codecCase: CodecCase;
  readonly chunks: Omit<ChunksJob, "inputs">;
  /** Files that each subject encodes, and that each decodes. */
  readonly inputs: Readonly<Record<Operation, readonly string[]>>;
  readonly subjects: Readonly<Record<Operation, readonly CodecSubject[]>>;
  /** Encoded bytes of all chunks ÷ those of native numcodecs. */
  readonly sizeRatio: number | undefined;
  readonly problems: readonly string[];
}

/**
 * Has every subject encode the chunks of a case, and decode what each has encoded.
 * @throws Error if zpublish, Node.js or native numcodecs is wrong; numcodecs.js is left out with a note.
 */
async function checkCase(
  codecCase: CodecCase,
  subjects: readonly CodecSubject[],
  { size, freshFolder }: BenchContext,
): Promise<CheckedCase> {
  const { codec, type, name } = codecCase;
  const folder = freshFolder(`codec-${CASES.indexOf(codecCase)}`);
  const decodedByteLength = SIZES[size].chunkBytes;
  const chunks = { codec, dtype: type, itemSize: itemSizeOf(type), decodedByteLength };
  const truth = Array.from({ length: SIZES[size].chunks }, (_, i) => {
    const file = join(folder, `decoded-${i}`);
    writeFileSync(file, typedChunk(type, i, decodedByteLength));
    return file;
  });
  const problems: string[] = [];
  /** @param about Subjects that may be the cause. @returns Whether it is done. */
  const isDone = (answer: CodecAnswer, what: string, about: readonly string[]): boolean => {
    if (!("error" in answer)) return !("missing" in answer);
    const problem = `${name}: ${what}: ${answer.error}`;
    if (!about.includes(NUMCODECS_JS)) throw new Error(problem);
    problems.push(`Without ${NUMCODECS_JS}, which is wrong: ${problem}`);
    return false;
  };
  const encoded = new Map<string, readonly string[]>();
  for (const { name: subject, process } of subjects) {
    const outputs = truth.map((_, i) => join(folder, `${subject.replace(/\W+/g, "-")}-${i}`));
    const answer = await process.ask({ ...chunks, job: "encode", inputs: truth, outputs });
    if (isDone(answer, `${subject} encodes`, [subject])) encoded.set(subject, outputs);
  }
  const decoders = new Set<string>();
  for (const { name: subject, process } of subjects) {
    for (const [from, inputs] of encoded) {
      const answer = await process.ask({ ...chunks, job: "check", inputs, expected: truth });
      if (isDone(answer, `${subject} decodes what ${from} encoded`, [subject, from])) decoders.add(subject);
    }
  }
  const isIn = ({ name: subject }: CodecSubject) => problems.length === 0 || subject !== NUMCODECS_JS;
  const [own, native] = [OURS, NATIVE].map((subject) => encoded.get(subject));
  return {
    ...{ codecCase, chunks, problems },
    inputs: { encode: truth, decode: native ?? own! },
    subjects: {
      encode: subjects.filter((subject) => encoded.has(subject.name) && isIn(subject)),
      decode: subjects.filter((subject) => decoders.has(subject.name) && isIn(subject)),
    },
    sizeRatio: own && native && totalBytes(own) / totalBytes(native),
  };
}

function totalBytes(files: readonly string[]): number {
  return files.reduce((sum, file) => sum + statSync(file).size, 0);
}

function contestOf(
  operation: Operation,
  checked: readonly CheckedCase[],
  context: BenchContext,
  notes: readonly string[],
): Contest {
  const [native, js] = operation === "decode" ? [0.6, 10] : [0.4, 4];
  return {
    title: operation === "decode" ? "Decode, MB/s" : "Encode, MB/s",
    contestants: checked.map((each) => contestantOf(operation, each, context)),
    compared: OURS,
    aims: [
      { of: GOAL_CASE.name, figure: `÷ ${NATIVE}`, least: native! },
      { of: GOAL_CASE.name, figure: `÷ ${NUMCODECS_JS}`, least: js! },
      ...(operation === "encode" ? [{ of: GOAL_CASE.name, figure: SIZE, most: 1.05 }] : []),
    ],
    notes,
  };
}

/** Times all subjects of a case within one measurement, since they are compared with each other. */
function contestantOf(operation: Operation, checked: CheckedCase, { size }: BenchContext): Contestant {
  const { codecCase, chunks, inputs, subjects, sizeRatio } = checked;
  const seconds = codecCase === GOAL_CASE ? SIZES[size].goalSeconds : SIZES[size].seconds;
  return {
    name: codecCase.name,
    async measure(round): Promise<Figures> {
      const rates = new Map<string, number>();
      const all = subjects[operation];
      for (const { name, process } of round % 2 === 0 ? all : all.toReversed()) {
        const times = { seconds, warmUpSeconds: seconds * WARM_UP_SHARE, first: round };
        const answer = await process.ask({
          ...chunks,
          ...times,
          job: "time",
          operation,
          inputs: inputs[operation],
        });
        if (!("chunks" in answer))
          throw new Error(`${name}: ${"error" in answer ? answer.error : answer.missing}`);
        rates.set(name, (answer.chunks * chunks.decodedByteLength) / 1e6 / answer.seconds);
      }
      const own = rates.get(OURS);
      const ratio = (name: string) => {
        const rate = rates.get(name);
        return own === undefined || rate === undefined ? undefined : own / rate;
      };
      return {
        ...Object.fromEntries(all.map(({ name }) => [name, rates.get(name)])),
        [`÷ ${NATIVE}`]: ratio(NATIVE),
        [`÷ ${NUMCODECS_JS}`]: ratio(NUMCODECS_JS),
        ...(operation === "encode" && { [SIZE]: sizeRatio }),
      };
    },
  };
}
