import { fork } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { freePort } from "../../../bench/free-port.js";
import { formatNumber, markdownTable } from "../../../bench/harness/report.js";
import { createRandom } from "../../../bench/random.js";
import { percentile } from "../../../bench/statistics.js";
import { type FaultyOrigin, startFaultyOrigin } from "../../support/origins/faulty-origin.js";
import { CHAOS_KEYS, POISON_DATASET } from "./arrays.js";
import type { ChaosClientOrder } from "./client.js";
import { type ChaosEvent, configDocument, EVENTS, excusePoison, REWRITES, type Stage } from "./events.js";
import { Judge, type Observation, type Verdict } from "./judge.js";
import { ChaosServer, type ChaosServerOptions, type Holdings } from "./server.js";
import { ChaosStore } from "./store.js";
import { now } from "./timeline.js";

const CLIENT = fileURLToPath(new URL("client.js", import.meta.url));
const CLIENTS = 2;
const CONNECTIONS = 8;
const PAUSE_MS = 12;
const REWRITE_EVERY_MS = 40;
const EVENT_EVERY_MS = 600;
/** Observations are judged when what happened at the time is known: also that the program has ended by itself. */
const JUDGE_AFTER_MS = 1_500;
/** Restarts happen within this share of a run, so that what leaks afterwards is seen. */
const RESTARTS_UNTIL = 0.5;
/** After the last client is gone: workers without work stay for a minute, with six descriptors each. */
const SETTLE_TIMEOUT_MS = 90_000;
/** What the end may hold more than the beginning. */
const MEMORY_BOUND_BYTES = 256 * 2 ** 20;
const DESCRIPTOR_BOUND = 24;

export interface ChaosOptions extends ChaosServerOptions {
  readonly seed: number;
  readonly seconds: number;
  /** Names of events must contain one of these; empty: all. */
  readonly only?: readonly string[];
  onProgress(done: number, detail: string): void;
}

/** What a run has found. */
export interface ChaosReport {
  readonly processes: number;
  readonly seconds: number;
  readonly tally: Tally;
  /** How often each event happened. */
  readonly events: ReadonlyMap<string, number>;
  /** When every URL had been read once, and before the clients began. */
  readonly before: Holdings;
  readonly after: Holdings;
  readonly notes: readonly string[];
  /** Whatever makes the run fail, besides what the tally has. */
  readonly failures: readonly string[];
}

/** Problems whose text is kept. */
const MAX_PROBLEMS = 40;

/** Counts what came of requests. */
class Tally {
  requests = 0;
  wrong = 0;
  failed = 0;
  /** By status; 0: no answer. */
  readonly statuses = new Map<number, number>();
  /** Excused failures, by `trouble: event`. */
  readonly excused = new Map<string, number>();
  /** Failures that nothing excuses, by kind. */
  readonly failures = new Map<string, number>();
  /** The first of what was wrong or failed. */
  readonly problems: string[] = [];
  /** Milliseconds. */
  readonly latencies: number[] = [];

  add(seen: Observation, verdict: Verdict): void {
    this.requests++;
    count(this.statuses, seen.status);
    if (seen.status !== 0) this.latencies.push(seen.until - seen.from);
    if (verdict.kind === "excused") count(this.excused, `${verdict.trouble}: ${verdict.event}`);
    if (verdict.kind === "right" || verdict.kind === "excused") return;
    if (verdict.kind === "failed") count(this.failures, verdict.trouble);
    this[verdict.kind]++;
    const name = verdict.kind === "wrong" ? "WRONG" : "failed";
    if (this.problems.length < MAX_PROBLEMS) this.problems.push(`${name}: ${verdict.problem}`);
  }
}

function count<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** Whether a run found nothing. */
export function isClean({ tally, failures }: ChaosReport): boolean {
  return tally.wrong === 0 && tally.failed === 0 && failures.length === 0;
}

