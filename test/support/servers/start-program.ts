import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Test } from "tap";
import { makeDirectory, writeFiles, zgroup } from "../write-store.js";
import { childrenOf, processOfConnection } from "./process-table.js";
import { openConnection, type RawConnection } from "./raw-request.js";
import { PROGRAM, type Run, runScript } from "./run-program.js";

/** The program with several processes, for tests. */
export interface Program {
  readonly run: Run;
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Ids of the server processes. */
  processes(): number[];
  /** Opens a connection to one process. */
  connectTo(pid: number): Promise<RawConnection>;
  /** Opens a connection, and returns it with its process. */
  connect(): Promise<{ readonly connection: RawConnection; readonly pid: number }>;
  /** Chunks that were made so far, by `path coords`. */
  made(): string[];
}

/** Chunks of the store of {@link writeStore}: 256 KiB as stored, made in some ten milliseconds. */
export const CHUNKS = 24;

/** Writes a store with an array `noise` of {@link CHUNKS} chunks in a row. */
export async function writeStore(t: Test): Promise<string> {
  const location = join(await makeDirectory(t), "noise.zarr");
  const chunks = Array.from({ length: CHUNKS }, (_, index): [string, Uint8Array] => {
    // Half of the bytes compress.
    const bytes = Buffer.alloc(2 ** 18, index);
    randomBytes(2 ** 17).copy(bytes);
    return [`noise/${index}.0`, bytes];
  });
  await writeFiles(location, {
    ".zgroup": zgroup,
    ".zattrs": { title: "first" },
    "noise/.zarray": {
      zarr_format: 2,
      shape: [CHUNKS, 2 ** 16],
      chunks: [1, 2 ** 16],
      dtype: "<f4",
      compressor: null,
      fill_value: 0,
      order: "C",
      filters: null,
    },
    "noise/.zattrs": { _ARRAY_DIMENSIONS: ["n", "x"] },
    ...Object.fromEntries(chunks),
  });
  return location;
}

export interface ProgramOptions {
  readonly args?: readonly string[];
  readonly processes?: number;
  /** Level of Zstandard, by which a chunk takes longer. */
  readonly level?: number;
}

/** Starts the program with the dataset `noise` recompressed and as stored (`plain`). The test ends it. */
export async function startProgram(
  t: Test,
  location: string,
  { args = [], processes = 2, level = 12 }: ProgramOptions = {},
): Promise<Program> {
  const directory = await makeDirectory(t);
  await writeFiles(directory, {
    "config.json": {
      datasets: {
        noise: { location, encoding: { compressor: { id: "zstd", level } } },
        plain: location,
      },
    },
  });
  const run = runScript(PROGRAM, [
    "serve",
    ...["--config", join(directory, "config.json"), "--processes", String(processes), "--port", "0"],
    ...["--cache-dir", join(directory, "cache"), "--log-level", "debug", "--refresh", "0", ...args],
  ]);
  t.teardown(async () => {
    run.child.kill("SIGKILL");
    await run.ended;
  });
  await run.says("zpublish ready on ");
  const url = run.stdout().trim().split(" ").at(-1) as string;
  const port = Number(new URL(url).port);
  const pid = run.child.pid as number;

  async function connect() {
    const connection = await openConnection(port);
    t.teardown(() => connection.socket.destroy());
    return { connection, pid: await processOfConnection(childrenOf(pid), port, connection) };
  }

  return {
    run,
    url,
    port,
    pid,
    processes: () => childrenOf(pid),
    connect,
    async connectTo(wanted) {
      for (;;) {
        const found = await connect();
        if (found.pid === wanted) return found.connection;
        found.connection.socket.destroy();
      }
    },
    made() {
      const lines = run
        .stderr()
        .split("\n")
        .filter((line) => line.includes("making a chunk"));
      return lines.map((line) => {
        const { path, chunkCoords } = JSON.parse(line) as { path: string; chunkCoords: number[] };
        return `${path} ${chunkCoords.join(".")}`;
      });
    },
  };
}
