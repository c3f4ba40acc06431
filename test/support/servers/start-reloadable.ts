import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Test } from "tap";
import { makeDirectory, writeFiles, zgroup } from "../write-store.js";
import { childrenOf, until } from "./process-table.js";
import { PROGRAM, type Run, runScript } from "./run-program.js";

/** The program with a configuration file that can be written anew. */
export interface Reloadable {
  readonly run: Run;
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Of the processes that answer requests. */
  pids(): number[];
  /** Where datasets and what else a test writes can be. */
  readonly directory: string;
  /** Writes the file; the program does not look at it. */
  write(config: string | object): Promise<void>;
  /** Sends HUP, and waits until the log says what came of it. */
  reload(): Promise<"reloaded" | "refused">;
  /** Lines of the log with that message. */
  said(message: string): Readonly<Record<string, unknown>>[];
}

export const CHUNKS = 8;

/** The bytes of a chunk of {@link writeArray}. */
export function chunkOf(seed: number, index: number): Buffer {
  return Buffer.alloc(4_096, `${seed} ${index} `);
}

/** A store with an array `v` of {@link CHUNKS} chunks, of bytes that tell it from others, and attributes. */
export async function writeArray(location: string, seed: number): Promise<string> {
  const chunks = Array.from({ length: CHUNKS }, (_, index) => [`v/${index}`, chunkOf(seed, index)]);
  await writeFiles(location, {
    ".zgroup": zgroup,
    ".zattrs": { seed },
    "v/.zarray": {
      zarr_format: 2,
      shape: [CHUNKS * 4_096],
      chunks: [4_096],
      dtype: "|u1",
      compressor: null,
      fill_value: 0,
      order: "C",
      filters: null,
    },
    ...Object.fromEntries(chunks),
  });
  return location;
}

/** A plugin that answers `/gate` when there is a file, and nothing before that. Its path, and what opens it. */
export async function writeGate(
  directory: string,
): Promise<{ readonly module: string; readonly file: string }> {
  const file = join(directory, "gate-is-open");
  const module = join(directory, "gate.mjs");
  await writeFiles(directory, {
    "gate.mjs": `import { existsSync } from "node:fs";
      import { setTimeout as delay } from "node:timers/promises";
      export default {
        name: "gate", version: "1.0.0", path: "example/gate",
        routes: ({ createDocument }) => [{
          path: "/gate", priority: "chunk", operation: { summary: "gate", contentType: "text/plain" },
          async handler() {
            while (!existsSync(${JSON.stringify(file)})) await delay(10);
            return { kind: "document", document: createDocument("open", "text/plain") };
          },
        }],
      };`,
  });
  return { module, file };
}

/** A token nobody else has. */
export function newToken(): string {
  return randomBytes(16).toString("hex");
}

const OUTCOMES = {
  reloaded: "configuration reloaded",
  refused: "cannot be used; the present one stays",
} as const;

export interface ReloadableOptions {
  readonly processes?: number;
  readonly args?: readonly string[];
  /** What stands in the file at start. */
  readonly config: (directory: string) => object | Promise<object>;
}

/** Starts it; ended with the test. */
export async function startReloadable(
  t: Test,
  { processes = 1, args = [], config }: ReloadableOptions,
): Promise<Reloadable> {
  const directory = await makeDirectory(t);
  const file = join(directory, "config.json");
  const write = (content: string | object) => writeFiles(directory, { "config.json": content });
  await write(await config(directory));
  const run = runScript(PROGRAM, [
    ...["serve", "--config", file, "--processes", String(processes), "--port", "0", "--workers", "1"],
    ...["--cache-dir", join(directory, "cache"), "--refresh", "0", ...args],
  ]);
  t.teardown(async () => {
    run.child.kill("SIGKILL");
    await run.ended;
  });
  await run.says("zpublish ready on ");
  const url = run.stdout().trim().split(" ").at(-1) as string;
  const pid = run.child.pid as number;
  const count = (text: string) => run.stderr().split(text).length - 1;

  return {
    run,
    url,
    port: Number(new URL(url).port),
    pid,
    pids: () => (processes === 1 ? [pid] : childrenOf(pid)),
    directory,
    write,
    async reload() {
      const before = { reloaded: count(OUTCOMES.reloaded), refused: count(OUTCOMES.refused) };
      run.child.kill("SIGHUP");
      await until(
        () => count(OUTCOMES.reloaded) > before.reloaded || count(OUTCOMES.refused) > before.refused,
      );
      return count(OUTCOMES.reloaded) > before.reloaded ? "reloaded" : "refused";
    },
    said(message) {
      const lines = run
        .stderr()
        .split("\n")
        .filter((line) => line.includes(message));
      return lines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
    },
  };
}
