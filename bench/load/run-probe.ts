import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Child, startChild, waitForLine } from "../children.js";

const PROBE = fileURLToPath(new URL("probe.js", import.meta.url));
let probes = 0;

/** Small requests one after the other on one connection, to see how long a server keeps them waiting. */
export interface ProbeRequest {
  readonly baseUrl: string;
  /** Asked for in turn; each answers 200. */
  readonly paths: readonly string[];
  /**
   * From one request to the next, where the answer has come by then; otherwise the next is sent at once, and its latency
   * counts from when it was due.
   */
  readonly pauseMs: number;
  /** Undefined: until it is stopped. */
  readonly seconds?: number;
  readonly scratch: string;
}

/** Milliseconds. */
export interface ProbeLatency {
  readonly requests: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export interface ProbeResult {
  readonly seconds: number;
  readonly all: ProbeLatency;
  /** By path. */
  readonly paths: Readonly<Record<string, ProbeLatency>>;
}

/** A probe that is under way: its first answers, which are not counted, have come. */
export interface RunningProbe {
  /** Resolves when its time is over. @throws Error where an answer was not 200. */
  readonly result: Promise<ProbeResult>;
  /** Ends it now. @throws Error where an answer was not 200. */
  stop(): Promise<ProbeResult>;
}

/** Starts a process that asks. @throws Error where there is no first answer. */
export async function startProbe(probe: ProbeRequest): Promise<RunningProbe> {
  const file = join(probe.scratch, `probe-${probes++}.json`);
  writeFileSync(file, JSON.stringify(probe));
  const child = await startChild(process.execPath, [PROBE, file]);
  const result = resultOf(child);
  // A caller that awaits it later receives the error then.
  result.catch(() => undefined);
  await waitForLine(child, /^probing$/m);
  return {
    result,
    stop() {
      child.process.kill("SIGTERM");
      return result;
    },
  };
}

/** Asks for a number of seconds. @throws Error where an answer was not 200. */
export async function runProbe(probe: ProbeRequest & { readonly seconds: number }): Promise<ProbeResult> {
  return (await startProbe(probe)).result;
}

async function resultOf(child: Child): Promise<ProbeResult> {
  let output = "";
  child.process.stdout!.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const status = await child.ended;
  const line = /^result (.*)$/m.exec(output)?.[1];
  if (line === undefined) throw new Error(`a probe ended with ${status}: ${child.errorText().trim()}`);
  return JSON.parse(line) as ProbeResult;
}
