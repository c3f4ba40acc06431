import type { ExperimentContext, ResultTable } from "./experiment.js";
import { medianOf, type StartUp } from "./start-up.js";

/** A start with so many of something. */
export interface CountedStartUp extends StartUp {
  readonly count: number;
  readonly round: number;
}

/** Measures every count, once a round, the order turned round every other round. @param unit What is counted, as in "3 datasets". */
export async function measureCounts<Item extends CountedStartUp>(
  counts: readonly number[],
  unit: string,
  { rounds, onProgress }: ExperimentContext,
  measure: (count: number, round: number) => Promise<Item>,
): Promise<Item[]> {
  const records: Item[] = [];
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? counts : [...counts].reverse();
    for (const [i, count] of order.entries()) {
      onProgress((round + i / order.length) / rounds, `${count} ${unit}`);
      records.push(await measure(count, round));
    }
  }
  return records;
}

/** Start and memory by count, medians of the rounds. @param more Further columns, by title. */
export function startUpTable<Item extends CountedStartUp>(
  counts: readonly number[],
  records: readonly Item[],
  titles: { readonly count: string; readonly perOne: string },
  more: Readonly<Record<string, (item: Item) => number>>,
): ResultTable {
  const ofCount = (count: number) => records.filter((record) => record.count === count);
  const residentOf = (items: readonly Item[]) => medianOf(items, ({ residentBytes }) => residentBytes);
  const base = residentOf(ofCount(1));
  return {
    columns: [
      titles.count,
      "ready after s",
      "highest",
      "CPU s",
      "memory, MiB",
      titles.perOne,
      ...Object.keys(more),
    ],
    rows: counts.map((count) => {
      const own = ofCount(count);
      const resident = residentOf(own);
      const isKnown = resident !== undefined && base !== undefined && count > 1;
      return [
        count,
        medianOf(own, ({ readySeconds }) => readySeconds),
        Math.max(...own.map(({ readySeconds }) => readySeconds)),
        medianOf(own, ({ cpuSeconds }) => cpuSeconds),
        resident === undefined ? undefined : resident / 2 ** 20,
        isKnown ? (resident - base) / 1024 / (count - 1) : undefined,
        ...Object.values(more).map((pick) => medianOf(own, pick)),
      ];
    }),
  };
}
