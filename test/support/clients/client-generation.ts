import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { effort } from "../effort.js";

/** Whose clients a test runs: this system's, or those of a root of Debian 13 or 14 that `scripts/install/client-root.sh` makes. */
export type Generation = "system" | "trixie" | "forky";

/** Those with all clients; Debian 14 has GDAL and clients of STAC alone. */
export const GENERATIONS: readonly Generation[] = ["system", "trixie"];

/**
 * Those of tests about where bytes are from, or of what they are made, to which both generations are the same: the newer one, and both with
 * an effort of 1.
 */
export const SOME_GENERATIONS: readonly Generation[] = GENERATIONS.slice(-effort(GENERATIONS.length));

/** The folder of `package.json`. */
export const PACKAGE_ROOT = findPackageRoot();

const ROOTS = {
  trixie: process.env.ZPUBLISH_TEST_ROOT ?? "/var/cache/zpublish/trixie",
  forky: process.env.ZPUBLISH_TEST_NEXT_ROOT ?? "/var/cache/zpublish/forky",
};

// The mounts are in a namespace of their own, so they end with the program.
const ENTER_ROOT = `root=$1; shift
mount --rbind /proc "$root/proc" && mount --rbind /dev "$root/dev" || exit
for folder in "$1" "$2"; do
  mkdir -p "$root$folder" && mount --bind "$folder" "$root$folder" || exit
done
shift 2
exec chroot "$root" "$@"`;

/**
 * The command that runs a program of a generation. In the root, it sees this network, the folder for temporary files and
 * the checkout under the same paths; its working directory is `/`. A signal to the child reaches the program.
 * @param root Another root, of any version of Debian.
 */
export function commandOf(
  generation: Generation,
  program: string,
  args: readonly string[],
  root = generation === "system" ? "/" : ROOTS[generation],
): [program: string, args: string[]] {
  if (generation === "system") return [program, [...args]];
  return [
    "unshare",
    ["--mount", "sh", "-c", ENTER_ROOT, "sh", root, tmpdir(), PACKAGE_ROOT, program, ...args],
  ];
}

/** Says why nothing of a generation can run here; undefined if it may. */
export function generationProblem(generation: Generation): string | undefined {
  if (generation === "system") return undefined;
  if (process.getuid?.() !== 0) return "only root can run clients in another root";
  const root = ROOTS[generation];
  return existsSync(join(root, ".zpublish-clients")) ? undefined : `there is no root of Debian in ${root}`;
}

function findPackageRoot(): string {
  let directory = fileURLToPath(new URL(".", import.meta.url));
  while (!existsSync(join(directory, "package.json"))) {
    const parent = join(directory, "..");
    if (parent === directory) throw new Error("expected a package.json above the tests");
    directory = parent;
  }
  return directory.replace(/\/$/, "");
}
