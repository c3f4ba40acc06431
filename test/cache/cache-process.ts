/**
 * A process that shares a cache, for tests: `node cache-process.js DIRECTORY MAX_BYTES COMMAND FIRST COUNT PROVEN_AFTER_MS`.
 * Chunks are made from their number, so that any process can tell whether one is right.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { Writable } from "node:stream";
import { fileURLToPath, pathToFileURL } from "node:url";
import { pino } from "pino";
import { type CacheKey, cacheKeyOf } from "../../src/cache/chunk-cache.js";
import { openMaintainedChunkCache } from "../../src/cache/open-cache.js";
import { createLog } from "../../src/observe/log.js";

export const VERSION = "1.2.3-test";

/** Makes the chunk of a number: 4 to 44 kB that differ from all others. */
export function chunkOf(number: number): Uint8Array {
  const byteLength = 4_000 + ((number * 7919) % 40_000);
  const bytes = new Uint8Array(byteLength);
  let state = (number + 1) >>> 0;
  for (let i = 0; i < byteLength; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}

export function keyOf(number: number): CacheKey {
  return cacheKeyOf(`test\0${number}`);
}

/** Path of the store in a directory of the cache. */
export function storeIn(directory: string): string {
  return join(directory, readdirSync(directory).find((name) => /chunks-[0-9a-f]+$/.test(name))!);
}

export function fileBytesIn(directory: string): number {
  return statSync(join(storeIn(directory), "data.mdb")).size;
}

/** Creates a log with its lines. */
export function createTestLog() {
  const lines: string[] = [];
  const stream = new Writable({
    write(line: Buffer, _, done) {
      lines.push(JSON.parse(line.toString()).msg);
      done();
    },
  });
  return { log: pino({ level: "info" }, stream), lines };
}

export type Command = "write" | "read" | "mix";

/** Counts that a process prints at its end. */
export interface Report {
  hits: number;
  wrong: number;
  stats: { errors: number; puts: number; byteLength: number };
}

/** Starts a process, which prints `ready`, and then the report as JSON. */
export function startCacheProcess(
  directory: string,
  maxBytes: number,
  command: Command,
  first: number,
  count: number,
  provenAfterMs = 60_000,
): ChildProcess {
  const program = fileURLToPath(import.meta.url);
  const args = [program, directory, maxBytes, command, first, count, provenAfterMs].map(String);
  return spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
}

/** Waits for the end of a process. The report is absent if it was not printed. */
export async function reportOf(
  child: ChildProcess,
): Promise<{ report?: Report; signal: string | null; stderr: string }> {
  let stdout = "";
  let stderr = "";
  child.stdout?.on("data", (text: Buffer) => {
    stdout += text;
  });
  child.stderr?.on("data", (text: Buffer) => {
    stderr += text;
  });
  const signal = await new Promise<string | null>((resolve) => child.on("close", (_, s) => resolve(s)));
  const last = stdout.trim().split("\n").pop() ?? "";
  return { ...(last.startsWith("{") ? { report: JSON.parse(last) as Report } : {}), signal, stderr };
}

async function run(
  directory: string,
  maxBytes: number,
  command: Command,
  first: number,
  count: number,
  provenAfterMs: number,
) {
  const cache = await openMaintainedChunkCache({
    directory,
    maxBytes,
    log: createLog("warn"),
    version: VERSION,
    flushIntervalMs: 50,
    provenAfterMs,
  });
  if (cache === undefined) throw new Error("no cache");
  await cache.maintain();
  process.stdout.write("ready\n");
  const report: Report = { hits: 0, wrong: 0, stats: { errors: 0, puts: 0, byteLength: 0 } };
  for (let n = first; n < first + count; n++) {
    const key = keyOf(n);
    const found = command === "write" ? undefined : cache.get(key);
    if (found !== undefined) {
      report.hits++;
      if (Buffer.compare(found, chunkOf(n)) !== 0) report.wrong++;
    } else if (command !== "read" && cache.admits(key, 1, "encode")) {
      cache.put(key, chunkOf(n));
    }
    if (n % 8 === 7) await new Promise((resolve) => setImmediate(resolve));
    if (n % 64 === 63) await cache.settle();
  }
  await cache.settle();
  await cache.maintain();
  report.stats = cache.stats;
  await cache.close();
  process.stdout.write(`${JSON.stringify(report)}\n`);
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [directory, maxBytes, command, ...numbers] = process.argv.slice(2);
  const [first, count, provenAfterMs] = numbers.map(Number);
  await run(directory!, Number(maxBytes), command as Command, first!, count!, provenAfterMs!);
}
