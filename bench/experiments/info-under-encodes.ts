import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { checkDecoded, checkDocument } from "../check-answers.js";
import type { FieldStore } from "../data/bench-data.js";
import { fetchBody } from "../fetch-answer.js";
import { checkLoad } from "../load/check-load.js";
import type { LoadResult } from "../load/load.js";
import { runNodeLoad } from "../load/node-load.js";
import { type ProbeRequest, type ProbeResult, runProbe } from "../load/run-probe.js";
import { type RunningZpublish, startZpublish } from "../start-zpublish.js";
import { median } from "../statistics.js";
import type { RunningSubject } from "../subjects/subject.js";
import { uwsSubject } from "../subjects/uws.js";
import type { Experiment } from "./experiment.js";
import { openMibStore } from "./open-mib-store.js";

const SIZES = { full: 64, small: 4, tiny: 1 } as const;
/** Uncached chunks per worker and second of measurement, more than one can encode. */
const CHUNKS_PER_SECOND = 500;
const CONNECTIONS = 64;
/** Load before and after the probe's time. */
const MARGIN_SECONDS = 1;
const PAUSE_MS = 1;
/** The dataset whose metadata are asked for. */
const ASKED = "asked";
const INFO = `/datasets/${ASKED}/info`;
/** Every other request is for `/info`, so that its percentiles have enough of them. */
const METADATA_PATHS: readonly string[] = [
  `/datasets/${ASKED}/zarr/.zmetadata`,
  `/datasets/${ASKED}/zarr/field/.zarray`,
  `/datasets/${ASKED}/keys`,
  "/versions",
].flatMap((path) => [INFO, path]);
const MAX_RATIO = 5;

/** Of zpublish, by default. */
const DEFAULT_WORKERS = Math.max(1, availableParallelism() - 1);

const PHASES = ["idle", "encodes", "control"] as const;
type Phase = (typeof PHASES)[number];
const PHASE_TITLES: Readonly<Record<Phase, string>> = {
  idle: "idle",
  encodes: "pool saturated with encodes",
  control: "another server asked for the same, while zpublish encodes",
};

interface PhaseRecord extends ProbeResult {
  readonly round: number;
  readonly phase: Phase;
  readonly encodesPerSecond?: number | undefined;
}

/** Whether metadata is answered as fast while every worker encodes. */
export const infoUnderEncodes: Experiment = {
  title: "latency of `/info` and other metadata, idle and while the pool is saturated with encodes",
  async run(context) {
    const { size, rounds, seconds, freshFolder, onProgress } = context;
    const store = await openMibStore(context, SIZES[size]);
    const perSecond = DEFAULT_WORKERS * CHUNKS_PER_SECOND;
    const copies = Math.ceil(((seconds + 2 * MARGIN_SECONDS) * perSecond) / store.chunkKeys.length);
    // Each id has cache keys of its own, so that the same stored chunks can be asked for uncached by each phase.
    const ids = (phase: Phase) => Array.from({ length: copies }, (_, i) => `${phase}${i}`);
    const datasets = datasetsOf(store, [ASKED, ...PHASES.flatMap(ids)]);
    const records: PhaseRecord[] = [];
    for (let round = 0; round < rounds; round++) {
      const scratch = freshFolder("server");
      const server = await startZpublish({ datasets, scratch });
      let other: RunningSubject | undefined;
      try {
        if (round === 0) await checkAnswers(server, store);
        other = await startOther(server, store, freshFolder("other"));
        const order = round % 2 === 0 ? PHASES : [...PHASES].reverse();
        for (const [i, phase] of order.entries()) {
          onProgress((round + i / order.length) / rounds, PHASE_TITLES[phase]);
          const { baseUrl } = phase === "control" ? other : server;
          const probe = { baseUrl, paths: METADATA_PATHS, pauseMs: PAUSE_MS, seconds, scratch };
          const chunks = ids(phase).flatMap((id) =>
            store.chunkKeys.map((key) => `/datasets/${id}/zarr/${key}`),
          );
          const measured =
            phase === "idle" ? await runProbe(probe) : await probeUnderEncodes(probe, server, chunks);
          records.push({ round, phase, ...measured });
        }
      } finally {
        await other?.stop();
        await server.stop();
      }
    }
    return { records, ...report(records) };
  },
};

function datasetsOf(store: FieldStore, ids: readonly string[]): Record<string, unknown> {
  const dataset = { location: store.directory, encoding: { compressor: { id: "zstd", level: 3 } } };
  return Object.fromEntries(ids.map((id) => [id, dataset]));
}

