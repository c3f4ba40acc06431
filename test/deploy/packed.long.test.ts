import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import t, { type Test } from "tap";
import { packageVersion } from "../../src/observe/versions.js";
import { choose, effort } from "../support/effort.js";
import { makeDirectory } from "../support/write-store.js";

t.setTimeout(600_000);

const PACK = fileURLToPath(new URL("../../scripts/pack/pack.js", import.meta.url));

/** MB of an installation, as `du` counts them. */
const MAX_INSTALLED_MB = 110;

const directory = await makeDirectory(t);

function pack(...args: readonly string[]): string[] {
  const env = { ...process.env, PACK_DIRECTORY: directory };
  return execFileSync(process.execPath, [PACK, ...args], { env, encoding: "utf8" })
    .trim()
    .split("\n");
}

/** Runs `zpublish demo` until the test ends. @returns Its URL, and what it says. */
async function startDemo(t: Test, program: string, args: readonly string[] = []) {
  const home = await makeDirectory(t);
  const inherited = Object.entries(process.env).filter(([name]) => !/^(ZPUBLISH_|TAP|NODE_|npm_)/.test(name));
  const env = { ...Object.fromEntries(inherited), XDG_CACHE_HOME: home };
  const child = spawn(program, ["demo", "--port", "0", ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
  const closed = once(child, "close");
  let text = "";
  const ready = new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
        const url = /ready on (\S+)/.exec(text)?.[1];
        if (url !== undefined && text.includes("Ctrl-C")) resolve(url);
      });
    void closed.then(() => reject(new Error(`the program ended: ${text}`)));
  });
  t.teardown(async () => {
    child.kill("SIGTERM");
    await closed;
  });
  return { url: await ready, said: () => text, home };
}

/** Passes if the demonstration is served whole: a chunk as it is stored, one that a worker makes, pages, and the bundled packages. */
async function passDemo(t: Test, program: string, args: readonly string[] = []): Promise<void> {
  const { url, said, home } = await startDemo(t, program, args);
  const read = async (path: string) => {
    const response = await fetch(url + path);
    t.equal(response.status, 200, path);
    return Buffer.from(await response.arrayBuffer());
  };
  const stored = await readFile(join(home, "zpublish/demo/air.zarr/air/0.0.0"));
  t.ok((await read("/datasets/air/zarr/air/0.0.0")).equals(stored));
  t.match(await read("/datasets/air/select?var=air&isel.time=0&lat=40&lon=-120&f=csv"), /2013-01-01/);
  await read("/datasets/air/explore");
  const docs = String(await read("/docs"));
  const [, script = ""] = /src="([^"]*swagger-ui-bundle\.js[^"]*)"/.exec(docs) ?? [];
  t.ok((await read(new URL(script, `${url}/docs`).pathname)).length > 1_000_000, "the page of endpoints");
  const versions = JSON.parse(String(await read("/versions"))) as Record<string, string>;
  t.equal(versions.zpublish, packageVersion);
  t.match(versions["uWebSockets.js"], /^\d/);
  t.notMatch(said(), "node:http", "uWebSockets.js serves");
}

t.test("what is packed installs by npm, small, with the binaries of this platform alone", async (t) => {
  const files = pack();
  const { platform, arch } = process;
  const uws = files.find((file) => file.includes(`uws-${platform}-${arch}-`)) as string;
  const prefix = await makeDirectory(t);
  const install = ["install", "--global", "--prefix", prefix, "--prefer-offline", "--no-audit", "--no-fund"];
  const npm = spawnSync("npm", [...install, files[0] as string, uws], { encoding: "utf8" });
  t.equal(npm.status, 0, npm.stderr);
  const megabytes = Number.parseInt(execFileSync("du", ["-sm", prefix], { encoding: "utf8" }), 10);
  t.ok(megabytes <= MAX_INSTALLED_MB, `${megabytes} MB`);
  await passDemo(t, join(prefix, "bin/zpublish"));

  await t.test("npm takes the binaries that a platform has, or none", async (t) => {
    const optionalDependencies = Object.fromEntries(
      files.slice(1).map((file) => [nameOf(file), `file:${file}`]),
    );
    const folder = await makeDirectory(t);
    await writeFile(join(folder, "package.json"), JSON.stringify({ optionalDependencies }));
    const cases = [
      ["linux", "x64", "glibc", ["uws-linux-x64"]],
      ["linux", "arm64", "glibc", ["uws-linux-arm64"]],
      ["linux", "x64", "musl", []],
      ["darwin", "arm64", undefined, ["uws-darwin-arm64"]],
    ] as const;
    for (const [os, cpu, libc, expected] of choose(t, cases, 2)) {
      const wanted = ["--os", os, "--cpu", cpu, ...(libc === undefined ? [] : ["--libc", libc])];
      const args = ["install", "--no-package-lock", "--offline", "--no-audit", "--no-fund", ...wanted];
      const run = spawnSync("npm", args, { cwd: folder, encoding: "utf8" });
      t.equal(run.status, 0, run.stderr);
      const found = await readdir(join(folder, "node_modules/@zpublish")).catch(() => []);
      t.strictSame(found, expected, wanted.join(" "));
    }
  });

  await t.test("a registry would take it", async (t) => {
    // Those of the platforms are alike.
    for (const file of files.slice(0, 1 + effort(files.length - 1))) {
      const run = spawnSync("npm", ["publish", "--dry-run", file], { encoding: "utf8" });
      t.equal(run.status, 0, run.stderr);
      // It is not logged in.
      t.notMatch(run.stderr, /npm (?:warn (?!publish This command requires you to be logged in)|error)/i);
    }
  });
});

/** Name of a packed platform package. */
function nameOf(file: string): string {
  return `@zpublish/${/uws-[a-z0-9]+-[a-z0-9]+/.exec(basename(file))?.[0]}`;
}

t.test(
  "a single file serves without anything beside it, here in two processes",
  { skip: process.platform !== "linux" },
  async (t) => {
    const [file = ""] = pack("single-file");
    t.equal(basename(file), `zpublish-${packageVersion}-linux-${process.arch}`);
    await passDemo(t, file, ["--processes", "2"]);
    const homeless = spawnSync(file, ["--version"], { env: {}, encoding: "utf8" });
    t.equal(homeless.status, 1);
    t.match(homeless.stderr, "HOME");
  },
);
