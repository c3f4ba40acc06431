import { fileURLToPath } from "node:url";
import { startChild, stopChild } from "../children.js";
import { addFileResults, type FileFailure, type FileFuzzResult, NO_FILE_RESULT } from "./fuzz-file.js";
import { currentInput, linesOf } from "./worker-lines.js";

/** What a process is told: `file-worker`. */
export interface FileFuzzOrder {
  /** Of the first batch; the same seed and the same files give the same damage. */
  readonly seed: number;
  readonly seconds: number;
  readonly maxBatches: number;
  readonly inputsPerBatch: number;
  /** What the names of files begin with, such as `netcdf3`; empty for all. */
  readonly only: string;
  /** Folders of good files. */
  readonly seedFolders: readonly string[];
  /** For files of the run. */
  readonly folder: string;
  /** Number of the first batch's file. */
  readonly firstTarget: number;
}

/** How much is tried. */
export interface FileFuzzOptions extends Omit<FileFuzzOrder, "firstTarget"> {
  /** A process that prints nothing for this long is taken for stuck. */
  readonly batchTimeoutMs: number;
  /** The program that reads. Default `file-worker`. */
  readonly worker?: string;
  onProgress(done: number, detail: string): void;
}

/** A line that a process prints. */
export interface FileFuzzLine {
  readonly note?: string;
  readonly begins?: { readonly target: string; readonly seed: number };
  readonly ends?: FileBatchReport;
}

/** One batch. */
export interface FileBatchReport extends Omit<FileFuzzResult, "failures"> {
  readonly format: string;
  /** With their bytes in base64. */
  readonly failures: readonly (Omit<FileFailure, "bytes"> & { readonly bytes: string })[];
  /** Bytes of the largest buffer made. */
  readonly largestAllocation: number;
  /** Resident memory of the process. */
  readonly rss: number;
}

/** One format, over all of its batches. */
export interface FormatReport extends Omit<FileFuzzResult, "failures"> {
  readonly largestAllocation: number;
  readonly largestRss: number;
}

/** What a run has found. */
export interface FileFuzzReport {
  readonly formats: ReadonlyMap<string, FormatReport>;
  readonly failures: readonly FileFailure[];
  readonly notes: readonly string[];
  readonly processes: number;
  /** Seed of the batch that would have been next. */
  readonly nextSeed: number;
}

/** Further ones would be more of the same. */
const MAX_FAILURES = 20;
/** Heap of a process in MiB: one that needs more ends with an error, which is a failure. */
const MAX_HEAP_MIB = 512;

const WORKER = fileURLToPath(new URL("file-worker.js", import.meta.url));

/** Lets processes read damaged files. One that dies or is stuck is a failure, and is replaced. */
export async function runFileFuzz(options: FileFuzzOptions): Promise<FileFuzzReport> {
  const { batchTimeoutMs, worker = WORKER, onProgress, ...common } = options;
  const formats = new Map<string, FormatReport>();
  const failures: FileFailure[] = [];
  const notes = new Set<string>();
  const began = performance.now();
  const left = () => common.seconds - (performance.now() - began) / 1_000;
  let batches = 0;
  let processes = 0;
  while (left() > 0 && batches < common.maxBatches && failures.length < MAX_FAILURES) {
    const order: FileFuzzOrder = {
      ...common,
      ...{ seed: common.seed + batches, firstTarget: batches, seconds: left() },
      maxBatches: common.maxBatches - batches,
    };
    const args = [`--max-old-space-size=${MAX_HEAP_MIB}`, worker, JSON.stringify(order)];
    const child = await startChild(process.execPath, args);
    processes++;
    let current: FileFuzzLine["begins"];
    try {
      for await (const { note, begins, ends } of linesOf<FileFuzzLine>(child, batchTimeoutMs)) {
        if (note !== undefined) notes.add(note);
        if (begins !== undefined) current = begins;
        if (ends === undefined) continue;
        current = undefined;
        batches++;
        formats.set(ends.format, addBatch(formats.get(ends.format), ends));
        failures.push(
          ...ends.failures.map((each) => ({ ...each, bytes: Buffer.from(each.bytes, "base64") })),
        );
        onProgress(1 - left() / common.seconds, ends.format);
        if (failures.length >= MAX_FAILURES) break;
      }
    } catch (error) {
      if (current === undefined) throw error;
      batches++;
      const problem = (error as Error).message;
      failures.push({
        ...current,
        number: -1,
        kind: "the last one",
        problem,
        bytes: currentInput(common.folder),
      });
    } finally {
      await stopChild(child);
    }
  }
  return { formats, failures, notes: [...notes], processes, nextSeed: common.seed + batches };
}

function addBatch(sum: FormatReport | undefined, batch: FileBatchReport): FormatReport {
  const { failures: _, ...added } = addFileResults(
    { ...(sum ?? NO_FILE_RESULT), failures: [] },
    { ...batch, failures: [] },
  );
  return {
    ...added,
    largestAllocation: Math.max(sum?.largestAllocation ?? 0, batch.largestAllocation),
    largestRss: Math.max(sum?.largestRss ?? 0, batch.rss),
  };
}
