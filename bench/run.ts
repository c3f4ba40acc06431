import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

/**
 * `npm run bench [-- NAME…]`: runs the benchmarks named, or all, one after another and each in a process of its own.
 * None of them asserts anything about time.
 */
const BENCHMARKS: Readonly<Record<string, string>> = {
  "cache-hit-ratio":
    "What the chunk cache keeps, against first-in first-out, least recently used, and the best possible",
};

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !(name in BENCHMARKS));
if (unknown.length > 0) {
  console.error(
    `bench: expected names among ${Object.keys(BENCHMARKS).join(", ")}, received ${unknown.join(", ")}`,
  );
  process.exit(2);
}
for (const name of asked.length > 0 ? asked : Object.keys(BENCHMARKS)) {
  console.log(`\n## ${name}\n\n${BENCHMARKS[name]}.\n`);
  const file = fileURLToPath(new URL(`${name}.js`, import.meta.url));
  const { status } = spawnSync(process.execPath, [file], { stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}
