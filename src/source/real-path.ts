import { type BigIntStats, lstat, readlink } from "node:fs";
import { dirname, parse, resolve, sep } from "node:path";
import type { FileCalls } from "./file-calls.js";

const MAX_LINKS = 40;

/**
 * The path without links, as realpath(3). Goes from part to part, so that each look is counted at the file system it goes to:
 * a link may lead from a local one to one that hangs.
 * @param path Absolute.
 * @throws NoAnswerError, and system errors: ENOENT where there is nothing, ELOOP where links go round.
 */
export async function realPathOf(calls: FileCalls, path: string): Promise<string> {
  const { root } = parse(path);
  let real = root;
  let rest = partsOf(path.slice(root.length));
  let links = 0;
  for (let part = rest.shift(); part !== undefined; part = rest.shift()) {
    if (part === "..") {
      real = dirname(real);
      continue;
    }
    const next = resolve(real, part);
    if (!(await lookAt(calls, next)).isSymbolicLink()) {
      real = next;
      continue;
    }
    if (++links > MAX_LINKS) throw Object.assign(new Error("too many links"), { code: "ELOOP" });
    const target = await calls.call<string>(next, (done) => readlink(next, done));
    const { root: targetRoot } = parse(target);
    if (targetRoot !== "") real = targetRoot;
    rest = [...partsOf(target.slice(targetRoot.length)), ...rest];
  }
  return real;
}

function lookAt(calls: FileCalls, path: string): Promise<BigIntStats> {
  return calls.call<BigIntStats>(path, (done) => lstat(path, { bigint: true }, done));
}

function partsOf(path: string): string[] {
  return path.split(sep).filter((part) => part !== "" && part !== ".");
}
