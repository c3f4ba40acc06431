import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { cp, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import t, { type Test } from "tap";
import { resolveConfig } from "../../src/config/resolve-config.js";
import { clientMissing } from "../support/clients/require-client.js";
import { makeDirectory } from "../support/write-store.js";
import { deployPath, deployText, fillIn, imageEnvironment, imageUser, readDockerfile } from "./examples.js";
import { startInstances, startStandIns } from "./instances.js";
import { prepareSite } from "./site.js";

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
  t.match(text, `chown ${user}:${group} ${config.cache?.directory}`);
  t.match(text, `VOLUME ${config.cache?.directory}`);
});

t.test(
  "what the Dockerfile builds is a package that runs, from what .dockerignore leaves",
  { timeout: 240_000 },
  async (t) => {
    const [build] = readDockerfile();
    const directories: Record<string, string> = {
      "/build": await makeDirectory(t),
      "/package": join(await makeDirectory(t), "package"),
    };
    const inPlace = (text: string) =>
      text.replaceAll(/(?<!\w)\/(build|package)(?![\w-])/g, (path) => directories[path] ?? path);
    for (const path of context) {
      const to = join(directories["/build"] ?? "", path);
      await mkdir(dirname(to), { recursive: true });
      await cp(join(checkout, path), to, { recursive: true });
    }
    // Dependencies are those that are here: to install them twice more takes a minute and a registry.
    const installs = /npm ci [^&]*/;
    await symlink(join(checkout, "node_modules"), join(directories["/build"] ?? "", "node_modules"));
    let cwd = "/";
    const ran: string[] = [];
    for (const { name, text } of build?.instructions ?? []) {
      if (name === "WORKDIR") cwd = directories[text] ?? text;
      if (name !== "RUN" || text.startsWith("find ")) continue;
      const command = inPlace(text).replace("npm cache clean --force", "true").replace(installs, "true ");
      const run = spawnSync("/bin/sh", ["-c", command], { cwd, encoding: "utf8" });
      t.equal(run.status, 0, `${text}\n${run.stdout}${run.stderr}`.slice(0, 2_000));
      ran.push(text);
    }
    t.ok(
      ran.some((text) => installs.test(text)),
      "dependencies are those of the lock file",
    );
    const built = directories["/package"] ?? "";
    await symlink(join(checkout, "node_modules"), join(built, "node_modules"));
    const program = spawnSync(process.execPath, [join(built, "dist/src/zpublish.cjs"), "--version"], {
      encoding: "utf8",
    });
    const { version } = JSON.parse(await readFile(join(checkout, "package.json"), "utf8")) as {
      version: string;
    };
    t.match(program.stdout, version);
    t.ok(existsSync(join(built, "dist/src/codec/kernel/kernel.wasm")));
    t.ok(existsSync(join(built, "dist/workers")));
  },
);

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
