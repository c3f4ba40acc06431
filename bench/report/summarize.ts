import { groupBy } from "../group-by.js";
import type { Round } from "../measure-row.js";
import { median } from "../statistics.js";

/** One subject in one row: medians over the rounds. */
export interface Summary {
  readonly row: string;
  readonly subject: string;
  readonly generator: string;
  /** The shortest round. */
  readonly seconds: number;
  readonly requestsPerSecond: number;
  /** Lowest and highest round. */
  readonly range: readonly [number, number];
  readonly mibPerSecond: number | undefined;
  readonly p50: number | undefined;
  readonly p90: number | undefined;
  readonly p99: number | undefined;
  readonly cpuSecondsPerGb: number | undefined;
  readonly cpuMicrosPerRequest: number | undefined;
  /** The highest. */
  readonly peakBytes: number | undefined;
  /** How much of a processor the generator used. */
  readonly generatorUse: number | undefined;
  /** Of status line and headers of one answer. */
  readonly headByteLength: number | undefined;
  /** Median of the ratios of requests/s within a round, by subject compared with. */
  readonly ratios: Readonly<Record<string, number | undefined>>;
}

/** @param against Subjects that the others are compared with. */
export function summarize(rounds: readonly Round[], against: readonly string[]): Summary[] {
  const groups = groupBy(rounds, ({ row, subject }) => `${row}\0${subject}`);
  return [...groups.values()].map((group) => {
    const { row, subject, generator } = group[0];
    const middle = (
      field: "mibPerSecond" | "p50" | "p90" | "p99" | "cpuSecondsPerGb" | "cpuMicrosPerRequest",
    ) => median(group.map((round) => round[field]).filter((value) => value !== undefined));
    const rates = group.map(({ requestsPerSecond }) => requestsPerSecond);
    const peaks = group.map(({ peakBytes }) => peakBytes).filter((bytes) => bytes !== undefined);
    return {
      row,
      subject,
      generator,
      seconds: Math.min(...group.map(({ seconds }) => seconds)),
      requestsPerSecond: median(rates)!,
      range: [Math.min(...rates), Math.max(...rates)],
      mibPerSecond: middle("mibPerSecond"),
      p50: middle("p50"),
      p90: middle("p90"),
      p99: middle("p99"),
      cpuSecondsPerGb: middle("cpuSecondsPerGb"),
      cpuMicrosPerRequest: middle("cpuMicrosPerRequest"),
      peakBytes: peaks.length > 0 ? Math.max(...peaks) : undefined,
      generatorUse: median(
        group.flatMap(({ generatorCpuSeconds, seconds }) =>
          generatorCpuSeconds === undefined ? [] : [generatorCpuSeconds / seconds],
        ),
      ),
      headByteLength: group[0].headByteLength,
      ratios: Object.fromEntries(against.map((other) => [other, ratio(rounds, row, subject, other)])),
    };
  });
}

function ratio(rounds: readonly Round[], row: string, subject: string, other: string): number | undefined {
  const rate = (name: string, round: number) =>
    rounds.find((each) => each.row === row && each.subject === name && each.round === round)
      ?.requestsPerSecond;
  const ratios: number[] = [];
  for (const each of rounds) {
    if (each.row !== row || each.subject !== subject) continue;
    const otherRate = rate(other, each.round);
    if (otherRate !== undefined) ratios.push(each.requestsPerSecond / otherRate);
  }
  return median(ratios);
}
