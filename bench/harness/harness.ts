import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** How much data and work: all of it, little (`--small`), or just enough to show that it runs, for tests. */
export type BenchSize = "full" | "small" | "tiny";

/** A build of zpublish. */
export interface Build {
  /** Empty for this build; `base` for the one of `--against`. */
  readonly name: string;
  /** Its `zpublish.cjs`. */
  readonly program: string;
}

/** What a table is given. */
export interface BenchContext {
  readonly size: BenchSize;
  readonly rounds: number;
  /** Length of one measurement. */
  readonly seconds: number;
  /** Builds that are compared, this one first. */
  readonly builds: readonly Build[];
  /** Where data are kept; the data directory if it is undefined. */
  readonly parent?: string | undefined;
  /** Servers of the user that take part in rows. */
  readonly peers: readonly string[];
  /** Whether bare uWebSockets.js is measured with the headers of zpublish, too. */
  readonly hasSameHeaders: boolean;
  /** As in `BenchOptions`. */
  readonly connections?: number | undefined;
  /** Empties or makes a folder of that name, for this table and run only. */
  freshFolder(name: string): string;
  /** @param done From 0 to 1, of this table. */
  onProgress(done: number, detail: string): void;
}

/** Numbers of one measurement, by title of their column; undefined if they are not known. */
export type Figures = Readonly<Record<string, number | undefined>>;

/** Someone who is measured beside others. */
export interface Contestant {
  readonly name: string;
  /** Undefined if it is no zpublish. Contestants of one name and several builds are compared. */
  readonly build?: Build;
  /** Whether it is left out with a note if it fails, since the user runs it. */
  readonly isForeign?: boolean;
  /** Measures once. Answers were checked before, or are checked by it. */
  measure(round: number): Promise<Figures>;
}

/** A number that is aimed at. Never a test. */
export interface Aim {
  /** Name of the contestant. */
  readonly of: string;
  /** Default: the contest's `compared`. */
  readonly figure?: string;
  /** If given, the aim is about the ratio to this contestant. */
  readonly against?: string;
  readonly least?: number;
  readonly most?: number;
}

/** Contestants that are measured in turn. */
export interface Contest {
  readonly title?: string;
  readonly contestants: readonly Contestant[];
  /** The figure of ranges and ratios. */
  readonly compared: string;
  /** More figures whose every round is reported. */
  readonly rounds?: readonly string[];
  /** Names of contestants that the others are divided by. */
  readonly against?: readonly string[];
  readonly aims?: readonly Aim[];
  /** What to know when reading it, a sentence each. */
  readonly notes?: readonly string[];
}

/** A benchmark: contests, one after the other. */
export interface BenchTable {
  /** A sentence without its full stop, as in the list of names. */
  readonly title: string;
  /** Whether it is left out of a small run unless it is named: its data are large. */
  readonly isLarge?: boolean;
  /**
   * Starts what each contest needs, checks answers, and yields the contest; ends what it has started when it is asked for the next.
   * @throws Error if a server does not start or answers wrongly.
   */
  contests(context: BenchContext): AsyncGenerator<Contest, void, void>;
}

/** One contestant in one round: a line of the raw results. */
export interface Measurement {
  readonly contestant: string;
  readonly build: string;
  readonly round: number;
  readonly figures: Figures;
}

/** A contest that has been run. */
export interface ContestResult {
  readonly contest: Contest;
  readonly measurements: readonly Measurement[];
  readonly notes: readonly string[];
}

/** This build. */
export const THIS_BUILD: Build = {
  name: "",
  program: fileURLToPath(new URL("../../src/zpublish.cjs", import.meta.url)),
};

/** Returns the build in another checkout. @throws Error if there is none. */
export function baseBuild(directory: string): Build {
  const program = join(directory, "dist", "src", "zpublish.cjs");
  if (!existsSync(program))
    throw new Error(
      `--against: expected a checkout that was built, received ${directory} without ${program}`,
    );
  return { name: "base", program };
}

/** Makes a contestant of every build. */
export function perBuild(
  { builds }: Pick<BenchContext, "builds">,
  name: string,
  measure: (build: Build, round: number) => Promise<Figures>,
): Contestant[] {
  return builds.map((build) => ({ name, build, measure: (round) => measure(build, round) }));
}

/**
 * Runs a table: the contestants of each contest in turn, the order turned round every other round.
 * @throws Error as a contestant that is ours does.
 */
export async function runTable(table: BenchTable, context: BenchContext): Promise<ContestResult[]> {
  const results: ContestResult[] = [];
  for await (const contest of table.contests(context)) results.push(await runContest(contest, context));
  return results;
}

async function runContest(contest: Contest, { rounds, onProgress }: BenchContext): Promise<ContestResult> {
  const measurements: Measurement[] = [];
  const notes: string[] = [];
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? contest.contestants : contest.contestants.toReversed();
    for (const [i, { name, build, isForeign, measure }] of order.entries()) {
      onProgress((round + i / order.length) / rounds, name);
      try {
        const figures = await measure(round);
        measurements.push({ contestant: name, build: build?.name ?? "", round, figures });
      } catch (error) {
        const { message } = error as Error;
        if (isForeign !== true) throw new Error(`${name}: ${message}`, { cause: error });
        notes.push(`Without round ${round + 1} of ${name}: ${message}`);
      }
    }
  }
  return { contest, measurements, notes };
}
