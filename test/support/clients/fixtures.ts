import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Program, type ProgramLogLine, startProgram } from "../servers/start-program.js";
import type { Teardown } from "../write-store.js";
import { commandOf, type Generation, PACKAGE_ROOT } from "./client-generation.js";
import { clientMissingIn, PYTHON } from "./require-client.js";

const PYTHON_TIMEOUT_MS = 420_000;

const FIXTURE_SCRIPTS = join(PACKAGE_ROOT, "test", "fixtures");

/** As in a `.zarray`. */
export interface FixtureCodec {
  readonly id: string;
  readonly [option: string]: unknown;
}

/** What `write_stores.py` says of one array. */
export interface FixtureArray {
  /** File of true values below the fixtures' directory: `.npy`, or `.json` for objects. */
  readonly expected: string;
  /** As in a `.zarray`; byte order is that of the stored items. */
  readonly dtype: string | readonly unknown[];
  readonly shape: readonly number[];
  readonly chunks: readonly number[];
  /** Of v2 stores; v3 stores have names of `codecs` instead. */
  readonly compressor?: FixtureCodec | null;
  readonly filters?: readonly FixtureCodec[];
  readonly codecs?: readonly string[];
  readonly hasMissing?: boolean;
}

/** What `write_stores.py` says of one store. */
export interface FixtureStore {
  readonly format: 2 | 3;
  readonly consolidated: boolean;
  /** Whether every array names its dimensions. */
  readonly dims: boolean;
  /** The library that wrote it. */
  readonly writer: string;
  readonly groups: readonly string[];
  readonly arrays: Readonly<Record<string, FixtureArray>>;
}

export interface Fixtures {
  readonly directory: string;
  readonly stores: Readonly<Record<string, FixtureStore>>;
  /** Absolute path of a store. */
  path(store: string): string;
}

/**
 * The fixture stores, written once per version of the scripts that write them and kept in the build folder. What newer
 * clients write is there if they are. Tests change copies, never these.
 */
export async function openFixtures(): Promise<Fixtures> {
  const hash = createHash("sha256");
  for (const name of readdirSync(FIXTURE_SCRIPTS).sort()) {
    if (name.endsWith(".py")) hash.update(name).update(readFileSync(join(FIXTURE_SCRIPTS, name)));
  }
  const hasNewer = clientMissingIn("trixie", "zarr", "xarray") === false;
  hash.update(String(hasNewer));
  const parent = join(PACKAGE_ROOT, ".build");
  const directory = join(parent, `client-fixtures-${hash.digest("hex").slice(0, 16)}`);
  if (!existsSync(join(directory, "manifest.json"))) {
    await mkdir(parent, { recursive: true });
    const unfinished = await mkdtemp(join(parent, "client-fixtures-unfinished-"));
    await runPython("write_stores.py", [unfinished]);
    if (hasNewer) await runPython("write_zarr3_stores.py", [unfinished], "", "trixie");
    try {
      await rename(unfinished, directory);
    } catch {
      // Another test file was quicker: what it wrote is as good.
      await rm(unfinished, { recursive: true, force: true });
    }
  }
  const manifest = JSON.parse(await readFile(join(directory, "manifest.json"), "utf8"));
  return { directory, stores: manifest.stores, path: (store) => join(directory, "stores", store) };
}

/** Runs a script of `test/fixtures` under the Python of a generation, and returns its standard output. */
export async function runPython(
  script: string,
  args: readonly string[],
  input = "",
  generation: Generation = "system",
): Promise<string> {
  const [python, pythonArgs] = commandOf(generation, PYTHON, [join(FIXTURE_SCRIPTS, script), ...args]);
  const result = await runCommand(python, pythonArgs, input);
  if (result.status !== 0) {
    throw new Error(`${script} ended with ${result.status}: ${result.stderr.trim().slice(-4_000)}`);
  }
  return result.stdout;
}

export interface ProgramResult {
  /** Exit code, or the signal's name. */
  readonly status: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end. */
export function runCommand(
  program: string,
  args: readonly string[],
  input = "",
  env: NodeJS.ProcessEnv = process.env,
): Promise<ProgramResult> {
  const options = {
    env: { ...env, PYTHONDONTWRITEBYTECODE: "1" },
    timeout: PYTHON_TIMEOUT_MS,
    killSignal: "SIGKILL",
    maxBuffer: 2 ** 28,
  } as const;
  return new Promise((resolve) => {
    const child = execFile(program, args, options, (error, stdout, stderr) =>
      resolve({ status: error?.code ?? error?.signal ?? 0, stdout, stderr }),
    );
    child.stdin?.on("error", () => {}).end(input);
  });
}

/** One comparison for `read_back.py`. */
export interface ReadBackJob {
  readonly client: "zarr" | "xarray" | "gdal";
  readonly store: string;
  /** Of the store, without a slash at its end. */
  readonly url: string;
  readonly [option: string]: unknown;
}

export interface ReadBack {
  /** Arrays compared. */
  readonly compared: number;
  /** One line each; none where every value is right. */
  readonly differences: readonly string[];
}

/** Compares what real clients of a generation read with the truth, in one Python process. */
export async function readBack(
  fixtures: Fixtures,
  jobs: readonly ReadBackJob[],
  generation: Generation = "system",
): Promise<ReadBack> {
  const input = JSON.stringify({ fixtures: fixtures.directory, jobs });
  return JSON.parse(await runPython("read_back.py", [], input, generation));
}

export interface ServedDatasets {
  /** `datasets` of the configuration file. */
  readonly datasets: Readonly<Record<string, unknown>>;
  /** `stores` of the configuration file. Default: none. */
  readonly stores?: Readonly<Record<string, unknown>>;
  /** Further variables of the program. */
  readonly env?: Readonly<Record<string, string>>;
  /** For the configuration file; the caller removes it. */
  readonly directory: string;
  /** Kept from one run to the next if it is the same. Default: below `directory`. */
  readonly cacheDir?: string;
  readonly args?: readonly string[];
}

/** Starts the program with these datasets, and waits until it is ready. */
export function serveDatasets(
  t: Teardown,
  { datasets, stores = {}, cacheDir, args = [], ...options }: ServedDatasets,
): Promise<Program> {
  const cache = ["--cache-size", "512MiB", ...(cacheDir === undefined ? [] : ["--cache-dir", cacheDir])];
  return startProgram(t, { config: { datasets, stores }, args: [...cache, ...args], ...options });
}

/** Lines that say something went wrong: errors, and warnings about requests. A clean log has none. */
export function errorsOf(server: Program): readonly ProgramLogLine[] {
  return server.log().filter(({ level, code }) => level >= 50 || (level >= 40 && code !== undefined));
}

/** A new directory outside the repository; the caller removes it. */
export function makeTemporaryDirectory(): Promise<string> {
  return mkdtemp(join(tmpdir(), "zpublish-clients-"));
}
