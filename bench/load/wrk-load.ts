import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { runChild } from "../children.js";
import { readChildrenCpuSeconds } from "../process-cost.js";
import type { LoadRequest, LoadResult } from "./load.js";

/** As `wrk -v` says it; undefined where it is not installed. */
export function wrkVersion(): string | undefined {
  // It prints its version and ends with 1, as for its usage.
  const { stdout, error } = spawnSync("wrk", ["-v"], { encoding: "utf8" });
  return error === undefined ? (/^wrk (\S+)/.exec(stdout)?.[1] ?? "unknown") : undefined;
}

/** Requests for a number of seconds from `wrk` with one thread. wrk counts every status below 400 as good. */
export async function runWrk(load: LoadRequest): Promise<LoadResult> {
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
