import { resolveConfig } from "../../src/config/resolve-config.js";
import { deployPath } from "./deploy-file.js";

/** Reads an example for instances over a bucket. @returns Why this version cannot run it; false if it can. */
export function bucketRefusal(name: string): string | false {
  const path = deployPath(name);
  try {
    const { datasets } = resolveConfig({ argv: ["--config", path], env: {}, cwd: "/" });
    const local = datasets.find(({ location }) => !location.startsWith("s3://"));
    if (local === undefined) return false;
    return `skipped, because a location in a bucket is taken for the path ${local.location}`;
  } catch (error) {
    const [problem = ""] = (error as Error).message.replaceAll(path, name).split(";");
    if (!/stores|s3:/.test(problem)) throw error;
    return `skipped, because locations in a bucket are refused: ${problem}`;
  }
}
