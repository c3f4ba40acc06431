import { type BenchStore, type FieldStore, openFieldStore, openManyStore } from "../data/bench-data.js";
import { FIELD_SIDE } from "../data/field.js";
import type { Aim, BenchContext, BenchSize, BenchTable, Contestant, Figures } from "../harness/harness.js";
import { type MeasuredLoad, measureLoad, runLoad } from "../load/load.js";
import { askAtOnce } from "../load/raw-http.js";
import { nginxSubject, nginxVersion } from "../subjects/nginx.js";
import { checkSubject, expectedBody, prepareSite } from "../subjects/prepare-site.js";
import {
  createPeer,
  type RunningSubject,
  type Site,
  type Subject,
  storePath,
  type Workload,
} from "../subjects/subject.js";
import { sameHeadersUwsSubject, uwsSubject } from "../subjects/uws.js";
import { zpublishSubjects } from "../subjects/zpublish.js";

/** Elements along each side of a chunk of 1 MiB. */
export const MIB_SIDE = 512;
const KIB64_SIDE = 128;
const RECHUNKED_SIDE = 256;

interface RowSize {
  /** Steps of time, of 16 chunks of 1 MiB each, and of 256 chunks of 64 KiB each. */
  readonly steps: number;
  readonly smallChunkSteps: number;
  /** Chunks of 1 MiB that are transcoded or rechunked. */
  readonly transcoded: number;
  readonly manyVariables: number;
}

const SIZES: Readonly<Record<BenchSize, RowSize>> = {
  full: { steps: 64, smallChunkSteps: 4, transcoded: 128, manyVariables: 50_000 },
  small: { steps: 4, smallChunkSteps: 1, transcoded: 32, manyVariables: 50_000 },
  tiny: { steps: 1, smallChunkSteps: 1, transcoded: 2, manyVariables: 40 },
};

/** Chunks that warm rows ask for in rotation. */
const ROTATED = 200;
const WARM_CONNECTIONS = 32;
const COLD_CONNECTIONS = 8;
/** Load that is not counted, before the first round of a warm row: code that is not compiled yet is another row's topic. */
const WARM_UP_SECONDS = 1;

/** By names of subjects. */
const CACHED_GOALS = { nginx: 1.5, "bare uWebSockets.js": 0.9 };
const SMALL_ANSWER_GOALS = { nginx: 1.3, "bare uWebSockets.js": 0.9 };

/** What a row asks for: the row's store, and the workload without it. */
interface Row extends Omit<BenchTable, "contests"> {
  /** Aimed at: times the requests/s of another subject, by its name. */
  readonly goals?: Readonly<Record<string, number>>;
  /** Makes the data if they are missing. */
  open(size: RowSize, context: BenchContext): Promise<Workload>;
}

/** Opens the field in chunks of 1 MiB, about 590 KB stored; made if it is not there yet. */
export function openMibStore(context: BenchContext, steps: number): Promise<FieldStore> {
  return openFieldStore("mib", MIB_SIDE, steps, dataProgress(context), context.parent);
}

/** Opens the field in chunks of 64 KiB. */
export function openKib64Store(context: BenchContext, steps: number): Promise<FieldStore> {
  return openFieldStore("kib64", KIB64_SIDE, steps, dataProgress(context), context.parent);
}

function dataProgress({ onProgress }: BenchContext): (done: number) => void {
  return (done) => onProgress(0, `making data, ${Math.floor(done * 100)} %`);
}

/** Paths of a store's chunks. */
export function pathsOf(store: BenchStore, keys: readonly string[]): string[] {
  return keys.map((key) => storePath(store, key));
}

/** Returns keys of the field's steps in chunks of `side` × `side`. */
export function gridKeys(side: number, steps: number): string[] {
  const perSide = FIELD_SIDE / side;
  return Array.from({ length: steps * perSide * perSide }, (_, i) => {
    const y = Math.floor(i / perSide) % perSide;
    return `field/${Math.floor(i / perSide ** 2)}.${y}.${i % perSide}`;
  });
}

/** A fresh server each round, which is asked for every path once. */
const COLD = { isCold: true, connections: COLD_CONNECTIONS } as const;
/** What counts as the start of a server. */
export const FIRST_SECONDS = 2;
/** One server, asked for a time. */
const WARM = { isCold: false, connections: WARM_CONNECTIONS, serving: {} } as const;

function cachedChunks(store: FieldStore): Workload {
  return { ...WARM, store, paths: pathsOf(store, store.chunkKeys.slice(0, ROTATED)), answers: "stored" };
}

