import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runChild } from "../children.js";
import type { Figures } from "../harness/harness.js";
import { readChildrenCpuSeconds, readProcessCost } from "../process-cost.js";

/** Requests to be sent to one subject. */
export interface LoadRequest {
  /** Without a slash at its end. */
  readonly baseUrl: string;
  /** Asked for in turn. */
  readonly paths: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  /** How long (with `isOnce` until every path has been asked for, if that is earlier), or `once`: every path once. */
  readonly length: { readonly seconds: number; readonly isOnce?: boolean } | "once";
  /** The one status that is no failure. */
  readonly status: number;
  /** For files of the generator. */
  readonly scratch: string;
}

export interface LoadResult {
  readonly generator: "wrk" | "node";
  readonly requests: number;
  readonly seconds: number;
  /** Milliseconds from request to last byte. */
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  /** Answers of another status, and broken connections; anything above 0 makes the round worth nothing. */
  readonly failures: number;
  /** The first failure; undefined if there is none, or if the generator does not say. */
  readonly firstFailure?: string | undefined;
  /** CPU of the generator, which has one thread; undefined where the system does not say. */
  readonly generatorCpuSeconds?: number | undefined;
}

const GENERATOR = fileURLToPath(new URL("node-generator.js", import.meta.url));

/** Requests from a Node process of its own, which may be slower than the server it asks. */
async function runNodeLoad(load: LoadRequest): Promise<LoadResult> {
  const file = join(load.scratch, "load.json");
  writeFileSync(file, JSON.stringify(load));
  return JSON.parse(await runChild(process.execPath, [GENERATOR, file])) as LoadResult;
}

/** As `wrk -v` says it; undefined where it is not installed. */
export function wrkVersion(): string | undefined {
  // It prints its version and ends with 1, as for its usage.
  const { stdout, error } = spawnSync("wrk", ["-v"], { encoding: "utf8" });
  return error === undefined ? (/^wrk (\S+)/.exec(stdout)?.[1] ?? "unknown") : undefined;
}

/** Requests for a number of seconds from `wrk` with one thread. wrk counts every status below 400 as good. */
async function runWrk(load: LoadRequest): Promise<LoadResult> {
  if (load.length === "once" || load.length.isOnce) throw new Error("wrk cannot ask for every path once");
  const script = join(load.scratch, "wrk.lua");
  writeFileSync(script, wrkScript(load));
  const headers = Object.entries(load.headers).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
  const before = readChildrenCpuSeconds();
  const output = await runChild("wrk", [
    ...["--threads", "1", "--connections", String(load.connections), "--latency", "--timeout", "30s"],
    ...[
      "--duration",
      `${load.length.seconds}s`,
      "--script",
      script,
      ...headers,
      load.baseUrl + load.paths[0],
    ],
  ]);
  const after = readChildrenCpuSeconds();
  const line = /^result (\{.*\})$/m.exec(output)?.[1];
  if (line === undefined)
    throw new Error(`wrk: expected a line of results, received ${output.slice(0, 1_000)}`);
  return {
    generator: "wrk",
    ...(JSON.parse(line) as Omit<LoadResult, "generator">),
    generatorCpuSeconds: before === undefined || after === undefined ? undefined : after - before,
  };
}

/**
 * Requests are made before the run, and one path needs no script per request. No `response()`: wrk would copy every
 * body into Lua, at a third of the rate.
 */
function wrkScript({ baseUrl, paths }: LoadRequest): string {
  const prefix = new URL(baseUrl).pathname.replace(/\/+$/, "");
  const rotation = `
local paths = {${paths.map((path) => JSON.stringify(prefix + path)).join(",")}}
local requests, next = {}, 0
function init(args)
  for i, path in ipairs(paths) do requests[i] = wrk.format("GET", path) end
end
function request()
  next = next % #requests + 1
  return requests[next]
end
`;
  return `${paths.length > 1 ? rotation : ""}
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    'result {"requests":%d,"seconds":%.6f,"p50":%.3f,"p90":%.3f,"p99":%.3f,"failures":%d}\\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(90) / 1e3,
    latency:percentile(99) / 1e3, e.connect + e.read + e.write + e.status + e.timeout))
end
`;
}

/** A server that is asked. */
export interface LoadTarget {
  /** Without a slash at its end. */
  readonly baseUrl: string;
  /** Undefined if the process is not ours. */
  readonly pid?: number | undefined;
  /** The end of what it wrote to standard error. */
  errorText?(): string;
}

/** Requests to a server: {@link LoadRequest} with defaults. */
export interface MeasuredLoad extends Pick<LoadRequest, "paths" | "connections" | "length" | "scratch"> {
  readonly headers?: LoadRequest["headers"];
  /** Default 200. */
  readonly status?: number;
  /** What is counted, in the titles of figures. Default `requests`. */
  readonly unit?: string;
  /** Bytes of a mean body, if they are to be counted. */
  readonly bytes?: number;
}

/** The system counts in steps of 10 ms: less than this is too coarse to be shown. */
const MIN_CPU_SECONDS = 0.1;

/** Sends requests, from wrk if it is installed and can do it. @throws Error if anything failed. */
export async function runLoad(target: LoadTarget, load: MeasuredLoad): Promise<LoadResult> {
  const { paths, connections, length, scratch, headers = {}, status = 200 } = load;
  const request: LoadRequest = {
    ...{ baseUrl: target.baseUrl, paths, connections, length, scratch, headers, status },
  };
  // wrk takes whole seconds only, and cannot ask for every path once.
  const isForWrk = length !== "once" && length.isOnce !== true && Number.isInteger(length.seconds);
  const result = await (isForWrk && wrkVersion() !== undefined ? runWrk(request) : runNodeLoad(request));
  if (result.failures === 0) return result;
  const said = target.errorText?.().trim() ?? "";
  throw new Error(
    `${result.failures} failures beside ${result.requests} answers, the first one: ${result.firstFailure ?? "unknown"}${said === "" ? "" : `; the server said: ${said}`}`,
  );
}

/** Sends requests and returns what they cost. @throws Error if anything failed. */
export async function measureLoad(target: LoadTarget, load: MeasuredLoad): Promise<Figures> {
  const { unit = "requests", bytes } = load;
  const before = target.pid === undefined ? undefined : readProcessCost(target.pid);
  const { requests, seconds, p50, p90, p99, generatorCpuSeconds } = await runLoad(target, load);
  const after = target.pid === undefined ? undefined : readProcessCost(target.pid);
  const used = before && after && after.cpuSeconds - before.cpuSeconds;
  const cpuSeconds = used === undefined || used < MIN_CPU_SECONDS ? undefined : used;
  const one = unit.replace(/s$/, "");
  return {
    [`${unit}/s`]: requests / seconds,
    ...(bytes !== undefined && { "MiB/s": (requests * bytes) / 2 ** 20 / seconds }),
    ...{ "p50 ms": p50, "p90 ms": p90, "p99 ms": p99 },
    [`CPU µs/${one}`]: cpuSeconds && (cpuSeconds * 1e6) / requests,
    "peak MiB": after && after.peakBytes / 2 ** 20,
    "load CPU": generatorCpuSeconds && generatorCpuSeconds / seconds,
  };
}