async function checkAnswers({ baseUrl }: RunningZpublish, store: FieldStore): Promise<void> {
  const named = { ...store, id: ASKED };
  await checkDocument(baseUrl, named, INFO);
  await checkDecoded(baseUrl, named, store.chunkKeys.slice(0, 1));
}

/** Bare uWebSockets.js with the same documents in memory. */
async function startOther(
  { baseUrl }: RunningZpublish,
  store: FieldStore,
  scratch: string,
): Promise<RunningSubject> {
  const paths = [...new Set(METADATA_PATHS)];
  const documents = new Map<string, Buffer>();
  for (const path of paths) documents.set(path, await fetchBody(baseUrl, path));
  return uwsSubject.start({ store, documents, paths, headers: {}, serving: {}, scratch });
}

/** @param chunks More uncached ones than can be encoded in the time. */
async function probeUnderEncodes(
  probe: ProbeRequest & { readonly seconds: number },
  server: RunningZpublish,
  chunks: readonly string[],
): Promise<Omit<PhaseRecord, "round" | "phase">> {
  const load = runNodeLoad({
    baseUrl: server.baseUrl,
    paths: chunks,
    headers: {},
    connections: CONNECTIONS,
    length: { seconds: probe.seconds + 2 * MARGIN_SECONDS },
    status: 200,
    scratch: probe.scratch,
  });
  load.catch(() => undefined);
  await sleep(MARGIN_SECONDS * 1_000);
  const result = await runProbe(probe);
  const loaded = await load;
  checkLoad(loaded, "info-under-encodes", server);
  return { ...result, encodesPerSecond: encodesPerSecond(loaded, chunks.length) };
}

function encodesPerSecond({ requests, seconds }: LoadResult, uncached: number): number {
  if (requests > uncached)
    throw new Error(`expected at most ${uncached} chunks to be encoded, received ${requests}`);
  return requests / seconds;
}

function report(records: readonly PhaseRecord[]) {
  const ratios = (phase: Phase) =>
    records
      .filter((record) => record.phase === phase)
      .map((record) => {
        const idle = records.find(({ phase, round }) => phase === "idle" && round === record.round)!;
        return record.paths[INFO]!.p99 / idle.paths[INFO]!.p99;
      });
  const paths = [...new Set(METADATA_PATHS)];
  const ofPath = (phase: Phase, path: string) =>
    records.filter((record) => record.phase === phase).map((record) => record.paths[path]!);
  const ratio = median(ratios("encodes"))!;
  return {
    tables: [
      {
        title: "`/info` by round",
        columns: [
          "round",
          ...PHASES.flatMap((phase) => [`${phase}: p50 ms`, "p99 ms", "highest ms"]),
          "p99: encodes ÷ idle",
          "control ÷ idle",
          "encodes/s",
        ],
        rows: ratios("encodes").map((each, round) => [
          round + 1,
          ...PHASES.flatMap((phase) => {
            const { p50, p99, max } = ofPath(phase, INFO)[round]!;
            return [p50, p99, max];
          }),
          each,
          ratios("control")[round],
          records.filter(({ phase }) => phase === "encodes")[round]!.encodesPerSecond,
        ]),
      },
      {
        title: "By path, medians of the rounds, and the highest of all",
        columns: ["path", ...PHASES.flatMap((phase) => [`${phase}: p50 ms`, "p99 ms", "highest ms"])],
        rows: paths.map((path) => [
          `\`${path}\``,
          ...PHASES.flatMap((phase) => {
            const all = ofPath(phase, path);
            return [
              median(all.map(({ p50 }) => p50)),
              median(all.map(({ p99 }) => p99)),
              Math.max(...all.map(({ max }) => max)),
            ];
          }),
        ]),
      },
    ],
    goals: [
      {
        what: "p99 of `/info` while the pool is saturated with encodes",
        expected: `at most ${MAX_RATIO} × idle`,
        measured: `${ratio.toFixed(2)} × idle (another server meanwhile: ${median(ratios("control"))!.toFixed(2)} ×)`,
        isMet: ratio <= MAX_RATIO,
      },
    ],
    notes: [
      `${PHASE_TITLES.encodes}: ${CONNECTIONS} connections ask for uncached chunks all the time. One connection asks for metadata, every ${PAUSE_MS} ms; what is late because the last answer was late counts as latency.`,
      "Control: bare uWebSockets.js in a process of its own, asked for the same documents while zpublish encodes, shows what contention for processors costs any server here. On few processors the workers, the event loop, the load and the probe share them, and a thread that wakes may wait until another one's time slice is over.",
    ],
  };
}
