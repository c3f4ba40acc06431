import { type CheckedCase, checkCase, type TruthFiles, writeTruth } from "../codecs/check-case.js";
import { CODEC_CASES, type CodecCase, GOAL_CASE } from "../codecs/codec-cases.js";
import { startCodecSubjects, stopCodecSubjects } from "../codecs/codec-subjects.js";
import { type CodecRound, timeCase } from "../codecs/time-case.js";
import { codecReport, type MeasuredCase } from "../report/codec-report.js";
import type { Experiment } from "./experiment.js";

const MIB = 2 ** 20;

/** `goalShare` of `--seconds` is what a measurement takes in the case that the goals are about. */
const SIZES = {
  full: { cases: CODEC_CASES, chunks: 6, chunkBytes: MIB, caseSeconds: 0.04, goalShare: 0.1 },
  small: {
    cases: CODEC_CASES.filter(({ isSmall }) => isSmall),
    chunks: 4,
    chunkBytes: MIB,
    caseSeconds: 0.025,
    goalShare: 0.04,
  },
  tiny: {
    cases: CODEC_CASES.filter(({ isPictured }) => isPictured),
    chunks: 2,
    chunkBytes: 2 ** 16,
    caseSeconds: 0.002,
    goalShare: 0.04,
  },
} as const;

/** How fast codecs are beside others, and how small they make things. */
export const codecs: Experiment = {
  title: "codecs on one thread by codec, level and type, beside numcodecs.js, Node.js and native numcodecs",
  async run({ size, rounds, seconds, freshFolder, onProgress }) {
    const { cases, chunks, chunkBytes, caseSeconds, goalShare } = SIZES[size];
    const goalSeconds = Math.max(caseSeconds, seconds * goalShare);
    const folder = freshFolder("chunks");
    const truths = new Map<CodecCase["type"], TruthFiles>();
    for (const { type } of cases) {
      if (!truths.has(type)) truths.set(type, writeTruth(type, chunks, chunkBytes, folder));
    }
    const { subjects, notes } = await startCodecSubjects();
    try {
      const measured: MeasuredCase[] = [];
      for (const [i, codecCase] of cases.entries()) {
        onProgress(i / cases.length, codecCase.name);
        const truth = truths.get(codecCase.type)!;
        const own = subjects.filter(({ isAside }) => codecCase === GOAL_CASE || isAside !== true);
        const checked: CheckedCase = await checkCase(codecCase, truth, own, folder);
        const measurements: CodecRound[] = await timeCase(checked, {
          rounds,
          seconds: codecCase === GOAL_CASE ? goalSeconds : caseSeconds,
        });
        measured.push({ checked, rounds: measurements, decodedBytes: chunks * chunkBytes });
      }
      const columns = subjects.filter(({ isAside }) => isAside !== true).map(({ name }) => name);
      const report = codecReport(measured, columns);
      const how = `${chunks} chunks of ${chunkBytes / 1024} KiB in rotation, of the benchmark's field: as they are (\`<f4\`), packed (\`<i2\`), in steps of a third of a kelvin (\`|u1\`), in degrees Fahrenheit (\`<f8\`). A measurement takes ${caseSeconds * 1_000} ms, at least a chunk, ${Math.round(goalSeconds * 1_000)} ms where a goal hangs on it; the others take their turns right before and after it.`;
      return { ...report, notes: [how, ...report.notes, ...notes] };
    } finally {
      await stopCodecSubjects(subjects);
    }
  },
};
