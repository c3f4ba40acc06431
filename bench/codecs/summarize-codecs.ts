import { groupBy } from "../group-by.js";
import { median } from "../statistics.js";
import type { Operation } from "./codec-job.js";
import type { CodecRound } from "./time-case.js";

/** One subject in one case: over the rounds. */
export interface CodecSummary {
  readonly case: string;
  readonly operation: Operation;
  readonly subject: string;
  /** MB/s of decoded bytes. */
  readonly median: number;
  /** Lowest and highest round. */
  readonly range: readonly [number, number];
  /** Whether what comes out is memory of what went in. */
  readonly isView: boolean;
}

/** In the order of the rounds. */
export function summarizeCodecs(rounds: readonly CodecRound[]): CodecSummary[] {
  const groups = groupBy(rounds, (round) => `${round.case}\0${round.operation}\0${round.subject}`);
  return [...groups.values()].map((group) => {
    const rates = group.map(({ mbPerSecond }) => mbPerSecond);
    const { operation, subject, isView } = group[0];
    return {
      case: group[0].case,
      operation,
      subject,
      median: median(rates)!,
      range: [Math.min(...rates), Math.max(...rates)],
      isView,
    };
  });
}

/** Median of the ratios within rounds; undefined where one of the two was not measured. */
export function codecRatio(
  rounds: readonly CodecRound[],
  { case: name, operation }: Pick<CodecRound, "case" | "operation">,
  subject: string,
  other: string,
): number | undefined {
  const own = rounds.filter((round) => round.case === name && round.operation === operation);
  const rateOf = (whose: string, round: number) =>
    own.find((each) => each.subject === whose && each.round === round)?.mbPerSecond;
  const ratios = own
    .filter((each) => each.subject === subject)
    .flatMap(({ round, mbPerSecond }) => {
      const otherRate = rateOf(other, round);
      return otherRate === undefined ? [] : [mbPerSecond / otherRate];
    });
  return median(ratios);
}
