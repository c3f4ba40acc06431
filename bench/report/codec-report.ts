import type { CheckedCase } from "../codecs/check-case.js";
import { type CodecCase, caseKey, GOAL_CASE } from "../codecs/codec-cases.js";
import { OPERATIONS, type Operation } from "../codecs/codec-job.js";
import { NATIVE, NUMCODECS_JS, OURS, OWN_MEMORY } from "../codecs/codec-subjects.js";
import { type CodecSummary, codecRatio, summarizeCodecs } from "../codecs/summarize-codecs.js";
import type { CodecRound } from "../codecs/time-case.js";
import type { ExperimentResult, Goal, ResultTable } from "../experiments/experiment.js";
import { type BarGroup, barChart } from "./bar-chart.js";
import { formatNumber } from "./markdown-cells.js";

/** A case with its measurements. */
export interface MeasuredCase {
  readonly checked: CheckedCase;
  readonly rounds: readonly CodecRound[];
  /** Of all its chunks. */
  readonly decodedBytes: number;
}

/** On `GOAL_CASE`, as multiples of the rate of another subject. */
const RATE_GOALS: Readonly<Record<Operation, readonly (readonly [other: string, aim: number])[]>> = {
  decode: [
    [NATIVE, 0.6],
    [NUMCODECS_JS, 10],
  ],
  encode: [
    [NATIVE, 0.4],
    [NUMCODECS_JS, 4],
  ],
};

/** Of Blosc with LZ4, beyond what native numcodecs writes. */
const MAX_SIZE_EXCESS = 0.05;

/** @param subjects Those with a column, in this order. */
export function codecReport(
  measured: readonly MeasuredCase[],
  subjects: readonly string[],
): Omit<ExperimentResult, "notes"> & { readonly notes: string[] } {
  const rounds = measured.flatMap((each) => each.rounds);
  const summaries = summarizeCodecs(rounds);
  return {
    tables: [
      ...OPERATIONS.map((operation) => rateTable(operation, measured, summaries, subjects)),
      sizeTable(measured, subjects),
    ],
    goals: [...rateGoals(rounds), ...sizeGoals(measured)],
    records: [
      ...rounds.map((round) => ({ kind: "rate", ...round })),
      ...measured.map(({ checked, decodedBytes }) => ({
        kind: "size",
        case: caseKey(checked.codecCase),
        decodedBytes,
        encodedBytes: checked.sizes,
      })),
    ],
    notes: [
      "MB/s are 10^6 bytes of decoded items per second on one thread: the median of the rounds, and the lowest and the highest. Multiples are medians of the ratios within a round.",
      "Everybody was checked before: what each has encoded was decoded by each, and compared byte by byte. Timed is the decoding of what native numcodecs has written, or zpublish where that is not there, so all decode the same bytes; numcodecs.js writes others, since it takes every item for 4 bytes.",
      "Each in a process of its own. zpublish as a worker calls it: lengths checked, from memory of the kernel, which a worker reads files into, to memory of the kernel, which is used again. Native numcodecs as zarr-python calls it: a fresh result each time; the loop and the clock are in Python.",
      ...ownMemoryNotes(rounds),
      '"view": what comes out is memory of what went in, so that nothing was copied.',
      ...measured.flatMap(({ checked }) => checked.notes),
    ],
    pictures: Object.fromEntries(
      OPERATIONS.map((operation) => [
        `codecs-${operation}.svg`,
        barChart(barGroups(operation, measured, summaries, subjects), "MB/s"),
      ]),
    ),
  };
}

function rateTable(
  operation: Operation,
  measured: readonly MeasuredCase[],
  summaries: readonly CodecSummary[],
  subjects: readonly string[],
): ResultTable {
  const against = [NATIVE, NUMCODECS_JS].filter((name) => subjects.includes(name));
  return {
    title: `${capitalized(operation)}, MB/s`,
    columns: ["codec", "level", "type", ...subjects, ...against.map((name) => `× ${name}`)],
    rows: measured
      .filter(({ checked }) => checked.codecCase.operations.includes(operation))
      .map(({ checked: { codecCase }, rounds }) => [
        ...caseCells(codecCase),
        ...subjects.map((name) => rateCell(summaryOf(summaries, codecCase, operation, name))),
        ...against.map((other) => codecRatio(rounds, { case: caseKey(codecCase), operation }, OURS, other)),
      ]),
  };
}

