import { existsSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { killChildren, runChild, startChild, stopChild, waitForLine } from "../../bench/children.js";
import { readProcessCost } from "../../bench/process-cost.js";

const skip = existsSync("/proc/self/stat") ? false : "skipped, because there is no /proc";

/** Starts a process of its own and says its id. */
const PARENT = `
const { spawn } = require("node:child_process");
const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
console.log("child " + child.pid);
setInterval(() => {}, 1000);`;

t.test("a program that fails is an error with what it said", async (t) => {
  const args = ["-e", 'console.error("no room"); process.exit(3)'];
  await t.rejects(runChild(process.execPath, args), { message: /ended with 3: no room/ });
  const child = await startChild(process.execPath, args);
  await t.rejects(waitForLine(child, /ready/), { message: /ended with 3 before it was ready: no room/ });
  await t.rejects(startChild("/no/such/program", []), { message: /cannot be started/ });
});

t.test(
  "the cost of a process counts its children, and none is known once it has ended",
  { skip },
  async (t) => {
    const child = await startChild(process.execPath, ["-e", PARENT]);
    await waitForLine(child, /child (\d+)/);
    const cost = readProcessCost(child.pid)!;
    t.ok(cost.peakBytes > 2 ** 20 && cost.cpuSeconds >= 0);
    process.kill(-child.pid, "SIGKILL");
    await child.ended;
    t.equal(readProcessCost(child.pid), undefined);
  },
);

t.test("what is killed takes its own children with it", { skip }, async (t) => {
  const child = await startChild(process.execPath, ["-e", PARENT]);
  const [, pid] = await waitForLine(child, /child (\d+)/);
  const other = await startChild(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
  await stopChild(other);
  killChildren();
  t.equal(await child.ended, "SIGKILL");
  for (let i = 0; i < 100 && isAlive(Number(pid)); i++) await sleep(20);
  t.notOk(isAlive(Number(pid)));
});

/** A process that has ended but that nobody has asked about yet is not alive. */
function isAlive(pid: number): boolean {
  const file = `/proc/${pid}/stat`;
  return existsSync(file) && !/\) Z /.test(readFileSync(file, "utf8"));
}
