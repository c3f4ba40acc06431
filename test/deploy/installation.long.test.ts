import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmod, cp, mkdir, stat, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import t, { type Test } from "tap";
import { resolveConfig } from "../../src/config/resolve-config.js";
import { clientMissing } from "../support/clients/require-client.js";
import { makeDirectory } from "../support/write-store.js";
import { deployPath, deployText, fillIn, imageEnvironment, imageUser, readDockerfile } from "./examples.js";
import { startInstances, startStandIns } from "./instances.js";
import { prepareSite } from "./site.js";

t.setTimeout(600_000);

const checkout = join(dirname(deployPath("Dockerfile")), "../..");
/** What `.dockerignore` lets through. */
const context = deployText("Dockerfile.dockerignore")
  .split("\n")
  .filter((line) => line.startsWith("!"))
  .map((line) => line.slice(1));

t.test("the image's variables are options, and its cache is where its user may write", async (t) => {
  const config = resolveConfig({ argv: [], env: imageEnvironment(), cwd: "/" });
  t.equal(config.host, "0.0.0.0");
  t.strictSame(config.observe.admin, { host: "0.0.0.0", port: 9001 });
  const text = deployText("Dockerfile");
  t.match(text, `EXPOSE ${config.port} ${config.observe.admin?.port}`);
  const { user, group } = imageUser();
  t.ok(user > 0 && group > 0, "by number, and not root");
  t.match(
    text,
    `COPY --from=build --chown=${user}:${group} /cache ${dirname(config.cache?.directory ?? "")}\n`,
  );
  t.match(text, `VOLUME ${config.cache?.directory}`);
});

/** MB of the image, as files of whole bytes. */
const MAX_IMAGE_MB = 200;
/** Node.js 24, which the image has. */
const NODE_MB = 127;

t.test(
  "what the Dockerfile builds from what .dockerignore leaves is small, and runs with nothing else",
  { skip: process.getuid?.() !== 0 && "skipped, because chroot needs root" },
  async (t) => {
    const [build] = readDockerfile();
    const directories: Record<string, string> = {};
    for (const path of ["/build", "/image", "/cache"]) directories[path] = await makeDirectory(t);
    const inPlace = (text: string) =>
      text.replaceAll(/(?<![\w/])\/(build|image|cache)(?![\w-])/g, (path) => directories[path] ?? path);
    for (const path of context) {
      const to = join(directories["/build"] ?? "", path);
      await mkdir(dirname(to), { recursive: true });
      await cp(join(checkout, path), to, { recursive: true });
    }
    // Dependencies are those that are here: to install them again takes a minute and a registry.
    const installs = /^npm ci /;
    await symlink(join(checkout, "node_modules"), join(directories["/build"] ?? "", "node_modules"));
    let installed = 0;
    for (const { name, text } of build?.instructions ?? []) {
      if (name !== "RUN") continue;
      if (installs.test(text)) installed++;
      const command = installs.test(text) ? "true" : inPlace(text);
      const options = { cwd: directories["/build"], encoding: "utf8" } as const;
      const run = spawnSync("/bin/sh", ["-c", command], options);
      t.equal(run.status, 0, `${text}\n${run.stdout}${run.stderr}`.slice(0, 2_000));
    }
    t.equal(installed, 1, "dependencies are those of the lock file");
    const image = directories["/image"] ?? "";
    const bytes = Number.parseInt(spawnSync("du", ["-sb", image], { encoding: "utf8" }).stdout, 10);
    const besidesNode = bytes - (await stat(join(image, "usr/local/bin/node"))).size;
    t.ok(besidesNode + NODE_MB * 1e6 < MAX_IMAGE_MB * 1e6, `${besidesNode / 1e6} MB besides Node.js`);
    await runImage(t, image, directories["/cache"] ?? "");
  },
);