/** A row of one path of the field in 1 MiB chunks. */
function smallAnswer(
  title: string,
  answers: Workload["answers"],
  pathOf: (store: FieldStore) => string,
): Row {
  return {
    title,
    goals: SMALL_ANSWER_GOALS,
    async open({ steps }, context) {
      const store = await openMibStore(context, steps);
      return { ...WARM, store, paths: [pathOf(store)], answers };
    },
  };
}

const ROW_LIST: Readonly<Record<string, Row>> = {
  "cached-1mib": {
    title: "cached chunks of 1 MiB (about 590 KB stored), up to 200 in rotation",
    goals: CACHED_GOALS,
    open: async ({ steps }, context) => cachedChunks(await openMibStore(context, steps)),
  },
  "cached-64kib": {
    title: "cached chunks of 64 KiB (about 37 KB stored), 200 in rotation",
    goals: CACHED_GOALS,
    open: async ({ smallChunkSteps }, context) =>
      cachedChunks(await openKib64Store(context, smallChunkSteps)),
  },
  "passthrough-cold": {
    title: "chunks of 1 MiB passed through, each once, fresh server, empty cache, 8 clients",
    goals: { nginx: 0.9 },
    async open({ steps }, context) {
      const store = await openMibStore(context, steps);
      return { ...COLD, serving: {}, store, paths: pathsOf(store, store.chunkKeys), answers: "stored" };
    },
  },
  "passthrough-start": {
    title: "chunks of 1 MiB passed through in rotation, no cache, 8 clients, the first 2 s of a fresh server",
    goals: { nginx: 0.75 },
    async open({ steps }, context) {
      const store = await openMibStore(context, steps);
      const paths = pathsOf(store, store.chunkKeys);
      const cold = { ...COLD, coldSeconds: FIRST_SECONDS, serving: {}, withoutCache: true };
      return { ...cold, store, paths, answers: "stored" };
    },
  },
  "passthrough-warm": {
    title: "chunks of 1 MiB passed through in rotation, no cache, 8 clients",
    goals: { nginx: 0.8 },
    async open({ steps }, context) {
      const store = await openMibStore(context, steps);
      const paths = pathsOf(store, store.chunkKeys);
      return { ...WARM, connections: COLD_CONNECTIONS, store, paths, answers: "stored", withoutCache: true };
    },
  },
  "transcode-zstd-cold": {
    title: "chunks of 1 MiB transcoded to Zstandard, each once, fresh server, empty cache, 8 clients",
    async open({ steps, transcoded }, context) {
      const store = await openMibStore(context, steps);
      const serving = { encoding: { compressor: { id: "zstd", level: 3 } } };
      const paths = pathsOf(store, store.chunkKeys.slice(0, transcoded));
      return { ...COLD, serving, store, paths, answers: "transcoded" };
    },
  },
  "rechunk-cold": {
    title: "chunks of 1 MiB cut into 4 of 256 KiB, each once, fresh server, empty cache, 8 clients",
    async open({ steps, transcoded }, context) {
      const store = await openMibStore(context, steps);
      const serving = { variables: { field: { chunks: [1, RECHUNKED_SIDE, RECHUNKED_SIDE] } } };
      const count = Math.min(transcoded, store.chunkKeys.length) * (MIB_SIDE / RECHUNKED_SIDE) ** 2;
      const paths = pathsOf(store, gridKeys(RECHUNKED_SIDE, store.steps).slice(0, count));
      return { ...COLD, serving, store, paths, answers: "transcoded" };
    },
  },
  info: smallAnswer("`/info`", "document", (store) => `/datasets/${store.id}/info`),
  zmetadata: smallAnswer("`.zmetadata`", "document", (store) => storePath(store, ".zmetadata")),
  "not-modified": smallAnswer("304 for a chunk", "not-modified", (store) => storePath(store, "field/0.0.0")),
  "zmetadata-50000": {
    title: "`.zmetadata` of 50,000 variables",
    isLarge: true,
    goals: SMALL_ANSWER_GOALS,
    async open({ manyVariables }, { parent }) {
      const store = await openManyStore(manyVariables, parent);
      const paths = [storePath(store, ".zmetadata")];
      return { ...WARM, connections: COLD_CONNECTIONS, store, paths, answers: "document" };
    },
  },
};

