/**
 * Opens a store in a process of its own and looks at all of it, because lmdb may crash on damage that
 * `find-lmdb-damage` does not know, and hangs while another process holds the write lock.
 *
 * Run as a program: `node probe-lmdb-store.js DIRECTORY MAX_BYTES STAMP`; exit code 0 when all is well.
 */
import { spawn } from "node:child_process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { messageOf } from "../errors.js";
import { isUnusable, openLmdbStore } from "./lmdb-store.js";

/** What came of a probe. */
export type ProbeOutcome =
  | { readonly status: "sound" }
  /** lmdb crashed or refused. */
  | { readonly status: "damaged"; readonly reason: string }
  /** Another process holds the write lock and does not give it back. */
  | { readonly status: "blocked" };

/** How long another process may write before it counts as stuck; a transaction of this cache takes milliseconds. */
const TIMEOUT_MS = 10_000;
/** A walk over the bookkeeping is quick; of millions of entries the first are enough. */
const ENTRIES_LOOKED_AT = 100_000;

/** What a program brings upon itself. Any other signal is from outside, and says nothing of the store. */
const SIGNALS_OF_A_CRASH: ReadonlySet<string> = new Set([
  "SIGSEGV",
  "SIGBUS",
  "SIGABRT",
  "SIGILL",
  "SIGFPE",
  "SIGTRAP",
  "SIGSYS",
]);

/** Opens the store elsewhere first. About 100 ms. */
export async function probeLmdbStore(
  directory: string,
  options: { maxBytes: number; stamp: string },
  timeoutMs: number = TIMEOUT_MS,
): Promise<ProbeOutcome> {
  const child = spawn(
    process.execPath,
    [fileURLToPath(import.meta.url), directory, String(options.maxBytes), options.stamp],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    if (said.length < 2_000) said += text;
  });
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      resolve({ status: "blocked" });
    }, timeoutMs);
    child.on("error", () => {
      // No process can be started here.
      clearTimeout(timer);
      resolve({ status: "sound" });
    });
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      // Where nothing is learnt, the file was found sound before.
      const isFromOutside = signal !== null && !SIGNALS_OF_A_CRASH.has(signal);
      if (code === 0 || isFromOutside) resolve({ status: "sound" });
      else
        resolve({
          status: "damaged",
          reason: signal ?? (said.trim().split("\n").pop() || `exit code ${code}`),
        });
    });
  });
}

/** @returns Exit code. What is no damage (a full disk, say) is for the process itself to meet. */
async function probe(directory: string, maxBytes: number, stamp: string): Promise<number> {
  try {
    const store = openLmdbStore(directory, { maxBytes, stamp });
    store.sample(ENTRIES_LOOKED_AT);
    // Takes a page from the list of free ones.
    await store.write({ puts: [], removes: [], scores: [], clock: store.clock() });
    await store.close();
    return 0;
  } catch (error) {
    process.stderr.write(messageOf(error));
    return isUnusable(error) ? 1 : 0;
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [directory, maxBytes, stamp] = process.argv.slice(2);
  process.exitCode = await probe(directory!, Number(maxBytes), stamp!);
}
