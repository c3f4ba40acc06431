/** How much data and work: all of it, little (`--small`), or just enough to show that it runs, for tests. */
export type ExperimentSize = "full" | "small" | "tiny";

/** What an experiment is given. */
export interface ExperimentContext {
  readonly size: ExperimentSize;
  readonly rounds: number;
  /** Length of one measurement. */
  readonly seconds: number;
  /** Where stores are kept; the data directory where it is undefined. */
  readonly parent?: string | undefined;
  /** Makes an empty folder of that name, for this run only. */
  freshFolder(name: string): string;
  /** @param done From 0 to 1, of this experiment. */
  onProgress(done: number, detail: string): void;
}

/** A measurement that is not the rate of one path: it starts what it needs, checks answers, and measures. */
export interface Experiment {
  /** A sentence without its full stop, as in the list of names. */
  readonly title: string;
  /** @throws Error where a server does not start or answers wrongly. */
  run(context: ExperimentContext): Promise<ExperimentResult>;
}

export interface ExperimentResult {
  readonly tables: readonly ResultTable[];
  readonly goals: readonly Goal[];
  /** Raw results: a line of the NDJSON each. */
  readonly records: readonly object[];
  /** What to know when reading the tables, a sentence each. */
  readonly notes: readonly string[];
  /** SVG by file name, which is written beside the report. */
  readonly pictures?: Readonly<Record<string, string>>;
}

/** A table of the report. Numbers are rounded when it is written; undefined is shown as a dash. */
export interface ResultTable {
  readonly title?: string | undefined;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | number | undefined)[])[];
}

/** Something that is aimed at, and whether this run had it. Never a test. */
export interface Goal {
  readonly what: string;
  readonly expected: string;
  readonly measured: string;
  readonly isMet: boolean;
}
