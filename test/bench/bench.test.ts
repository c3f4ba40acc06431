import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { killChildren, runChild, startChild, stopChild, waitForLine } from "../../bench/children.js";
import { foreignReport } from "../../bench/foreign-files.js";
import { baseBuild, runTable } from "../../bench/harness/harness.js";
import { markdownReport } from "../../bench/harness/report.js";
import { runLoad } from "../../bench/load/load.js";
import { askAtOnce } from "../../bench/load/raw-http.js";
import { startProbe } from "../../bench/load/run-probe.js";
import { parseBenchOptions } from "../../bench/options.js";
import { readProcessCost, readResidentMemory } from "../../bench/process-cost.js";
import { checkSame } from "../../bench/subjects/check-answers.js";
import { createPeer } from "../../bench/subjects/subject.js";
import type { ForeignOutcome, MeasuredOutcome } from "../foreign/foreign-file.js";

const skip = existsSync("/proc/self/smaps") ? false : "skipped, because there is no /proc/PID/smaps";
const scratch = join(t.testdir({}), "scratch");
mkdirSync(scratch);

async function listening(test: Test, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  test.teardown(() => server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

t.test("a report has medians, ratios within rounds, every round and goals", async (t) => {
  const rates: Readonly<Record<string, readonly number[]>> = { limit: [100, 200, 400], ours: [50, 150, 100] };
  const contestants = Object.entries(rates).map(([name, own]) => ({
    name,
    measure: async (round: number) => ({ "requests/s": own[round] }),
  }));
  const contests = await runTable(
    {
      title: "a table",
      async *contests() {
        const aims = [{ of: "ours", against: "limit", least: 0.6 }];
        yield { contestants, compared: "requests/s", against: ["limit"], aims, notes: ["a note"] };
      },
    },
    {
      ...{ size: "tiny", rounds: 3, seconds: 1, builds: [], peers: [], hasSameHeaders: false },
      freshFolder: (name) => name,
      onProgress: () => {},
    },
  );
  const text = { command: "c", date: "d", machine: { CPU: "2 × x" }, rounds: 3, seconds: 1, notes: ["left"] };
  const report = markdownReport([{ name: "table", title: "a table", contests }], text);
  t.match(report, "| ours | 100 | 50.0–150 | 0.50 (0.25–0.75) |");
  t.match(report, "| ours | 50 | 150 | 100 |");
  t.match(report, "| table: ours: requests/s | at least 0.6 × limit | 0.50 | **no** |");
  t.match(report, "- a note");
});

t.test("options have defaults, and what is not known is refused", (t) => {
  t.match(parseBenchOptions([], ["a"]), { names: [], rounds: 5, seconds: 3, isSmall: false, peers: [] });
  t.match(parseBenchOptions(["a", "--rounds", "7", "--small", "--against", "/base"], ["a"]), {
    ...{ names: ["a"], rounds: 7, isSmall: true, against: "/base" },
  });
  t.throws(() => parseBenchOptions(["b"], ["a"]), { message: /expected names among a, received b/ });
  t.throws(() => parseBenchOptions(["--rounds", "0"], []), { message: /--rounds: expected .* received 0/ });
  t.throws(() => baseBuild("/no/such"), { message: /--against: expected a checkout that was built/ });
  t.throws(() => createPeer("here"), { message: /expected an http:\/\/ URL, received here/ });
  t.end();
});

t.test("a wrong byte is found, and a load fails if an answer does", async (t) => {
  const asked: string[] = [];
  const baseUrl = await listening(t, (request, response) => {
    asked.push(request.url!);
    if (request.url === "/p/bad") response.statusCode = 500;
    const body = Buffer.alloc(100_000, request.url === "/wrong" ? 1 : 0);
    response.setHeader("Content-Length", body.length).end(body);
  });
  const paths = Array.from({ length: 20 }, (_, i) => `/p/${i}`);
  const load = { paths, connections: 4, length: "once" as const, scratch };
  t.match(await runLoad({ baseUrl }, load), { generator: "node", requests: 20, failures: 0 });
  t.same(asked.sort(), paths.toSorted());
  await t.rejects(runLoad({ baseUrl, errorText: () => "out of luck" }, { ...load, paths: ["/p/bad"] }), {
    message: /1 failures beside 1 answers, .* received 500; the server said: out of luck/,
  });
  await checkSame(baseUrl, "/right", Buffer.alloc(100_000));
  await t.rejects(checkSame(baseUrl, "/wrong", Buffer.alloc(100_000)), {
    message: /\/wrong: .*not the same/,
  });
});

t.test("requests at once come whole, and an answer that breaks off is an error", async (t) => {
  let waiting: (() => void)[] = [];
  const baseUrl = await listening(t, (_, response) => {
    waiting.push(() => void response.setHeader("Content-Length", 3).end("yes"));
    if (waiting.length < 40) return;
    for (const answer of waiting) answer();
    waiting = [];
  });
  const answers = await askAtOnce(baseUrl, "/x", 40);
  t.same([...new Set(answers.map(({ status, body }) => `${status} ${body}`))], ["200 yes"]);
  const server = createTcpServer((socket) => {
    socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"));
  }).listen(0, "127.0.0.1");
  t.teardown(() => server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  const broken = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await t.rejects(askAtOnce(broken, "/x", 1), { message: /closed the connection/ });
});

t.test("a probe counts the time that a server stands still", async (t) => {
  let isHeld = false;
  const held: (() => void)[] = [];
  const baseUrl = await listening(t, (_, response) => {
    const answer = () => void response.setHeader("Content-Length", 1).end("1");
    if (isHeld) held.push(answer);
    else answer();
  });
  const probe = await startProbe({ baseUrl, paths: ["/a", "/b", "/a"], pauseMs: 1, scratch });
  isHeld = true;
  await sleep(300);
  isHeld = false;
  for (const answer of held) answer();
  await sleep(100);
  const { all, paths } = await probe.stop();
  t.ok(all.max >= 250, `longest ${all.max}`);
  t.equal(paths["/a"]!.requests + paths["/b"]!.requests, all.requests);
});

t.test("a program that fails is an error with what it said", async (t) => {
  const args = ["-e", 'console.error("no room"); process.exit(3)'];
  await t.rejects(runChild(process.execPath, args), { message: /ended with 3: no room/ });
  const child = await startChild(process.execPath, args);
  await t.rejects(waitForLine(child, /ready/), { message: /ended with 3 before it was ready: no room/ });
  await t.rejects(startChild("/no/such/program", []), { message: /cannot be started/ });
});

t.test("what a process costs is known while it lives, and its children die with it", { skip }, async (t) => {
  const parent = `const child = require("node:child_process").spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
    console.log("child " + child.pid); setInterval(() => {}, 1000);`;
  const child = await startChild(process.execPath, ["-e", parent]);
  const [, pid] = await waitForLine(child, /child (\d+)/);
  const cost = readProcessCost(child.pid)!;
  t.ok(cost.peakBytes > 2 ** 20 && cost.cpuSeconds >= 0);
  const own = readResidentMemory(process.pid)!;
  t.equal(own.cacheMapBytes + own.otherBytes, own.totalBytes);
  const other = await startChild(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
  await stopChild(other);
  killChildren();
  t.equal(await child.ended, "SIGKILL");
  const stat = `/proc/${pid}/stat`;
  // One that has ended, but was not waited for yet, is not alive.
  const isAlive = () => existsSync(stat) && !/\) Z /.test(readFileSync(stat, "utf8"));
  for (let i = 0; i < 100 && isAlive(); i++) await sleep(20);
  t.notOk(isAlive());
  t.equal(readProcessCost(child.pid), undefined);
});

t.test("a report of foreign files counts them, and joins reasons that differ in names alone", (t) => {
  const measured = (id: string, outcome: ForeignOutcome): MeasuredOutcome => ({
    ...{ file: { id, path: `/data/${id}` }, format: "hdf5", outcome, openMs: 3, heldMs: 1 },
  });
  const report = foreignReport([
    measured("one.h5", { equal: 3, refused: { "/a": "'a' has 7 axes", "/b": "'b' has 12 axes" } }),
    measured("two.h5", { refusedFile: "unsupported: two.h5: superblock 9" }),
    measured("three.h5", { refusedFile: "invalid-metadata: three.h5: cut short", oracle: "unreadable" }),
  ]);
  t.match(report, "| hdf5 | 3 | 1 | 1 | 1 | 3 | 2 | 0 | 0 | 0 | 0 |");
  t.match(report, "- **2** × 'a' has 7 axes");
  t.match(report, "`one.h5 /a`, `one.h5 /b`");
  t.end();
});
