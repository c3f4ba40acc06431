import type { Goal, ResultTable } from "../experiments/experiment.js";
import { median } from "../statistics.js";

/** Subjects of first pictures. */
export const DEMO = "the demo's air temperature";
export const WARM = "a large array, its overviews warm";
export const COLD = "a large array, its overviews not made";

/** Time until a picture is on the screen. */
export interface FirstPictureRecord {
  readonly kind: "first picture";
  readonly round: number;
  readonly subject: string;
  /** Milliseconds from the begin of the navigation until something of the picture is drawn, and until all of it is. */
  readonly firstMs: number;
  readonly wholeMs: number;
  readonly level: number;
  readonly chunks: number;
}

/** Pictures per second while playing. */
export interface PlayRecord {
  readonly kind: "play";
  readonly round: number;
  readonly framesPerSecond: number;
  /** Longest time between two pictures. */
  readonly longestMs: number;
}

/** Reports first pictures and playing: medians, each round, and goals. */
export function exploreReport(records: readonly (FirstPictureRecord | PlayRecord)[]): {
  readonly tables: readonly ResultTable[];
  readonly goals: readonly Goal[];
} {
  const firsts = records.filter((record) => record.kind === "first picture");
  const plays = records.filter((record) => record.kind === "play");
  const subjects = [DEMO, WARM, COLD];
  const timesOf = (subject: string, field: "firstMs" | "wholeMs") =>
    firsts.filter((record) => record.subject === subject).map((record) => record[field]);
  const rates = plays.map(({ framesPerSecond }) => framesPerSecond);
  return {
    tables: [
      {
        title: "Milliseconds until a picture",
        columns: ["", "first", "lowest", "highest", "whole", "lowest", "highest", "chunks", "level"],
        rows: subjects.map((subject) => {
          const last = firsts.findLast((record) => record.subject === subject);
          const cells = (["firstMs", "wholeMs"] as const).flatMap((field) => {
            const times = timesOf(subject, field);
            return [median(times), Math.min(...times), Math.max(...times)];
          });
          return [subject, ...cells, last?.chunks, last?.level];
        }),
      },
      {
        title: "Playing",
        columns: ["frames/s", "lowest", "highest", "longest wait, ms"],
        rows: [
          [
            ...[median(rates), Math.min(...rates), Math.max(...rates)],
            Math.max(...plays.map(({ longestMs }) => longestMs)),
          ],
        ],
      },
      {
        title: "Each round: milliseconds until the whole picture, frames per second",
        columns: ["round", ...subjects, "playing"],
        rows: plays.map(({ round, framesPerSecond }) => [
          round + 1,
          ...subjects.map(
            (subject) =>
              firsts.find((record) => record.round === round && record.subject === subject)?.wholeMs,
          ),
          framesPerSecond,
        ]),
      },
    ],
    goals: [
      timeGoal(`${DEMO}: whole picture`, timesOf(DEMO, "wholeMs"), 1_000),
      timeGoal(`${WARM}: whole picture`, timesOf(WARM, "wholeMs"), 2_000),
      timeGoal(`${COLD}: first, coarse picture`, timesOf(COLD, "firstMs"), 4_000),
      {
        what: "steps of 1,000 × 500 cells shown per second while playing at 30",
        expected: "at least 29",
        measured: median(rates)!.toFixed(1),
        isMet: median(rates)! >= 29,
      },
    ],
  };
}

function timeGoal(what: string, times: readonly number[], mostMs: number): Goal {
  const time = median(times)!;
  return {
    what: `${what}, ms`,
    expected: `less than ${mostMs}`,
    measured: time.toFixed(0),
    isMet: time < mostMs,
  };
}
