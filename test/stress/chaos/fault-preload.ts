/**
 * Loaded by Node.js before the program that chaos is made of (`NODE_OPTIONS=--import`), in every thread of it. What goes
 * wrong is said by files in the folder `CHAOS_FAULTS`, which the program knows nothing of:
 *
 * - `kill-exit`, `kill-throw`, `kill-heap`, `kill-spin`: the next worker that reads or decodes something takes the file
 *   away and ends so. One file, one worker.
 * - `source-error`, `source-slow`: while it is there, chunks below `flaky.zarr` cannot be opened, or take ten seconds.
 *
 * A worker that opens a chunk below `poison.zarr/KIND` dies of it each time.
 */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { isMainThread } from "node:worker_threads";
import { FLAKY_DATASET, POISON_DATASET } from "./arrays.js";

/** How a worker can die. */
export const DEATHS = ["exit", "throw", "heap", "spin"] as const;
export type Death = (typeof DEATHS)[number];

const SLOW_MS = 10_000;

const folder = process.env.CHAOS_FAULTS;
if (folder !== undefined) install(folder);

function install(folder: string): void {
  const { open, openSync, lstat } = fs;
  const flaky = `/${FLAKY_DATASET}.zarr/`;
  const poison = new RegExp(`/${POISON_DATASET}\\.zarr/(${DEATHS.join("|")})/\\d`);

  /** What a call on a path has to suffer. */
  function faultOf(path: unknown): "error" | "slow" | undefined {
    if (typeof path !== "string") return undefined;
    if (!isMainThread) {
      const death = poison.exec(path)?.[1];
      if (death !== undefined) die(death as Death);
      dieIfAsked();
    }
    if (!path.includes(flaky) || !/\/\d+\.\d+$/.test(path)) return undefined;
    if (fs.existsSync(join(folder, "source-error"))) return "error";
    return fs.existsSync(join(folder, "source-slow")) ? "slow" : undefined;
  }

  function dieIfAsked(): void {
    for (const death of DEATHS) {
      const file = join(folder, `kill-${death}`);
      if (!fs.existsSync(file)) continue;
      try {
        // Only one can.
        fs.unlinkSync(file);
      } catch {
        continue;
      }
      die(death);
    }
  }

  type Callback = (error: Error | null, ...results: unknown[]) => void;
  type Later = (path: string, ...rest: unknown[]) => void;

  function faulty(original: Later): Later {
    return (path, ...rest) => {
      const fault = faultOf(path);
      const callback = rest.at(-1) as Callback;
      if (fault === "error") process.nextTick(callback, inputOutputError());
      else if (fault === "slow") setTimeout(() => original(path, ...rest), SLOW_MS);
      else original(path, ...rest);
    };
  }

  const patched = fs as unknown as Record<string, unknown>;
  patched.open = faulty(open as Later);
  patched.lstat = faulty(lstat as Later);
  patched.openSync = (path: string, ...rest: [number]) => {
    const fault = faultOf(path);
    if (fault === "error") throw inputOutputError();
    // The thread that answers opens what it does not wait for: files of this machine, which do not hang.
    if (fault === "slow" && !isMainThread)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, SLOW_MS);
    return openSync(path, ...rest);
  };
  syncBuiltinESMExports();

  if (isMainThread) return;
  // Between reading and decoding, and while encoding, as the time of these is taken.
  const now = performance.now.bind(performance);
  performance.now = () => {
    dieIfAsked();
    return now();
  };
}

function inputOutputError(): Error {
  return Object.assign(new Error("EIO: i/o error"), { code: "EIO", errno: -5 });
}

function die(death: Death): void {
  switch (death) {
    case "exit":
      process.exit(7);
      break;
    case "throw":
      // At once: a thread that dies while it imports a module leaves the module's descriptor open (Node.js 20), and here
      // it would do so each time.
      queueMicrotask(() => {
        throw new Error("chaos");
      });
      break;
    case "heap": {
      const kept: unknown[] = [];
      for (;;) kept.push(new Array(1_000).fill({}));
    }
    case "spin":
      for (;;);
  }
}
