import { execFile, execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Test } from "tap";
import { defaultDemoDirectory } from "../../scripts/demo/demo-data.js";
import { argumentsOf, processesOf } from "../../scripts/test-processes.js";
import { choose, effort } from "../support/effort.js";
import type { InstalledNode } from "../support/servers/installed-node.js";
import { PROGRAM, runScript } from "../support/servers/run-program.js";
import { makeDirectory } from "../support/write-store.js";

const TESTS = fileURLToPath(new URL("..", import.meta.url));
const TIMEOUT_S = 120;

/**
 * Tests of the whole server that depend on what serves HTTP, on Node's compression, or on its files and threads: under the newest alone, for
 * which there is no binary of uWebSockets.js.
 */
const SERVER_RING = [
  "endpoints",
  "hostile-requests",
  "operations",
  "served-files",
  "single",
  "zarr-stores",
].map((name) => `server/${name}.test.js`);
/** Tests of what serves HTTP, as real sockets see it. `node:http` under the present Node.js has the others. */
const SOCKET_RING = someOf(socketTests(), 0);
/** Codecs, compression and the cache, which take other paths in newer versions, and depend on native code. */
const FAST_PATHS = [
  "http/replies.test.js",
  ...["stored-value", "open-cache"].map((name) => `cache/${name}.test.js`),
  ...["codecs", "make-chunk"].map((name) => `codec/${name}.test.js`),
];
/** Reading of files, and codecs of their chunks, some of which are WebAssembly that packages bring along. */
const FILE_FORMATS = [
  ...["file-source", "hdf5/hdf5-format", "netcdf3/netcdf3-format", "tiff/tiff-format"].map(
    (name) => `formats/${name}.test.js`,
  ),
  "codec/file-codecs.test.js",
];
const NATIVE_ZSTD = `
  import assert from "node:assert";
  import zlib from "node:zlib";
  let calls = 0;
  for (const name of ["zstdCompressSync", "zstdDecompressSync"]) {
    const own = zlib[name];
    zlib[name] = (...args) => { calls += 1; return own(...args); };
  }
  const { zstd } = await import(process.argv[1]);
  const { stepOf } = await import(process.argv[2]);
  const bytes = new Uint8Array(100_000).fill(7);
  const step = stepOf({ id: "zstd", level: 3 }, bytes.length);
  const encoded = await zstd.encode(bytes, step);
  assert.deepEqual(Buffer.from(await zstd.decode(encoded, step)), Buffer.from(bytes));
  console.log(calls);
`;

/** Passes if the service starts, and its tests pass, under a newer Node.js. */
export async function passUnder(t: Test, { major, program }: InstalledNode): Promise<void> {
  await t.test("npm start serves the demonstration's data", async (t) => {
    const { stderr } = await readDemo(t, program);
    // One line, if there is no binary for it here.
    const said = stderr.match(/uWebSockets\.js .* served by node:http/g) ?? [];
    t.ok(said.length <= 1);
    if (major === 26) t.equal(said.length, 1, "there is none for Node.js 26");
  });
  await t.test("two processes share a port", async (t) => {
    await readDemo(t, program, ["--processes", "2"]);
  });
  await t.test("the socket ring passes", (t) => passAll(t, program, SOCKET_RING));
  if (major === 26)
    await t.test("the whole server passes", (t) => passAll(t, program, choose(t, SERVER_RING, 2)));
  await t.test("the fast paths of codecs and cache pass", (t) =>
    passAll(t, program, choose(t, FAST_PATHS, 2)),
  );
  await t.test("files of all formats are read", (t) => passAll(t, program, choose(t, FILE_FORMATS, 2)));
  await t.test("Zstandard is Node's own", async (t) => {
    const files = ["../../src/codec/zstd.js", "../support/codec/steps.js"].map((file) => pathOf(file));
    const calls = execFileSync(program, ["--input-type=module", "-e", NATIVE_ZSTD, ...files], {
      encoding: "utf8",
    });
    t.equal(Number(calls), 2, "one to encode, one to decode");
  });
  await t.test("zarrita reads every value of chunks that are cut anew, in many codecs", (t) =>
    passAll(t, program, ["clients/zarrita.long.test.js"], {
      ZPUBLISH_TEST_VARIANTS: "rechunked-packed",
    }),
  );
}

function pathOf(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}

/** Runs what `npm start` runs, and reads a chunk of it. @returns What it wrote to standard error. */
export async function readDemo(
  t: Test,
  node: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly stderr: string }> {
  const cache = ["--cache-dir", await makeDirectory(t)];
  const run = runScript(PROGRAM, ["demo", "--port", "0", ...cache, ...args], {
    node,
    env,
  });
  t.teardown(async () => {
    run.child.kill("SIGTERM");
    await run.ended;
  });
  await run.says("zpublish ready on ");
  const url = /ready on (\S+)/.exec(run.stdout())?.[1];
  const versions = (await (await fetch(`${url}/versions`)).json()) as Record<string, string>;
  t.equal(`v${versions.node}`, execFileSync(node, ["--version"], { encoding: "utf8" }).trim());
  const chunk = await fetch(`${url}/datasets/air/zarr/air/0.0.0`);
  const stored = await readFile(join(defaultDemoDirectory(), "air.zarr/air/0.0.0"));
  t.ok(Buffer.from(await chunk.arrayBuffer()).equals(stored), "a chunk as it is stored");
  return { stderr: run.stderr() };
}

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

/** Every other test file, and all of them with an effort of 1. @param turn 0 or 1, for those with an even or an odd place. */
export function someOf(files: readonly string[], turn: 0 | 1): string[] {
  return files.filter((_, at) => (at + turn) % 2 < effort(2));
}

/** Runs test files under another Node.js, and passes if each does. @param env Variables besides those here. */
export async function passAll(
  t: Test,
  program: string,
  files: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(TAP|NODE_OPTIONS)/.test(name));
  for (const group of processesOf(files.map((file) => `${TESTS}${file}`))) {
    const options = {
      env: {
        ...Object.fromEntries(inherited),
        TAP_TIMEOUT: String(TIMEOUT_S * group.length),
        // That a version of Node.js does all of it matters here, not how often.
        ZPUBLISH_TEST_EFFORT: "0.1",
        ...env,
      },
      maxBuffer: 2 ** 26,
    };
    const failed = await new Promise<string>((resolve) => {
      execFile(program, argumentsOf(group), options, (error, stdout, stderr) => {
        const lines = stdout.split("\n").filter((line) => /^ *not ok/.test(line));
        const passed = /^# \{ total: /m.test(stdout) ? "" : "no sum of tests";
        resolve(error === null ? passed : `${lines.join("\n")}\n${stderr}`.slice(0, 4_000) || error.message);
      });
    });
    t.equal(failed, "", group.join(" "));
  }
}
