import { fileURLToPath } from "node:url";
import type { CodecStep } from "../../src/zarr/codec-step.js";
import { startChild, stopChild } from "../children.js";
import { addResults, type FuzzFailure, type FuzzResult, NO_RESULT } from "./fuzz-batch.js";
import { currentInput, linesOf } from "./worker-lines.js";

/** How much is tried. */
export interface FuzzOptions {
  /** Of the first batch; the same seed and the same decoders give the same damage. */
  readonly seed: number;
  readonly seconds: number;
  readonly maxInputs: number;
  readonly inputsPerBatch: number;
  /** What the names of decoders begin with; empty for all of them. */
  readonly only: string;
  /** For files of the run. */
  readonly folder: string;
  /** After this long without a word, a process is taken for stuck. */
  readonly batchTimeoutMs: number;
  /** The program that decodes; default `fuzz-worker`. */
  readonly worker?: string;
  onProgress(done: number, detail: string): void;
}

/** What a process of fuzzing is told: `fuzz-worker`. */
export interface FuzzOrder extends Omit<FuzzOptions, "batchTimeoutMs" | "worker" | "onProgress"> {
  /** Number of the first batch's decoder. */
  readonly firstTarget: number;
}

/** A line of what it prints. */
export interface FuzzLine {
  readonly note?: string;
  readonly begins?: { readonly target: string; readonly seed: number; readonly number: number };
  readonly ends?: BatchReport;
}

/** One batch, with what the process has used until then. */
export interface BatchReport extends Omit<FuzzResult, "failures"> {
  readonly target: string;
  /** With their bytes in base64. */
  readonly failures: readonly (Omit<FuzzFailure, "bytes"> & { readonly bytes: string })[];
  /** Bytes of the largest buffer made. */
  readonly largestAllocation: number;
  /** Resident memory of the process. */
  readonly rss: number;
}

/** One decoder, over all of its batches. */
export interface TargetReport extends Omit<FuzzResult, "failures"> {
  readonly target: string;
  readonly largestAllocation: number;
}

/** What a run has found. */
export interface FuzzReport {
  readonly targets: readonly TargetReport[];
  readonly failures: readonly FuzzFailure[];
  readonly notes: readonly string[];
  /** Resident bytes of each process, when every decoder had had a turn, and at its end. */
  readonly memory: readonly { readonly before: number; readonly after: number }[];
  /** Of the batch that would have been next. */
  readonly nextSeed: number;
}

/** Enough to know; more would be more of the same. */
const MAX_FAILURES = 20;

const WORKER = fileURLToPath(new URL("fuzz-worker.js", import.meta.url));
const UNKNOWN_STEP: CodecStep = {
  codec: { id: "unknown" },
  decodedByteLength: null,
  maxDecodedByteLength: 0,
  itemSize: 1,
};

/**
 * Feeds damaged chunks to every decoder, in a process of its own that is replaced where it dies, is stuck, or would be
 * replaced as a worker of the server. Ends when the time is over or enough has failed.
 */
export async function runFuzz(options: FuzzOptions): Promise<FuzzReport> {
  const { seed, seconds, maxInputs, inputsPerBatch, only, folder, batchTimeoutMs, onProgress } = options;
  const { worker = WORKER } = options;
  const targets = new Map<string, TargetReport>();
  const notes = new Set<string>();
  const failures: FuzzFailure[] = [];
  const memory: { before: number; after: number }[] = [];
  const began = performance.now();
  const left = () => seconds - (performance.now() - began) / 1_000;
  let batches = 0;
  let inputs = 0;
  while (left() > 0 && inputs < maxInputs && failures.length < MAX_FAILURES) {
    const order: FuzzOrder = {
      ...{ seed: seed + batches, firstTarget: batches, seconds: left(), maxInputs: maxInputs - inputs },
      ...{ inputsPerBatch, only, folder },
    };
    const child = await startChild(process.execPath, [worker, JSON.stringify(order)]);
    const used = { before: 0, after: 0 };
    const seen = new Set<string>();
    let current: FuzzLine["begins"];
    try {
      for await (const { note, begins, ends } of linesOf<FuzzLine>(child, batchTimeoutMs)) {
        if (note !== undefined) notes.add(note);
        if (begins !== undefined) current = begins;
        if (ends === undefined) continue;
        current = undefined;
        batches++;
        inputs += ends.inputs;
        targets.set(ends.target, addBatch(targets.get(ends.target), ends));
        failures.push(
          ...ends.failures.map((each) => ({ ...each, bytes: Buffer.from(each.bytes, "base64") })),
        );
        if (!seen.has(ends.target)) used.before = ends.rss;
        seen.add(ends.target);
        used.after = ends.rss;
        onProgress(1 - left() / seconds, ends.target);
        if (failures.length >= MAX_FAILURES) break;
      }
    } catch (error) {
      if (current === undefined) throw error;
      batches++;
      const { target, seed } = current;
      const bytes = currentInput(folder);
      const problem = (error as Error).message;
      failures.push({
        target,
        seed,
        number: -1,
        kind: "the last one of it",
        problem,
        step: UNKNOWN_STEP,
        bytes,
      });
    } finally {
      await stopChild(child);
    }
    if (used.after > 0) memory.push(used);
  }
  return {
    targets: [...targets.values()],
    failures,
    notes: [...notes],
    memory,
    nextSeed: seed + batches,
  };
}

function addBatch(sum: TargetReport | undefined, batch: BatchReport): TargetReport {
  const { failures: _, ...added } = addResults(
    { ...(sum ?? NO_RESULT), failures: [] },
    { ...batch, failures: [] },
  );
  return {
    ...added,
    target: batch.target,
    largestAllocation: Math.max(sum?.largestAllocation ?? 0, batch.largestAllocation),
  };
}
