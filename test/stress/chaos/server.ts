import { appendFileSync, existsSync, readdirSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Child, startChild, waitForLine } from "../../../bench/children.js";
import { processTree, readResidentMemory } from "../../../bench/process-cost.js";

/** Less than all chunks take. */
const CACHE_BYTES = 16 * 2 ** 20;
const PROGRAM = fileURLToPath(new URL("../../../src/zpublish.cjs", import.meta.url));
const PRELOAD = new URL("fault-preload.js", import.meta.url).href;
const READY_TIMEOUT_MS = 60_000;
const END_TIMEOUT_MS = 30_000;
/** Bounds small enough that the run meets them: `--refresh` and the timeouts in seconds. */
export const REFRESH_SECONDS = 1;
export const CHUNK_TIMEOUT_SECONDS = 4;
export const SOURCE_TIMEOUT_SECONDS = 2;

export interface ChaosServerOptions {
  /** For configuration, cache, faults and log. */
  readonly folder: string;
  readonly processes: number;
  /** Another build's `zpublish.cjs`. */
  readonly program?: string;
}

/** What a program and all of its processes hold. */
export interface Holdings {
  /** Resident bytes, the cache's mapped file left out. */
  readonly memoryBytes: number;
  readonly descriptors: number;
}

/** The real program, started and ended again and again on one port and one cache. */
export class ChaosServer {
  readonly options: ChaosServerOptions;
  readonly port: number;
  /** Where `fault-preload` looks. */
  readonly faults: string;
  readonly cacheFolder: string;
  readonly configFile: string;
  readonly logFile: string;
  /** Called when the program ends by itself. */
  onUnexpectedEnd: (status: number | string) => void = () => {};
  #child: Child | undefined;
  #isEnding = false;

  constructor(options: ChaosServerOptions, port: number) {
    this.options = options;
    this.port = port;
    this.faults = join(options.folder, "faults");
    this.cacheFolder = join(options.folder, "cache");
    this.configFile = join(options.folder, "zpublish.json");
    this.logFile = join(options.folder, "server.log");
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Ids of the processes that answer, if the program itself does not. */
  serverProcesses(): readonly number[] {
    try {
      return processTree(this.pid!).slice(1);
    } catch {
      return [];
    }
  }

  async writeConfig(config: unknown): Promise<void> {
    await writeFile(this.configFile, typeof config === "string" ? config : JSON.stringify(config));
  }

  /** Starts it and waits until it is ready. */
  async start(): Promise<void> {
    const { processes, program = PROGRAM } = this.options;
    const numbers = {
      port: this.port,
      processes,
      workers: 2,
      refresh: REFRESH_SECONDS,
      "cache-size": CACHE_BYTES,
      "chunk-timeout": CHUNK_TIMEOUT_SECONDS,
      "source-timeout": SOURCE_TIMEOUT_SECONDS,
      "request-timeout": 30,
      "worker-memory": "64MiB",
      "drain-timeout": 5,
    };
    const args = Object.entries(numbers).flatMap(([name, value]) => [`--${name}`, String(value)]);
    const others = ["--config", this.configFile, "--cache-dir", this.cacheFolder, "--log-level", "info"];
    const env = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !/^(ZPUBLISH_|TAP|NODE_OPTIONS)/.test(name)),
    );
    this.#isEnding = false;
    const child = await startChild(process.execPath, [program, "serve", ...args, ...others], {
      env: {
        ...env,
        NODE_OPTIONS: `--import=${PRELOAD}`,
        CHAOS_FAULTS: this.faults,
      },
    });
    this.#child = child;
    child.process.stderr!.on("data", (text: string) => appendFileSync(this.logFile, text));
    void child.ended.then((status) => {
      if (this.#child === child && !this.#isEnding) this.onUnexpectedEnd(status);
    });
    await waitForLine(child, /ready on (http:\/\/\S+)/, READY_TIMEOUT_MS);
  }

  /** Ends it with a signal, and waits until all of its processes are gone. @returns Its exit code, or the signal. */
  async end(signal: "SIGTERM" | "SIGKILL"): Promise<number | string> {
    const child = this.#child!;
    this.#isEnding = true;
    const pids = [child.pid, ...this.serverProcesses()];
    process.kill(child.pid, signal);
    const status = await Promise.race([child.ended, sleep(END_TIMEOUT_MS, "still there")]);
    const deadline = performance.now() + END_TIMEOUT_MS;
    while (pids.some((pid) => existsSync(`/proc/${pid}/stat`)) && performance.now() < deadline)
      await sleep(10);
    // A process that is left would answer beside the next one.
    for (const pid of pids.filter((each) => existsSync(`/proc/${each}/stat`))) kill(pid);
    return status;
  }

  /** Kills it if it still runs: so that it does not outlive a run that fails. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.process.exitCode !== null || child.process.signalCode !== null) return;
    await this.end("SIGKILL");
  }

  /** HUP: look at configuration and datasets again. */
  reload(): void {
    process.kill(this.pid!, "SIGHUP");
  }

  /** @throws where the system does not say, or the program has ended. */
  holdings(): Holdings {
    const memory = readResidentMemory(this.pid!);
    if (memory === undefined) throw new Error("expected a running program, and /proc");
    let descriptors = 0;
    for (const pid of processTree(this.pid!)) descriptors += readdirSync(`/proc/${pid}/fd`).length;
    return { memoryBytes: memory.otherBytes, descriptors };
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}
