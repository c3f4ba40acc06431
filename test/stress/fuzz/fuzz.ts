import { createHash } from "node:crypto";
import { existsSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Child, startChild, stopChild } from "../../../bench/children.js";
import { markdownTable } from "../../../bench/harness/report.js";

/** A damaged input. */
export interface Damage {
  /** What was done to it. */
  readonly kind: string;
  readonly bytes: Uint8Array;
}

/** What came of one input. */
export interface Attempt {
  /** Columns of the report to add to, such as `{ refused: 1 }`. */
  readonly counts: Readonly<Record<string, number>>;
  /** Something that must not happen. */
  readonly problem?: string | undefined;
}

/** Something that is fed damaged inputs: a decoder, or the reader of a file's format. */
export interface FuzzSubject {
  readonly name: string;
  /** Row of the report. */
  readonly row: string;
  /** A good input, kept with failures that no single input explains. */
  readonly good: Uint8Array;
  /** Begins a batch. @param random Numbers in [0, 1): the same numbers give the same damage. */
  begin(random: () => number): Promise<FuzzBatch>;
}

/** Damaged copies of one good input. */
export interface FuzzBatch {
  /** Plain data that an input needs to be tried again. */
  readonly context?: unknown;
  readonly damages: Generator<Damage, never, void>;
  attempt(damage: Damage): Promise<Attempt>;
  /** Returns a problem that the inputs have left behind. */
  after?(): Promise<string | undefined>;
}

/** A kind of fuzzing. */
export interface FuzzKind {
  /** Opens what is fed. @param folder For files of the run. */
  open(folder: string): Promise<{
    readonly subjects: readonly FuzzSubject[];
    readonly notes: readonly string[];
  }>;
  /** Bytes of one buffer that no input may ask for. */
  readonly maxAllocationBytes: number;
  /** Resident bytes of the process that no input may need. */
  readonly maxResidentBytes: number;
  /** Whether the process is to be replaced. */
  isWornOut?(): boolean;
}

/** Something that must not happen, with its input. */
export interface FuzzFailure {
  readonly subject: string;
  readonly seed: number;
  /** Number of the input in its batch; -1 if it is not known. */
  readonly number: number;
  readonly kind: string;
  readonly problem: string;
  readonly context?: unknown;
  readonly bytes: Uint8Array;
}

/** What came of some inputs. */
export interface FuzzResult {
  readonly counts: Readonly<Record<string, number>>;
  readonly longestMs: number;
  readonly failures: readonly FuzzFailure[];
}

/** What a process is told. */
export interface FuzzOrder {
  /** Name of the {@link FuzzKind}. */
  readonly kind: string;
  /** Seed of the first batch; the same seed and subjects give the same damage. */
  readonly seed: number;
  /** Number of the first batch's subject. */
  readonly first: number;
  readonly seconds: number;
  readonly maxBatches: number;
  readonly inputsPerBatch: number;
  /** What the names of subjects begin with; empty for all. */
  readonly only: string;
  /** For files of the run. */
  readonly folder: string;
}

/** How much is tried. */
export interface FuzzOptions extends Omit<FuzzOrder, "first"> {
  /** A process that prints nothing for this long is stuck. */
  readonly batchTimeoutMs: number;
  onProgress(done: number, detail: string): void;
}

/** A line that a process prints. */
export interface FuzzLine {
  readonly note?: string;
  readonly begins?: { readonly subject: string; readonly seed: number; readonly context?: unknown };
  readonly ends?: Omit<FuzzResult, "failures"> & {
    readonly row: string;
    /** With their bytes in base64. */
    readonly failures: readonly (Omit<FuzzFailure, "bytes"> & { readonly bytes: string })[];
    /** Bytes of the largest buffer made, and resident memory. */
    readonly largestAllocation: number;
    readonly rss: number;
  };
}

/** A row of the report. */
type Row = Record<string, number>;

/** What a run has found. */
export interface FuzzReport {
  readonly rows: ReadonlyMap<string, Row>;
  readonly failures: readonly FuzzFailure[];
  readonly notes: readonly string[];
  readonly processes: number;
  /** Seed of the batch that would have been next. */
  readonly nextSeed: number;
}

