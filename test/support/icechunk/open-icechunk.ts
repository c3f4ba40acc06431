import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { commandOf } from "../clients/client-generation.js";
import { clientMissingIn } from "../clients/require-client.js";
import { INSTALLED_PACKAGES, nodeProgram } from "../servers/installed-node.js";
import { makeDirectory, type Teardown } from "../write-store.js";
import type { At, Change, IcechunkCommand } from "./icechunk-program.js";

const PROGRAM = fileURLToPath(new URL("./icechunk-program.js", import.meta.url));

/** Why tests that write repositories are skipped; false if Icechunk's library is there. */
export const icechunkMissing = (): string | false => clientMissingIn("trixie", "icechunk");

/** Icechunk's own library, in a process of its own. */
export type Icechunk = Awaited<ReturnType<typeof openIcechunk>>;

/** A repository in a directory. */
export type Repository = ReturnType<typeof repositoryAt>;

/** How a repository is made. */
interface RepositoryOptions {
  /** Version of the format. Default: 2. */
  readonly specVersion?: 1 | 2;
  /** Icechunk's `RepositoryConfig`. */
  readonly config?: object;
  /** Default: a new directory, removed after the test. */
  readonly path?: string;
  /** Prefixes of virtual chunks that Icechunk itself may read. */
  readonly authorize?: readonly string[];
  /** Leaves the files of chunks out. */
  readonly withoutChunks?: boolean;
}

/** How much was read, and how long that took. */
interface Timing {
  readonly bytes: number;
  readonly seconds: number;
}

type Ask = (command: IcechunkCommand) => Promise<unknown>;

/** Starts Icechunk's library in the Debian 13 root, and ends it with the test. */
export async function openIcechunk(t: Teardown) {
  const child = spawn(...commandOf("trixie", nodeProgram(24), [PROGRAM, INSTALLED_PACKAGES]), {
    stdio: ["pipe", "pipe", "inherit"],
  });
  t.teardown(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  });
  const waiting: ((line: string) => void)[] = [];
  createInterface({ input: child.stdout })
    .on("line", (line) => waiting.shift()?.(line))
    .on("close", () => {
      for (const answer of waiting) answer(`{"error":"Icechunk's process has ended"}`);
    });
  const ask: Ask = async (command) => {
    const line = await new Promise<string>((resolve) => {
      waiting.push(resolve);
      child.stdin.write(`${JSON.stringify(command)}\n`);
    });
    const { result, error } = JSON.parse(line) as { result?: unknown; error?: string };
    if (error !== undefined) throw new Error(`Icechunk: ${command.op}: ${error}`);
    return result;
  };
  return {
    /** Makes a repository with an empty branch `main`. */
    async create({
      specVersion,
      config,
      path,
      authorize,
      withoutChunks,
    }: RepositoryOptions = {}): Promise<Repository> {
      const directory = path ?? join(await makeDirectory(t), "repository");
      await ask({ op: "create", path: directory, specVersion, config, authorize, withoutChunks });
      return repositoryAt(ask, directory, authorize, withoutChunks);
    },
    /** A repository that exists, such as a copy. */
    at: (path: string, authorize?: readonly string[]) => repositoryAt(ask, path, authorize),
  };
}

function repositoryAt(ask: Ask, path: string, authorize?: readonly string[], withoutChunks?: boolean) {
  const place = { path, authorize, withoutChunks };
  const call = (method: string, ...args: unknown[]) => ask({ op: "call", ...place, method, args });
  return {
    path,
    /** Commits changes to a branch, with another configuration from now on if one is given. @returns The snapshot's id. */
    commit: (message: string, changes: readonly Change[], branch = "main", config?: object) =>
      ask({ op: "commit", ...place, branch, message, changes, config }) as Promise<string>,
    /** Replaces the last commit of `main`. @returns The snapshot's id. */
    amend: (message: string, changes: readonly Change[]) =>
      ask({ op: "commit", ...place, branch: "main", message, changes, how: "amend" }) as Promise<string>,
    /** Commits twice to `main` from one snapshot; the second commit is refused, and rebased. @returns Ids of both snapshots. */
    race: (first: readonly Change[], second: readonly Change[]) =>
      ask({ op: "race", ...place, branch: "main", first, second }) as Promise<[string, string]>,
    /** Calls a method of Icechunk's `Repository`, such as `createTag`. */
    call,
    /** What Icechunk itself reads, by key of the Zarr store; null if absent. @throws Error if it cannot. */
    async read(at: At, keys?: readonly string[]): Promise<Record<string, Buffer | null>> {
      const values = (await ask({ op: "read", ...place, at, keys })) as Record<string, string | null>;
      return Object.fromEntries(
        Object.entries(values).map(([key, value]) => [
          key,
          value === null ? null : Buffer.from(value, "base64"),
        ]),
      );
    },
    /** Writes the files of metadata without compression, which Icechunk itself does not read. */
    inflate: () => ask({ op: "inflate", path }),
    /** Compresses them again. */
    deflate: () => ask({ op: "deflate", path }),
    /** How long it takes to read and decompress a file of metadata, alone. */
    decompress: (file: string) => ask({ op: "decompress", path, file }) as Promise<Timing>,
    /** How long Icechunk itself takes to read chunks, so many at a time. */
    time: (at: At, keys: readonly string[], concurrency: number) =>
      ask({ op: "time", ...place, at, keys, concurrency }) as Promise<Timing>,
  };
}
