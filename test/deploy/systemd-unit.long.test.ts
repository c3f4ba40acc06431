import { spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { resolveConfig } from "../../src/config/resolve-config.js";
import { clientMissing } from "../support/clients/require-client.js";
import { makeDirectory } from "../support/write-store.js";
import { deployText, fillIn } from "./deploy-file.js";

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
