import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Test } from "tap";
import { PYTHON } from "./clients/require-client.js";

/** The program, which lies beside the TypeScript file. */
const SCRIPT = fileURLToPath(new URL(import.meta.url))
  .replace(/\/(\.build\/[^/]+|dist)\/test\//, "/test/")
  .replace(/fault-mount\.js$/, "fault-file-system.py");

/** A directory behind a file system that fails by rules: read from `directory`, write to `behind`. */
export type FaultMount = Awaited<ReturnType<typeof mountFaults>>;

/** Reason why such a file system cannot be mounted, for tap's `skip`; false if it can. */
export function faultMountMissing(): string | false {
  const problem = whyMissing();
  if (problem !== false && process.env.ZPUBLISH_REQUIRE_CLIENTS === "1") {
    throw new Error(`ZPUBLISH_REQUIRE_CLIENTS=1, but ${problem}; scripts/install/clients.sh installs it`);
  }
  return problem === false ? false : `skipped, because ${problem}`;
}

function whyMissing(): string | false {
  if (process.platform !== "linux") return "FUSE is tried on Linux only";
  const probe = spawnSync(PYTHON, ["-c", "import fusepy, os; os.close(os.open('/dev/fuse', os.O_RDWR))"]);
  if (probe.status !== 0) return "python3-fusepy or /dev/fuse is not there";
  if (process.getuid?.() !== 0 && spawnSync("fusermount", ["-V"]).status !== 0)
    return "only root can mount without fusermount";
  return false;
}

/**
 * Mounts one, and unmounts it when the test ends.
 * @param isTyped Whether listings tell what is a directory. Default false.
 */
export async function mountFaults(t: Pick<Test, "teardown">, isTyped = false) {
  const [behind = "", directory = "", own = ""] = await Promise.all(
    ["behind", "mount", "rules"].map((name) => mkdtemp(join(tmpdir(), `zpublish-${name}-`))),
  );
  const rules = join(own, "rules");
  await writeFile(rules, "");
  const child = spawn(PYTHON, [SCRIPT, behind, directory, rules, ...(isTyped ? ["typed"] : [])], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  const mounted = once(child.stdout, "data").then(() => true);
  if (!(await Promise.race([mounted, ended.then(() => false)]))) throw new Error("nothing was mounted");

  async function end(): Promise<void> {
    child.kill("SIGKILL");
    await ended;
  }
  t.teardown(async () => {
    await end();
    const unmount = process.getuid?.() === 0 ? ["umount", "-l"] : ["fusermount", "-u", "-z"];
    spawnSync(unmount[0] as string, [...unmount.slice(1), directory], { stdio: "ignore" });
    for (const path of [behind, directory, own]) await rm(path, { recursive: true, force: true });
  });
  return {
    directory,
    behind,
    end,
    /** Sets the rules of `fault-file-system.py`, such as `hang read /a/*`. They hold at once, until the next call. */
    async fail(...lines: readonly string[]): Promise<void> {
      await writeFile(`${rules}.new`, lines.map((line) => `${line}\n`).join(""));
      await rename(`${rules}.new`, rules);
    },
  };
}
