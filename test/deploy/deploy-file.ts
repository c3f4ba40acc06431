import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Seen from `<build>/test/deploy`, which is two or three folders below the checkout. */
const FOLDERS = ["../../../scripts/deploy/", "../../../../scripts/deploy/"].map((folder) =>
  fileURLToPath(new URL(folder, import.meta.url)),
);

/** Path of an example in `scripts/deploy/`. @throws Error where it is not there. */
export function deployPath(name: string): string {
  for (const folder of FOLDERS) {
    try {
      readFileSync(folder + name);
      return folder + name;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
  throw new Error(`expected an example ${name} in ${FOLDERS.join(" or ")}, found none`);
}

/** Text of an example. */
export function deployText(name: string): string {
  return readFileSync(deployPath(name), "utf8");
}

/**
 * The example with what its head says is to be changed.
 * @param changes From what stands there, literally, to what a test needs: every occurrence.
 * @throws Error where one of them does not stand there: the test would run something else than the example.
 */
export function fillIn(text: string, changes: Readonly<Record<string, string>>): string {
  let filled = text;
  for (const [from, to] of Object.entries(changes)) {
    if (!filled.includes(from)) throw new Error(`expected ${JSON.stringify(from)} in the example`);
    filled = filled.replaceAll(from, to);
  }
  return filled;
}
