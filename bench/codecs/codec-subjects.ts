import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { CodecSpec } from "../../src/zarr/codec-step.js";
import { type Child, startChild, stopChild } from "../children.js";
import type { RunnerName } from "./codec-runners.js";
import { startNativeNumcodecs } from "./native-numcodecs.js";

/** Our codecs, as a worker calls them. */
export const OURS = "zpublish";
/** What is installed with zpublish, called as its users do. */
export const NUMCODECS_JS = "numcodecs.js";
/** What Node.js has itself. */
const NODE_ZLIB = "node:zlib";
/** C code behind Python, on one thread. */
export const NATIVE = "native numcodecs";

/** Codecs in their own process. */
export interface CodecSubject {
  readonly name: string;
  readonly process: CodecProcess;
}

const SERVER = fileURLToPath(new URL("codec-server.js", import.meta.url));

const startRunner = (runner: RunnerName) => startCodecProcess(process.execPath, [SERVER, runner]);

/**
 * Starts all subjects that are installed.
 * @returns Subjects that the caller stops, and why others are left out.
 * @throws Error where one of ours does not start.
 */
export async function startCodecSubjects(): Promise<{
  readonly subjects: readonly CodecSubject[];
  readonly notes: readonly string[];
}> {
  const notes: string[] = [];
  const subjects: CodecSubject[] = [];
  try {
    subjects.push({ name: OURS, process: await startRunner("ours") });
    subjects.push({ name: NUMCODECS_JS, process: await startRunner("numcodecs.js") });
    subjects.push({ name: NODE_ZLIB, process: await startRunner("node:zlib") });
  } catch (error) {
    await stopCodecSubjects(subjects);
    throw error;
  }
  const native = await startNative();
  if ("missing" in native) notes.push(`Without ${NATIVE}: ${native.missing}.`);
  else {
    subjects.push({ name: NATIVE, process: native });
    notes.push(`Native: numcodecs ${native.greeting}, on one thread.`);
  }
  return { subjects, notes };
}

/** Native numcodecs, or why it is not there. */
export async function startNative(): Promise<CodecProcess | { readonly missing: string }> {
  try {
    return await startNativeNumcodecs();
  } catch (error) {
    return { missing: (error as Error).message };
  }
}

/** Ends their processes. */
export async function stopCodecSubjects(subjects: readonly CodecSubject[]): Promise<void> {
  for (const { process } of subjects) await process.stop();
}

/** Longer than any job takes. */
const JOB_TIMEOUT_MS = 120_000;
const START_TIMEOUT_MS = 30_000;

/** A process that runs codecs for as long as the experiment does. */
export interface CodecProcess {
  readonly pid: number;
  /** What it said of itself when it was ready. */
  readonly greeting: string;
  /** One job at a time. @throws Error where the process ends, or takes too long. */
  ask(job: CodecJob): Promise<CodecAnswer>;
  stop(): Promise<void>;
}

/**
 * Starts a program that prints `ready …` and then answers jobs, a line each.
 * @throws Error where it is not ready: with the last line it wrote to standard error.
 */
export async function startCodecProcess(program: string, args: readonly string[]): Promise<CodecProcess> {
  const child = await startChild(program, args, {}, true);
  const lines = createInterface({ input: child.process.stdout! })[Symbol.asyncIterator]();
  // A write to a process that has ended shows by its missing answer.
  child.process.stdin!.on("error", () => undefined);
  const nextLine = async (timeoutMs: number): Promise<string> => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), timeoutMs);
    });
    const next = await Promise.race([lines.next(), late]);
    clearTimeout(timer);
    if (next === "late") {
      await stopChild(child);
      throw new Error(`expected an answer within ${timeoutMs} ms, received none`);
    }
    if (next.done) throw new Error(await lastWords(child));
    return next.value;
  };
  const greeting = await nextLine(START_TIMEOUT_MS);
  if (!greeting.startsWith("ready")) throw new Error(`expected a line "ready …", received ${greeting}`);
  return {
    pid: child.pid,
    greeting: greeting.slice("ready".length).trim(),
    async ask(job) {
      child.process.stdin!.write(`${JSON.stringify(job)}\n`);
      return JSON.parse(await nextLine(JOB_TIMEOUT_MS)) as CodecAnswer;
    },
    stop: () => stopChild(child),
  };
}

async function lastWords(child: Child): Promise<string> {
  const status = await child.ended;
  const line = child.errorText().trim().split("\n").at(-1) ?? "";
  return `ended with ${status}${line === "" ? "" : `: ${line}`}`;
}

/** What is measured of a codec. */
export type Operation = "decode" | "encode";

/** The codec of a job, and the chunks it is to work on. */
export interface ChunksJob {
  readonly codec: CodecSpec;
  /** numpy's name of the decoded items' type. */
  readonly dtype: string;
  readonly itemSize: number;
  /** Bytes of every decoded chunk. */
  readonly decodedByteLength: number;
  /** Files, one chunk each. */
  readonly inputs: readonly string[];
}

/**
 * What a process that runs codecs is asked for: a line of JSON on its standard input, answered by a line of JSON.
 * Chunks are handed over in files, which are read before the clock starts.
 */
export type CodecJob =
  /** Encode each chunk into a file. */
  | ({ readonly job: "encode"; readonly outputs: readonly string[] } & ChunksJob)
  /** Decode each chunk and compare it with a file, byte by byte. */
  | ({ readonly job: "check"; readonly expected: readonly string[] } & ChunksJob)
  /** Do it for a number of seconds, at least once, chunks in rotation from `first` on. */
  | ({
      readonly job: "time";
      readonly operation: Operation;
      readonly seconds: number;
      /** What is not counted before that, at least once, too. */
      readonly warmUpSeconds: number;
      readonly first: number;
    } & ChunksJob)
  /** Decode each chunk and encode it again, once, one after the other. */
  | ({
      readonly job: "transcode";
      readonly to: CodecSpec;
      /** Whether reading the files is part of what is timed. */
      readonly isReading: boolean;
    } & ChunksJob);

/** What comes back. */
export type CodecAnswer =
  /** It is done. */
  | CodecTimes
  /** The codec is not there. */
  | { readonly missing: string }
  /** It was refused, or came out wrong. */
  | { readonly error: string };

/** What a job took; of jobs that are not timed only that it is done. */
export interface CodecTimes {
  readonly chunks: number;
  readonly seconds: number;
  /** Whether what comes out is memory of what went in, so that nothing is copied. */
  readonly isView: boolean;
}