/** Longer than the slowest honest input takes, also when others use the processor. */
const MAX_INPUT_MS = 5_000;
const INPUTS_PER_TURN = 16;
/** Further ones would be more of the same. */
const MAX_FAILURES = 20;
/** Heap of a process in MiB: one that needs more ends with an error, which is a failure. */
const MAX_HEAP_MIB = 512;
const WORKER = fileURLToPath(new URL("fuzz-worker.js", import.meta.url));
const CURRENT = "current";

/** Tries damaged inputs. @param onInput Receives each input before it is tried. */
export async function fuzzBatch(
  { name }: Pick<FuzzSubject, "name">,
  batch: FuzzBatch,
  seed: number,
  count: number,
  onInput: (input: Uint8Array) => void = () => undefined,
): Promise<FuzzResult> {
  const counts: Record<string, number> = { inputs: count };
  const failures: FuzzFailure[] = [];
  let longestMs = 0;
  const { context } = batch;
  for (let number = 0; number < count; number++) {
    // zlib gives back what it has refused in a later turn of the event loop.
    if (number % INPUTS_PER_TURN === 0) await sleep(0);
    const damage = batch.damages.next().value;
    const original = damage.bytes.slice();
    onInput(damage.bytes);
    const began = performance.now();
    const attempt = await batch.attempt(damage);
    const ms = performance.now() - began;
    longestMs = Math.max(longestMs, ms);
    for (const [column, more] of Object.entries(attempt.counts))
      counts[column] = (counts[column] ?? 0) + more;
    const problem =
      attempt.problem ??
      (Buffer.compare(damage.bytes, original) === 0 ? undefined : "the input was changed") ??
      (ms > MAX_INPUT_MS ? `expected at most ${MAX_INPUT_MS} ms, took ${ms}` : undefined);
    const { kind } = damage;
    if (problem !== undefined)
      failures.push({ subject: name, seed, number, kind, problem, context, bytes: original });
  }
  const problem = await batch.after?.();
  if (problem !== undefined)
    failures.push({
      ...{ subject: name, seed, number: count, kind: "a good input afterwards", problem, context },
      bytes: new Uint8Array(0),
    });
  return { counts, longestMs, failures };
}

/** Lets processes try inputs. One that dies or is stuck is a failure, and is replaced. */
export async function runFuzz(options: FuzzOptions): Promise<FuzzReport> {
  const { batchTimeoutMs, onProgress, ...common } = options;
  const rows = new Map<string, Row>();
  const failures: FuzzFailure[] = [];
  const notes = new Set<string>();
  const began = performance.now();
  const left = () => common.seconds - (performance.now() - began) / 1_000;
  let batches = 0;
  let processes = 0;
  while (left() > 0 && batches < common.maxBatches && failures.length < MAX_FAILURES) {
    const order: FuzzOrder = {
      ...common,
      ...{ seed: common.seed + batches, first: batches, seconds: left() },
      maxBatches: common.maxBatches - batches,
    };
    const args = [`--max-old-space-size=${MAX_HEAP_MIB}`, WORKER, JSON.stringify(order)];
    const child = await startChild(process.execPath, args);
    processes++;
    let current: FuzzLine["begins"];
    try {
      for await (const { note, begins, ends } of linesOf(child, batchTimeoutMs)) {
        if (note !== undefined) notes.add(note);
        if (begins !== undefined) current = begins;
        if (ends === undefined) continue;
        current = undefined;
        batches++;
        rows.set(ends.row, addBatch(rows.get(ends.row), ends));
        for (const each of ends.failures)
          failures.push({ ...each, bytes: Buffer.from(each.bytes, "base64") });
        onProgress(1 - left() / common.seconds, ends.row);
        if (failures.length >= MAX_FAILURES) break;
      }
    } catch (error) {
      if (current === undefined) throw error;
      batches++;
      failures.push({
        ...{ ...current, number: -1, kind: "the last one", problem: (error as Error).message },
        bytes: currentInput(common.folder),
      });
    } finally {
      await stopChild(child);
    }
  }
  return { rows, failures, notes: [...notes], processes, nextSeed: common.seed + batches };
}

