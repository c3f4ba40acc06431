import { readFileSync, writeFileSync } from "node:fs";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { checkDocument } from "../check-answers.js";
import { type BenchStore, openManyStore } from "../data/bench-data.js";
import { fetchAnswer } from "../fetch-answer.js";
import { askAtOnce } from "../load/ask-at-once.js";
import { type ProbeResult, startProbe } from "../load/run-probe.js";
import { type RunningZpublish, startZpublish } from "../start-zpublish.js";
import { median } from "../statistics.js";
import { storePath } from "../subjects/subject.js";
import type { Experiment, ExperimentContext } from "./experiment.js";

/** Variables; with the comment 50,000 of them make a `.zmetadata` of more than 20 MB. */
const SIZES = { full: 50_000, small: 50_000, tiny: 20 } as const;
const COMMENT =
  "made for a benchmark: attributes of measured data are about as long as this one, so this is, too.";
const MAX_BLOCKED_MS = 20;
/** Longer than a slice of the work takes: with one request after the other, shorter ones would wait for each other. */
const PAUSE_MS = 10;
const IDLE_MS = 1_000;
/** After an action, for what it may have left to do. */
const AFTER_MS = 300;
const REFRESH_POLL_MS = 50;
const REFRESH_TIMEOUT_MS = 120_000;

interface BlockingRecord {
  readonly round: number;
  readonly action: string;
  /** From asking to the last byte, or from the signal until the new metadata are served. */
  readonly actionMs: number;
  /** Of the body as it was sent. */
  readonly bytes: number | undefined;
  readonly probe: ProbeResult;
}

/** Something done to a server while another connection asks it for `/versions`. @returns Bytes received. */
type Action = (server: RunningZpublish, store: BenchStore) => Promise<number | undefined>;

const ACTIONS: readonly (readonly [name: string, action: Action])[] = [
  ["nothing", async () => void (await sleep(IDLE_MS))],
  ["`.zmetadata`, first time", (server, store) => askFor(server, store, "identity")],
  ["`.zmetadata`, again", (server, store) => askFor(server, store, "identity")],
  ["in br, first time", (server, store) => askFor(server, store, "br")],
  ["in br, again", (server, store) => askFor(server, store, "br")],
  ["in gzip, first time", (server, store) => askFor(server, store, "gzip")],
  ["in gzip, again", (server, store) => askFor(server, store, "gzip")],
  ["refresh, nothing changed", refreshSame],
  ["refresh, an attribute changed", refreshChanged],
  ["`.zmetadata` after the refresh", (server, store) => askFor(server, store, "identity")],
];

/** Whether a large document keeps others waiting. */
export const loopBlocking: Experiment = {
  title: "how long `/versions` has to wait while a `.zmetadata` of 20 MB is served, compressed, or renewed",
  async run(context) {
    const { size, rounds, parent, onProgress } = context;
    onProgress(0, "making data");
    const original = await openManyStore(SIZES[size], parent, COMMENT);
    const records: BlockingRecord[] = [];
    for (let round = 0; round < rounds; round++)
      records.push(...(await measureRound(round, original, context)));
    const longest = (action: string) =>
      records.filter((record) => record.action === action).map(({ probe }) => probe.all.max);
    const actions = ACTIONS.map(([name]) => name);
    const served = actions.filter((name) => name !== "nothing");
    return {
      records,
      tables: [
        {
          columns: [
            "meanwhile",
            "took ms",
            "MB sent",
            "`/versions`: p50 ms",
            "p99 ms",
            "longest ms, median of the rounds",
            "longest of all",
          ],
          rows: actions.map((action) => {
            const own = records.filter((record) => record.action === action);
            return [
              action,
              median(own.map(({ actionMs }) => actionMs)),
              own[0]!.bytes === undefined ? undefined : own[0]!.bytes / 1e6,
              median(own.map(({ probe }) => probe.all.p50)),
              median(own.map(({ probe }) => probe.all.p99)),
              median(longest(action)),
              Math.max(...longest(action)),
            ];
          }),
        },
      ],
      goals: served.map((action) => {
        const ms = median(longest(action))!;
        return {
          what: `longest wait of \`/versions\` meanwhile: ${action}`,
          expected: `at most ${MAX_BLOCKED_MS} ms`,
          measured: `${ms.toFixed(1)} ms (longest of all ${Math.max(...longest(action)).toFixed(1)})`,
          isMet: ms <= MAX_BLOCKED_MS,
        };
      }),
      notes: [
        `${SIZES[size].toLocaleString("en-US")} variables. One connection asks for \`/versions\` every ${PAUSE_MS} ms, from before the action until ${AFTER_MS} ms after it; a fresh server for each round. "nothing" is what the machine itself adds.`,
        "Compression runs on other threads: on few processors it also takes processor time from the event loop, the probe, and the client that takes the answer.",
      ],
    };
  },
};

