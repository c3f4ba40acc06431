import { spawnSync } from "node:child_process";
import { cpus, loadavg, totalmem } from "node:os";
import { packageVersions } from "../src/observe/versions.js";
import { packageRoot } from "./data/bench-data.js";
import { wrkVersion } from "./load/wrk-load.js";
import { nginxVersion } from "./subjects/nginx.js";

/** Where and with what the numbers were made, as they stand in the results. */
export function describeMachine(): Record<string, string> {
  const processors = cpus();
  return {
    CPU: `${processors.length} × ${processors[0]?.model.trim() ?? "unknown"}`,
    memory: `${(totalmem() / 2 ** 30).toFixed(1)} GiB`,
    "load average before": loadavg()[0]!.toFixed(2),
    commit: commit(),
    ...packageVersions(),
    nginx: nginxVersion() ?? "not installed",
    wrk: wrkVersion() ?? "not installed",
  };
}

function commit(): string {
  const git = (...args: string[]) => spawnSync("git", args, { cwd: packageRoot(), encoding: "utf8" });
  const { status, stdout } = git("rev-parse", "HEAD");
  if (status !== 0) return "unknown";
  const isChanged = git("status", "--porcelain").stdout !== "";
  return `${stdout.trim()}${isChanged ? ", with changes that are not committed" : ""}`;
}
