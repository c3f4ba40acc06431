import type { Generation } from "./client-generation.js";
import { runPython } from "./fixtures.js";

/** One line of `compare_with_file.py`. */
export interface Finding {
  readonly kind: string;
  readonly [field: string]: unknown;
}

/**
 * Compares files with the stores that the service makes of them, in one Python process.
 * @param jobs Arguments for each file: its path, the URL of its store, options.
 * @returns The findings about each, the last of which is the summary.
 */
export async function compareWithFiles(
  jobs: readonly (readonly string[])[],
  generation: Generation = "system",
): Promise<readonly (readonly Finding[])[]> {
  const output = await runPython("compare_with_file.py", ["--jobs"], JSON.stringify(jobs), generation);
  const findings: Finding[][] = [[]];
  for (const line of output.trim().split("\n")) {
    const finding = JSON.parse(line) as Finding;
    findings.at(-1)?.push(finding);
    if (finding.kind === "summary") findings.push([]);
  }
  const complete = findings.slice(0, -1);
  if (complete.length !== jobs.length)
    throw new Error(`expected findings about ${jobs.length} files, received ${complete.length}`);
  return complete;
}