/** Returns the report as Markdown. */
export function chaosText(report: ChaosReport, seed: number): string {
  const { tally, events, before, after, notes, failures, processes, seconds } = report;
  const mib = (bytes: number) => formatNumber(bytes / 2 ** 20);
  const sorted = <K>(map: ReadonlyMap<K, number>) =>
    [...map].map(([key, n]) => [String(key), n] as const).sort(([a], [b]) => (a < b ? -1 : 1));
  const latencies = Float64Array.from(tally.latencies).sort();
  const latencyText = [50, 90, 99, 99.9].map((p) => `p${p} ${formatNumber(percentile(latencies, p))} ms`);
  return [
    `### ${processes} ${processes === 1 ? "process" : "processes"}, ${seconds} s, seed ${seed}`,
    "",
    `- ${tally.requests.toLocaleString("en-US")} requests; **wrong bytes ${tally.wrong}**, failed without an excuse ${tally.failed}.`,
    `- Latency: ${latencyText.join(", ")}.`,
    `- Memory: ${mib(before.memoryBytes)} MiB at the start, ${mib(after.memoryBytes)} MiB at the end (bound: ${mib(MEMORY_BOUND_BYTES * processes)} more).`,
    `- File descriptors: ${before.descriptors} at the start, ${after.descriptors} at the end (bound: ${DESCRIPTOR_BOUND * processes} more).`,
    "",
    ...markdownTable(
      ["answer", "requests"],
      sorted(tally.statuses).map(([status, n]) => [status === "0" ? "none" : status, n]),
    ),
    "",
    ...markdownTable(["failure: excused by", "requests"], sorted(tally.excused)),
    "",
    ...markdownTable(["event", "times"], sorted(events)),
    "",
    ...[...new Set(notes)].map((note) => `- ${note}`),
    ...sorted(tally.failures).map(([kind, n]) => `- **FAILED** ${n} × ${kind}`),
    ...tally.problems.map((problem) => `- ${problem}`),
    ...failures.map((failure) => `- **FAILED** ${failure}`),
    isClean(report) ? "- Nothing failed." : "- **Something failed.**",
    "",
  ].join("\n");
}

/** Serves, reads and breaks things for a while. Whatever it started has ended when it returns or throws. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const server = new ChaosServer(options, await freePort());
  const store = new ChaosStore(join(options.folder, "data"));
  let stopOrigin: () => unknown = () => {};
  const teardown = (stop: () => unknown) => {
    stopOrigin = stop;
  };
  try {
    const origin = await startFaultyOrigin({ teardown }, { directory: store.folder });
    return await runWith(server, store, origin, options);
  } finally {
    server.onUnexpectedEnd = () => {};
    await server.kill();
    await stopOrigin();
  }
}

async function runWith(
  server: ChaosServer,
  store: ChaosStore,
  origin: FaultyOrigin,
  options: ChaosOptions,
): Promise<ChaosReport> {
  const { seconds, processes, seed } = options;
  mkdirSync(server.faults, { recursive: true });
  const judge = new Judge();
  excusePoison(judge);
  const notes: string[] = [];
  const failures: string[] = [];
  const stage: Stage = {
    ...{ server, store, origin, judge },
    random: createRandom(seed),
    versions: new Map(),
    busyFiles: new Set(),
    note: (text) => {
      (text.startsWith("FAILED") ? failures : notes).push(text);
    },
    config: { hasVisitor: true, visitorCoding: "zstd" },
  };
  await store.create();
  await server.writeConfig(configDocument(stage));
  await server.start();
  await readAll(server.port);
  await sleep(1_000);
  const before = server.holdings();
  const { tally, events } = await playEvents(stage, failures, options);

  for (const problem of await readAll(server.port, judge)) failures.push(problem);
  const after = await settled(server, before);
  failures.push(...leaks(before, after, processes));
  server.onUnexpectedEnd = () => {};
  const status = await server.end("SIGTERM");
  if (status !== 0) failures.push(`expected to end with 0, ended with ${status}`);
  failures.push(...uncaughtIn(server.logFile));
  return { processes, seconds, tally, events, before, after, notes, failures };
}

/** Lets clients read and events happen until the time is over. @param failures Receives what no event explains. */
async function playEvents(
  stage: Stage,
  failures: string[],
  { seconds, seed, only = [], onProgress }: ChaosOptions,
): Promise<Pick<ChaosReport, "tally" | "events">> {
  const { server, judge } = stage;
  const tally = new Tally();
  const events = new Map<string, number>();
  const begin = now();
  let isOver = false;
  let recovering: Promise<void> | undefined;
  server.onUnexpectedEnd = (status) => {
    const after = `${(now() - begin).toFixed(0)} ms after the start`;
    failures.push(`the program ended by itself with ${status}, ${after}`);
    const settle = judge.excuse("program ended by itself", ["no answer", "broken off"]);
    recovering = server.start().then(() => settle(500));
  };

  const waiting: Observation[] = [];
  function judgeUntil(moment: number): void {
    let i = 0;
    for (; i < waiting.length && waiting[i]!.until < moment; i++)
      tally.add(waiting[i]!, judge.judge(waiting[i]!));
    waiting.splice(0, i);
  }

  /** Events one after the other. Its random numbers are its own, so that the seed tells their order. */
  async function lane(all: readonly ChaosEvent[], pauseMs: number, number: number): Promise<void> {
    const list = all.filter(({ name }) => only.length === 0 || only.some((text) => name.includes(text)));
    const random = createRandom(seed * 10 + number);
    for (;;) {
      await sleep(random() * 2 * pauseMs);
      const done = (now() - begin) / (seconds * 1_000);
      if (isOver || done >= 1) return;
      const possible = list.filter(({ isRestart }) => done < RESTARTS_UNTIL || isRestart !== true);
      onProgress(done, `${tally.requests} requests`);
      if (possible.length === 0) continue;
      await recovering;
      const event = draw(possible, random);
      try {
        if ((await event.happens(stage)) !== false) count(events, event.name);
      } catch (error) {
        failures.push(`event "${event.name}": ${(error as Error).stack ?? error}`);
      }
    }
  }

  const children = startClients(seed, server.port, (seen) => {
    waiting.push(...seen);
    judgeUntil(now() - JUDGE_AFTER_MS);
  });
  try {
    const lanes = [lane(REWRITES, REWRITE_EVERY_MS, 1), lane(EVENTS, EVENT_EVERY_MS, 2)];
    await Promise.all([...lanes, sleep(seconds * 1_000)]);
  } finally {
    isOver = true;
    await children.stop();
  }
  judgeUntil(Number.POSITIVE_INFINITY);
  await recovering;
  return { tally, events };
}

