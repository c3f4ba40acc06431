import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Test } from "tap";

const TESTS = fileURLToPath(new URL("..", import.meta.url));
const TIMEOUT_S = 120;

/** The quick test files of a folder of tests and the folders in it, as paths from `dist/test/`. */
function quickTests(folder: string): string[] {
  return readdirSync(`${TESTS}${folder}`, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".test.js") && !file.endsWith(".long.test.js"))
    .map((file) => `${folder}/${file}`)
    .sort();
}

/** The quick test files of HTTP that open sockets. The others know nothing of what serves HTTP. */
export function socketTests(): string[] {
  return quickTests("http").filter((file) =>
    /support\/servers/.test(readFileSync(`${TESTS}${file}`, "utf8")),
  );
}

/** Runs test files one after the other under another Node.js, and passes if each does. @param env Variables besides those here. */
export async function passAll(
  t: Test,
  program: string,
  files: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(TAP|NODE_OPTIONS)/.test(name));
  const options = {
    env: { ...Object.fromEntries(inherited), TAP_TIMEOUT: String(TIMEOUT_S), ...env },
    maxBuffer: 2 ** 26,
  };
  for (const file of files) {
    const failed = await new Promise<string>((resolve) => {
      execFile(program, [`${TESTS}${file}`], options, (error, stdout, stderr) => {
        const lines = stdout.split("\n").filter((line) => /^ *not ok/.test(line));
        resolve(error === null ? "" : `${lines.join("\n")}\n${stderr}`.slice(0, 4_000) || error.message);
      });
    });
    t.equal(failed, "", file);
  }
}
