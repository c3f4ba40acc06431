import { fileURLToPath } from "node:url";
import { type CodecProcess, startCodecProcess } from "./codec-process.js";
import type { RunnerName } from "./codec-runners.js";
import { startNativeNumcodecs } from "./native-numcodecs.js";

/** Our codecs, as a worker calls them; this and the following as they stand in the tables. */
export const OURS = "zpublish";
/** The same from and to memory that is not the kernel's. */
export const OWN_MEMORY = "zpublish, own memory";
/** What is installed with zpublish, called as its users do. */
export const NUMCODECS_JS = "numcodecs.js";
/** What Node.js has itself. */
export const NODE_ZLIB = "node:zlib";
/** C code behind Python, on one thread. */
export const NATIVE = "native numcodecs";

/** Somebody who runs codecs, in a process of its own. */
export interface CodecSubject {
  readonly name: string;
  readonly process: CodecProcess;
  /** Whether it takes part only in the case that the goals are about, and has no column in the tables. */
  readonly isAside?: boolean;
}

const SERVER = fileURLToPath(new URL("codec-server.js", import.meta.url));

const startRunner = (runner: RunnerName) => startCodecProcess(process.execPath, [SERVER, runner]);

/**
 * Starts everybody who is there.
 * @returns Them, whom the caller stops, and why others are left out.
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
    subjects.push({ name: OWN_MEMORY, process: await startRunner("ours, own memory"), isAside: true });
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