async function measureRound(
  round: number,
  original: BenchStore,
  { rounds, freshFolder, onProgress }: ExperimentContext,
): Promise<BlockingRecord[]> {
  const scratch = freshFolder("server");
  const store = { ...original, directory: join(scratch, "store") };
  await cp(original.directory, store.directory, { recursive: true });
  const server = await startZpublish({
    datasets: { [store.id]: store.directory },
    scratch,
    args: ["--refresh", "0"],
  });
  const records: BlockingRecord[] = [];
  try {
    for (const [i, [name, action]] of ACTIONS.entries()) {
      onProgress((round + i / ACTIONS.length) / rounds, name.replaceAll("`", ""));
      const probe = await startProbe({
        baseUrl: server.baseUrl,
        paths: ["/versions"],
        pauseMs: PAUSE_MS,
        scratch,
      });
      const began = performance.now();
      const bytes = await action(server, store);
      const actionMs = performance.now() - began;
      await sleep(AFTER_MS);
      records.push({ round, action: name, actionMs, bytes, probe: await probe.stop() });
    }
    if (round === 0) await checkAnswers(server, store);
    return records;
  } finally {
    await server.stop();
  }
}

async function askFor({ baseUrl }: RunningZpublish, store: BenchStore, coding: string): Promise<number> {
  const path = storePath(store, ".zmetadata");
  const [answer] = await askAtOnce(baseUrl, path, 1, { "Accept-Encoding": coding });
  const { status, headers, body } = answer!;
  const received = headers.get("content-encoding") ?? "identity";
  if (status !== 200 || (received !== coding && body.length > 1_024 ** 2)) {
    throw new Error(`${path}: expected 200 in ${coding}, received ${status} in ${received}`);
  }
  return body.length;
}

/** The end of a refresh that changes nothing cannot be seen from outside: this only gives it time. */
async function refreshSame({ pid }: RunningZpublish): Promise<undefined> {
  process.kill(pid, "SIGHUP");
  await sleep(IDLE_MS);
  return undefined;
}

async function refreshChanged({ baseUrl, pid }: RunningZpublish, store: BenchStore): Promise<undefined> {
  const path = storePath(store, "v0/.zattrs");
  const file = join(store.directory, ".zmetadata");
  const mark = `renewed ${Date.now()}`;
  const text = readFileSync(file, "utf8");
  writeFileSync(
    file,
    text.replace('"long_name":"variable 0"', JSON.stringify({ long_name: mark }).slice(1, -1)),
  );
  process.kill(pid, "SIGHUP");
  const deadline = performance.now() + REFRESH_TIMEOUT_MS;
  for (;;) {
    const { status, body } = await fetchAnswer(baseUrl, path);
    if (status === 200 && JSON.parse(body.toString()).long_name === mark) return undefined;
    if (performance.now() > deadline)
      throw new Error(`${path}: expected ${mark} after a refresh, received ${body}`);
    await sleep(REFRESH_POLL_MS);
  }
}

/** Every form says what is stored now. */
async function checkAnswers({ baseUrl }: RunningZpublish, store: BenchStore): Promise<void> {
  const path = storePath(store, ".zmetadata");
  await checkDocument(baseUrl, store, path);
  const { body: plain } = await fetchAnswer(baseUrl, path);
  for (const [coding, decompress] of [
    ["br", brotliDecompressSync],
    ["gzip", gunzipSync],
  ] as const) {
    const [answer] = await askAtOnce(baseUrl, path, 1, { "Accept-Encoding": coding });
    const { headers, body } = answer!;
    const same = headers.get("content-encoding") === coding ? decompress(body) : body;
    if (!plain.equals(same)) throw new Error(`${path}: in ${coding} it is not the same as without`);
  }
}
