import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** The `node_modules` that `scripts/install/nodes.sh` installs into. */
export const INSTALLED_PACKAGES = join(
  resolve(
    process.env.ZPUBLISH_TEST_NODES ?? fileURLToPath(new URL("../../../../.build/nodes", import.meta.url)),
  ),
  "node_modules",
);

/** A version of Node.js beside the present one, as `scripts/install/nodes.sh` installs it. */
export interface InstalledNode {
  /** Its major version. */
  readonly major: 24 | 26;
  readonly program: string;
  /** Why a test that needs it is to be skipped, or false if it is there, as of `clientMissing`. */
  readonly missing: string | false;
}

/** Where the program of a newer Node.js is, if it is there. */
export function nodeProgram(major: InstalledNode["major"]): string {
  return join(INSTALLED_PACKAGES, `node-${major}`, "bin", "node");
}

/** A newer Node.js. @throws Error if it is missing though `ZPUBLISH_REQUIRE_CLIENTS=1` says that none may be. */
export function installedNode(major: InstalledNode["major"]): InstalledNode {
  const program = nodeProgram(major);
  if (existsSync(program)) return { major, program, missing: false };
  const why = `${program} is not there: scripts/install/nodes.sh installs it`;
  if (process.env.ZPUBLISH_REQUIRE_CLIENTS === "1") throw new Error(`ZPUBLISH_REQUIRE_CLIENTS=1, but ${why}`);
  return { major, program, missing: `skipped, because ${why}` };
}