/** Passes if the image serves a demonstration as its user, who finds nothing but the image, the cache and Docker's devices. */
async function runImage(t: Test, image: string, cache: string): Promise<void> {
  const { user, group } = imageUser();
  const place = join(image, "var/cache");
  await cp(cache, place, { recursive: true });
  spawnSync("chown", ["-R", `${user}:${group}`, place]);
  await chmod(image, 0o755);
  await mkdir(join(image, "dev"));
  for (const [name, minor] of [
    ["null", "3"],
    ["urandom", "9"],
  ] as const)
    spawnSync("mknod", ["-m", "666", join(image, "dev", name), "c", "1", minor]);
  const { ENTRYPOINT } = Object.fromEntries(
    readDockerfile()
      .at(-1)
      ?.instructions.map(({ name, text }) => [name, text]) ?? [],
  );
  const [program = "", ...options] = JSON.parse(ENTRYPOINT ?? "[]") as string[];
  const child = spawn(
    "/usr/sbin/chroot",
    [`--userspec=${user}:${group}`, image, `/usr/local/bin/${program}`, ...options, "demo"],
    {
      env: { ...imageEnvironment(), ZPUBLISH_PORT: "0", ZPUBLISH_ADMIN_PORT: "0", ZPUBLISH_DRAIN_DELAY: "0" },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  t.teardown(() => child.kill("SIGKILL"));
  let said = "";
  const url = await new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => {
        said += text;
        const found = /ready on (\S+)/.exec(said)?.[1];
        if (found !== undefined) resolve(found);
      });
    child.once("close", () => reject(new Error(`the image ended: ${said}`)));
  });
  const versions = (await (await fetch(`${url}/versions`)).json()) as Record<string, string>;
  t.match(versions["uWebSockets.js"], /^\d/);
  t.notMatch(said, "node:http", "uWebSockets.js serves");
  const values = await fetch(`${url}/datasets/air/select?var=air&isel.time=0&lat=40&lon=-120&f=csv`);
  t.match(await values.text(), /2013-01-01/, "workers make what is asked for");
  const ended = once(child, "close");
  child.kill("SIGTERM");
  t.strictSame((await ended)[0], 0, "a signal ends it well");
}

/** How the container's health check ends. */
async function healthCheck(t: Test, env: Record<string, string>): Promise<number> {
  const child = spawn(process.execPath, [deployPath("health-check.mjs")], { env, stdio: "ignore" });
  t.teardown(() => child.kill("SIGKILL"));
  const [code] = (await once(child, "close")) as [number];
  return code;
}

t.test("the health check ends with 0 where a server lives and with 1 where none does", async (t) => {
  const { datasets } = await prepareSite(t, { name: "noise", chunks: 1, chunkBytes: 2 ** 10 });
  const [instance] = await startInstances(t, 1, { config: { datasets } });
  const port = String(instance?.port);
  t.equal(await healthCheck(t, { ZPUBLISH_PORT: port }), 0);
  t.equal(await healthCheck(t, { ZPUBLISH_PORT: "1", ZPUBLISH_ADMIN_PORT: port }), 0, "the admin port first");
  await instance?.end("SIGTERM");
  t.equal(await healthCheck(t, { ZPUBLISH_PORT: port }), 1, "nobody there");
  const [standIn] = await startStandIns(t, 1);
  if (standIn !== undefined) standIn.conduct = 503;
  t.equal(await healthCheck(t, { ZPUBLISH_PORT: String(standIn?.port) }), 1, "not well");
});

/** What may remain of 10: it needs TCP, /proc and a compiler. */
const EXPOSURE_MAX = 1.5;

const unit = deployText("zpublish.service");

/** All values of a setting. */
function settings(name: string): string[] {
  return [...unit.matchAll(new RegExp(`^${name}=(.*)$`, "gm"))].map(([, value = ""]) => value);
}

t.test(
  "the unit is understood by systemd, and its sandbox is tight",
  { skip: clientMissing("systemd") },
  async (t) => {
    const path = join(await makeDirectory(t), "zpublish.service");
    // Any program that is there.
    await writeFile(path, fillIn(unit, { "/usr/bin/zpublish": process.execPath }));
    const verified = spawnSync("systemd-analyze", ["verify", "--man=no", path], { encoding: "utf8" });
    t.equal(verified.status, 0);
    t.equal(verified.stdout + verified.stderr, "", "without a warning");
    const args = ["security", "--offline=yes", "--no-pager", `--threshold=${EXPOSURE_MAX * 10}`, path];
    const secured = spawnSync("systemd-analyze", args, { encoding: "utf8" });
    t.equal(secured.status, 0, secured.stdout.split("\n").slice(-3).join(" "));
    t.match(secured.stdout, /Overall exposure level for zpublish.service: [01]\.\d OK/);
  },
);

t.test("the unit's options are options, and it waits until a server that drains has ended", async (t) => {
  const environment = Object.fromEntries(
    settings("Environment").flatMap((line) =>
      line.split(" ").map((pair) => pair.split("=") as [string, string]),
    ),
  );
  t.equal(environment.ZPUBLISH_CACHE_DIR, "%C/zpublish");
  t.strictSame(settings("CacheDirectory"), ["zpublish"], "which is what systemd makes for it");
  const { drain } = resolveConfig({
    argv: [],
    env: { ...environment, ZPUBLISH_CACHE_DIR: "/var/cache/zpublish" },
    cwd: "/",
  });
  const stopMs = Number(settings("TimeoutStopSec")[0]) * 1_000;
  t.ok(drain.delayMs >= 5_000, "a balancer looks each second, twice");
  t.ok(stopMs >= drain.delayMs + drain.timeoutMs + 20_000, "closing takes up to twenty seconds");
  t.strictSame(settings("ExecReload"), ["/bin/kill -HUP $MAINPID"]);
  t.strictSame(settings("RestartPreventExitStatus"), ["2"], "the code of a wrong configuration");
});