/** Requests per second of zpublish beside other servers. By name, in the order of the report. */
export const ROWS: Readonly<Record<string, BenchTable>> = Object.fromEntries(
  Object.entries(ROW_LIST).map(([name, row]) => [name, rowTable(row)]),
);

function rowTable(row: Row): BenchTable {
  return {
    title: row.title,
    isLarge: row.isLarge === true,
    async *contests(context) {
      const workload = await row.open(SIZES[context.size], context);
      context.onProgress(0, "checking every answer");
      const site = await prepareSite(workload, context.freshFolder("reference"));
      const running: RunningSubject[] = [];
      const notes: string[] = [];
      const contestants: Contestant[] = [];
      try {
        for (const subject of subjectsOf(workload, context)) {
          if (workload.isCold && !subject.isRestartable) {
            notes.push(`Without ${subject.name}, which cannot be started again for every round.`);
            continue;
          }
          try {
            contestants.push(await createContestant(subject, workload, site, context, running));
          } catch (error) {
            const problem = `${subject.name}: ${(error as Error).message}`;
            if (subject.isRestartable) throw new Error(problem, { cause: error });
            notes.push(`Without ${problem}`);
          }
        }
        const against = [uwsSubject.name, nginxSubject.name];
        yield { contestants, compared: "requests/s", against, aims: aimsOf(row, contestants), notes };
      } finally {
        for (const each of running) await each.stop();
      }
    },
  };
}

/** Who takes part, and in which order. */
function subjectsOf({ isCold, answers }: Workload, context: BenchContext): readonly Subject[] {
  // What the check of a file costs shows where the answer is known already.
  const isChecked = !isCold && (answers === "stored" || answers === "not-modified");
  const own = context.builds.map(zpublishSubjects);
  // Builds of one kind stand side by side, so that they are measured one right after the other.
  return [
    ...(context.hasSameHeaders ? [sameHeadersUwsSubject] : []),
    uwsSubject,
    ...(nginxVersion() === undefined ? [] : [nginxSubject]),
    own[0]!.nodeHttp,
    ...own.map(({ plain }) => plain),
    ...(isChecked ? own.map(({ immutable }) => immutable) : []),
    ...context.peers.map(createPeer),
  ];
}

/** Starts and checks a subject, and measures a load that is not counted. @param running Receives what is to be stopped. */
async function createContestant(
  subject: Subject,
  workload: Workload,
  site: Site,
  context: BenchContext,
  running: RunningSubject[],
): Promise<Contestant> {
  const { isCold, coldSeconds, answers, paths } = workload;
  const { connections = workload.connections } = context;
  const label = `${subject.name} ${subject.build?.name ?? ""}`.replace(/\W+/g, "-");
  const start = () => subject.start({ ...site, scratch: context.freshFolder(label) });
  const server = await start();
  let headByteLength: number;
  let load: MeasuredLoad;
  try {
    const headers = await checkSubject(subject, server, site, workload);
    const [answer] = await askAtOnce(server.baseUrl, paths[0]!, 1, headers);
    headByteLength = answer!.headByteLength;
    load = {
      ...{ paths, connections, headers, scratch: context.freshFolder("load") },
      ...{ status: answers === "not-modified" ? 304 : 200, bytes: meanBytes(site, workload) },
      length: coldSeconds ? { seconds: coldSeconds } : isCold ? "once" : { seconds: context.seconds },
    };
    if (!isCold)
      await runLoad(server, { ...load, length: { seconds: Math.min(context.seconds, WARM_UP_SECONDS) } });
  } catch (error) {
    await server.stop();
    throw error;
  }
  if (isCold) await server.stop();
  else running.push(server);
  return {
    name: subject.name,
    ...(subject.build && { build: subject.build }),
    isForeign: !subject.isRestartable,
    async measure(): Promise<Figures> {
      const target = isCold ? await start() : server;
      try {
        return { ...(await measureLoad(target, load)), "head B": headByteLength };
      } finally {
        if (isCold) await target.stop();
      }
    },
  };
}

function meanBytes(site: Site, { answers }: Workload): number {
  if (answers === "not-modified") return 0;
  return site.paths.reduce((sum, path) => sum + expectedBody(site, path).length, 0) / site.paths.length;
}

function aimsOf({ goals = {} }: Row, contestants: readonly Contestant[]): Aim[] {
  return contestants
    .filter(({ name, build }) => build?.name === "" && name !== "zpublish on node:http")
    .flatMap(({ name }) => Object.entries(goals).map(([against, least]) => ({ of: name, against, least })));
}