function sizeTable(measured: readonly MeasuredCase[], subjects: readonly string[]): ResultTable {
  return {
    title: "How many times smaller the encoded bytes are",
    columns: ["codec", "level", "type", ...subjects, `bytes ÷ ${NATIVE}'s`],
    rows: measured
      .filter(({ checked }) => checked.codecCase.operations.includes("encode"))
      .map(({ checked: { codecCase, sizes }, decodedBytes }) => [
        ...caseCells(codecCase),
        ...subjects.map((name) => (sizes[name] === undefined ? undefined : decodedBytes / sizes[name])),
        sizeRatio(sizes)?.toFixed(3),
      ]),
  };
}

function rateGoals(rounds: readonly CodecRound[]): Goal[] {
  return OPERATIONS.flatMap((operation) =>
    RATE_GOALS[operation].flatMap(([other, aim]) => {
      const ratio = codecRatio(rounds, { case: caseKey(GOAL_CASE), operation }, OURS, other);
      if (ratio === undefined) return [];
      return [
        {
          what: `${operation} ${caseText(GOAL_CASE)}`,
          expected: `at least ${aim} × ${other}`,
          measured: `${ratio.toFixed(2)} ×`,
          isMet: ratio >= aim,
        },
      ];
    }),
  );
}

/** The worst case of Blosc with LZ4. */
function sizeGoals(measured: readonly MeasuredCase[]): Goal[] {
  const ratios = measured.flatMap(({ checked: { codecCase, sizes } }) => {
    const ratio = sizeRatio(sizes);
    return codecCase.codec.cname !== "lz4" || ratio === undefined ? [] : [{ ratio, codecCase }];
  });
  const worst = ratios.sort((a, b) => b.ratio - a.ratio)[0];
  if (worst === undefined) return [];
  const excess = worst.ratio - 1;
  return [
    {
      what: "bytes that Blosc with LZ4 takes, the worst case of all",
      expected: `at most ${MAX_SIZE_EXCESS * 100} % above ${NATIVE}`,
      measured: `${(excess * 100).toFixed(1)} % (${caseText(worst.codecCase)})`,
      isMet: excess <= MAX_SIZE_EXCESS,
    },
  ];
}

/** What it costs where the bytes come from elsewhere, and the result is to be kept. */
function ownMemoryNotes(rounds: readonly CodecRound[]): string[] {
  const name = caseKey(GOAL_CASE);
  const ratios = OPERATIONS.flatMap((operation) => {
    const ratio = codecRatio(rounds, { case: name, operation }, OWN_MEMORY, OURS);
    return ratio === undefined ? [] : [`${operation} ${ratio.toFixed(2)} ×`];
  });
  if (ratios.length === 0) return [];
  return [
    `Called with bytes that lie elsewhere, and with a fresh result each time, ${caseText(GOAL_CASE)} has so many times the rate above: ${ratios.join(", ")}.`,
  ];
}

function barGroups(
  operation: Operation,
  measured: readonly MeasuredCase[],
  summaries: readonly CodecSummary[],
  subjects: readonly string[],
): BarGroup[] {
  return measured
    .filter(({ checked: { codecCase } }) => codecCase.isPictured && codecCase.operations.includes(operation))
    .map(({ checked: { codecCase } }) => ({
      title: `${operation} ${caseKey(codecCase)}`,
      bars: summaries
        .filter((each) => each.case === caseKey(codecCase) && each.operation === operation)
        .filter(({ subject }) => subjects.includes(subject))
        .map(({ subject, median, range }) => ({ label: subject, value: median, range })),
    }));
}

function summaryOf(
  summaries: readonly CodecSummary[],
  codecCase: CodecCase,
  operation: Operation,
  subject: string,
): CodecSummary | undefined {
  const name = caseKey(codecCase);
  return summaries.find(
    (each) => each.case === name && each.operation === operation && each.subject === subject,
  );
}

function caseCells({ name, level, type }: CodecCase): (string | number | undefined)[] {
  return [name, level, typeCell(type)];
}

/** A case within a sentence of a table. */
function caseText({ name, level, type }: CodecCase): string {
  return `${name}${level === undefined ? "" : `, level ${level}`}, ${typeCell(type)}`;
}

function typeCell(type: CodecCase["type"]): string {
  // A bar would end the cell.
  return `\`${type.replace("|", "\\|")}\``;
}

function rateCell(summary: CodecSummary | undefined): string | undefined {
  if (summary === undefined) return undefined;
  const { median, range, isView } = summary;
  return `${formatNumber(median)} (${range.map(formatNumber).join("–")})${isView ? ", view" : ""}`;
}

function sizeRatio(sizes: CheckedCase["sizes"]): number | undefined {
  const own = sizes[OURS];
  const native = sizes[NATIVE];
  return own === undefined || native === undefined ? undefined : own / native;
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