function addBatch(sum: Row | undefined, batch: NonNullable<FuzzLine["ends"]>): Row {
  const { counts, longestMs, largestAllocation, rss } = batch;
  const row: Row = { ...sum };
  for (const [column, more] of Object.entries(counts)) row[column] = (row[column] ?? 0) + more;
  const highest = { longestMs, largestAllocation, rss };
  for (const [column, value] of Object.entries(highest)) row[column] = Math.max(row[column] ?? 0, value);
  return row;
}

/** @throws Error if the process dies, or prints nothing for too long. */
async function* linesOf(child: Child, timeoutMs: number): AsyncGenerator<FuzzLine> {
  const lines = createInterface({ input: child.process.stdout! })[Symbol.asyncIterator]();
  for (;;) {
    const stop = new AbortController();
    const late = sleep(timeoutMs, "late" as const, { signal: stop.signal }).catch(() => "late" as const);
    const next = await Promise.race([lines.next(), late]);
    stop.abort();
    if (next === "late") {
      child.process.kill("SIGKILL");
      throw new Error(`stuck: expected the batch to end within ${timeoutMs} ms`);
    }
    if (next.done) break;
    yield JSON.parse(next.value) as FuzzLine;
  }
  const status = await child.ended;
  if (status !== 0)
    throw new Error(`the process ended with ${status}: ${child.errorText().trim().slice(-500)}`);
}

/** Creates what keeps an input in a file before it is tried, since the process may die over it. */
export function createInputKeeper(folder: string): (input: Uint8Array) => void {
  const current = openSync(join(folder, CURRENT), "w+");
  return (input) => {
    // The length comes first: a shorter input does not erase a longer one.
    const head = Buffer.alloc(4);
    head.writeUInt32LE(input.length);
    writeSync(current, head, 0, 4, 0);
    if (input.length > 0) writeSync(current, input, 0, input.length, 4);
  };
}

function currentInput(folder: string): Uint8Array {
  const file = join(folder, CURRENT);
  const bytes = existsSync(file) ? readFileSync(file) : Buffer.alloc(0);
  return bytes.length < 4 ? new Uint8Array(0) : bytes.subarray(4, 4 + bytes.readUInt32LE(0));
}

/** Writes the input of a failure, and beside it what is known of it. @returns The file of the input. */
export function keepFailure({ bytes, ...known }: FuzzFailure, folder: string): string {
  mkdirSync(folder, { recursive: true });
  const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  const file = join(folder, `${known.subject.replace(/[^\w.-]+/g, "-")}-${hash}`);
  writeFileSync(file, bytes);
  writeFileSync(`${file}.json`, `${JSON.stringify(known, null, 2)}\n`);
  return file;
}

/** Returns the report as Markdown. @param kept Files of the failures. */
export function fuzzText(report: FuzzReport, seed: number, kept: readonly string[]): string {
  const { rows, failures, notes, processes, nextSeed } = report;
  const names = ["inputs", ...[...rows.values()].flatMap(Object.keys)];
  const highest = ["longestMs", "largestAllocation", "rss"];
  const counted = [...new Set(names.filter((name) => !highest.includes(name)))];
  const columns = ["", ...counted, "longest ms", "largest buffer", "resident MiB"];
  const cells = [...rows].map(([name, row]) => [
    name,
    ...counted.map((column) => row[column] ?? 0),
    ...[row.longestMs, row.largestAllocation, row.rss! / 2 ** 20],
  ]);
  const total = [...rows.values()].reduce((sum, row) => sum + row.inputs!, 0);
  return [
    ...markdownTable(columns, cells),
    "",
    `- ${total.toLocaleString("en-US")} damaged inputs, seeds ${seed} to ${nextSeed - 1}, ${processes} ${processes === 1 ? "process" : "processes"}.`,
    ...notes.map((note) => `- ${note}`),
    ...failures.map(
      ({ subject, seed, number, kind, problem }, i) =>
        `- **FAILED** ${subject}, seed ${seed}, number ${number}, ${kind}: ${problem.replace(/\s+/g, " ")}; kept in ${kept[i]}`,
    ),
    failures.length === 0 ? "- Nothing failed." : `- **${failures.length} failed.**`,
    "",
  ].join("\n");
}
