import { existsSync, readFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { type LongRunSample, longRunPlot, longRunTable } from "../../bench/capacity/long-run-plot.js";
import { readThreadCost } from "../../bench/capacity/thread-cost.js";
import { killChildren, startChild, stopChild, waitForLine } from "../../bench/children.js";
import { foreignReport } from "../../bench/foreign-files.js";
import { baseBuild, runTable } from "../../bench/harness/harness.js";
import { markdownReport } from "../../bench/harness/report.js";
import { runLoad } from "../../bench/load/load.js";
import { parseBenchOptions } from "../../bench/options.js";
import { readProcessCost, readResidentMemory } from "../../bench/process-cost.js";
import { checkSame } from "../../bench/subjects/check-answers.js";
import { createPeer } from "../../bench/subjects/subject.js";
import type { ForeignOutcome, MeasuredOutcome } from "../foreign/foreign-file.js";
import { makeDirectory } from "../support/write-store.js";

const skip = existsSync("/proc/self/smaps") ? false : "skipped, because there is no /proc/PID/smaps";
const scratch = await makeDirectory(t);

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

t.test("the threads of a process cost what the process costs", { skip }, async (t) => {
  const busy = `const { Worker } = require("node:worker_threads");
    const spin = "const end = Date.now() + 200; while (Date.now() < end);";
    new Worker(spin, { eval: true }).once("exit", () => { console.log("worked"); setInterval(() => {}, 1000); });`;
  const child = await startChild(process.execPath, ["-e", busy]);
  await waitForLine(child, /worked/);
  const { server, others } = readThreadCost(child.pid);
  const sum = (server.user + server.system + others.user + others.system) / 1e6;
  // A thread that has ended counts for the process alone.
  t.ok(sum > 0 && sum <= readProcessCost(child.pid)!.cpuSeconds + 0.05, `${sum} s`);
  await stopChild(child);
});

t.test("a long run is written as a table, and drawn with a line for each column", (t) => {
  const sample = (seconds: number, p99: number): LongRunSample => ({
    ...{ seconds, residentMib: 200.123, mapMib: 20, cacheMib: 250, maxCacheMib: 256, cacheEntries: 7 },
    openFiles: 30,
    kinds: [{ name: "304", p99, rate: 1_000 }],
  });
  const samples = [sample(10, 0.5), sample(20, 40)];
  const [head, first, second] = longRunTable(samples).split("\n");
  t.match(head, /^"seconds","memory MiB",.*"304: p99 ms","304: requests\/s"$/);
  t.equal(first, "10,200.12,20,250,256,7,30,0.5,1000");
  t.equal(second, "20,200.12,20,250,256,7,30,40,1000");
  const plot = longRunPlot(samples);
  t.equal(plot.match(/<polyline /g)?.length, 6, "four of memory, one of latency, one of throughput");
  t.notMatch(plot, /NaN|Infinity/);
  // The first latency lies below the second: y grows downwards.
  const points = [...plot.matchAll(/points="([^"]+)"/g)][4]?.[1]
    ?.split(" ")
    .map((each) => each.split(",").map(Number));
  t.ok(points![0]![1]! > points![1]![1]!);
  t.end();
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