function draw(list: readonly ChaosEvent[], random: () => number): ChaosEvent {
  let left = random() * list.reduce((sum, { weight }) => sum + weight, 0);
  for (const event of list) {
    left -= event.weight;
    if (left < 0) return event;
  }
  return list.at(-1)!;
}

/**
 * Asks for everything once.
 * @param judge Says what is true now; nothing happens meanwhile. @returns What was not as it says.
 */
async function readAll(port: number, judge?: Judge): Promise<string[]> {
  const problems: string[] = [];
  // Metadata that changed last is served by now, and whatever was broken is whole.
  if (judge !== undefined) await sleep(6_000);
  for (const [key, { url, dataset, kind }] of CHAOS_KEYS.entries()) {
    if (dataset === POISON_DATASET && kind === "chunk") continue;
    const from = now();
    const response = await fetch(`http://127.0.0.1:${port}${url}`);
    await response.arrayBuffer();
    const verdict = judge?.judge({ key, status: response.status, from, until: now() });
    if (verdict?.kind === "wrong" || verdict?.kind === "failed")
      problems.push(`at the end, ${verdict.problem}`);
  }
  return problems;
}

function startClients(seed: number, port: number, onSeen: (seen: readonly Observation[]) => void) {
  const clients = Array.from({ length: CLIENTS }, (_, i) => {
    const order: ChaosClientOrder = {
      port,
      seed: seed * 100 + i,
      connections: CONNECTIONS,
      pauseMs: PAUSE_MS,
    };
    const child = fork(CLIENT, [JSON.stringify(order)], { stdio: "inherit" });
    const done = new Promise<void>((resolve, reject) => {
      child.on("message", (message: readonly Observation[] | "done") => {
        if (message === "done") resolve();
        else onSeen(message);
      });
      child.once("exit", (status) => reject(new Error(`a client ended with ${status}`)));
    });
    done.catch(() => undefined);
    return { child, done };
  });
  return {
    async stop(): Promise<void> {
      for (const { child } of clients) if (child.connected) child.send("stop");
      try {
        await Promise.all(clients.map(({ done }) => done));
      } finally {
        // Which ends them.
        for (const { child } of clients) if (child.connected) child.disconnect();
      }
    },
  };
}

/** Waits until the program holds no more than it may, for some time. */
async function settled(server: ChaosServer, before: Holdings): Promise<Holdings> {
  const deadline = now() + SETTLE_TIMEOUT_MS;
  const { processes } = server.options;
  for (;;) {
    const holdings = server.holdings();
    if (leaks(before, holdings, processes).length === 0 || now() > deadline) return holdings;
    await sleep(500);
  }
}

function leaks(before: Holdings, after: Holdings, processes: number): string[] {
  const found: string[] = [];
  const memory = after.memoryBytes - before.memoryBytes;
  if (memory > MEMORY_BOUND_BYTES * processes)
    found.push(`memory: expected at most ${MEMORY_BOUND_BYTES * processes} bytes more, has ${memory} more`);
  const descriptors = after.descriptors - before.descriptors;
  if (descriptors > DESCRIPTOR_BOUND * processes)
    found.push(`descriptors: expected at most ${DESCRIPTOR_BOUND * processes} more, has ${descriptors} more`);
  return found;
}

/** Lines of the log that no event is to bring about. */
function uncaughtIn(logFile: string): string[] {
  const lines = readFileSync(logFile, "utf8").split("\n");
  const found = lines.filter(
    (line) =>
      /uncaught|unhandled|"code":"internal"|"level":60/i.test(line) &&
      // A server process that is killed again while it starts.
      !/server process \d+ has ended: signal SIGKILL/.test(line),
  );
  return found.slice(0, 10).map((line) => `log: ${line.slice(0, 500)}`);
}
