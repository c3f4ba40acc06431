import { type BenchStore, type FieldStore, openFieldStore, openManyStore } from "./data/bench-data.js";
import { FIELD_SIDE } from "./data/field.js";
import { storePath } from "./subjects/subject.js";

/** What is asked for, and how. */
export interface Workload {
  readonly store: BenchStore;
  readonly paths: readonly string[];
  /**
   * What the answers have to be: the stored files, chunks that decode to the field's values, documents that say what is
   * stored, or 304 for the ETag.
   */
  readonly answers: "stored" | "transcoded" | "document" | "not-modified";
  /** Cold: a fresh server each round, which is asked for every path once. Warm: one server, for a time. */
  readonly isCold: boolean;
  readonly connections: number;
  /** How zpublish serves the store; see `Site.serving`. */
  readonly serving: Readonly<Record<string, unknown>>;
  /** Whether zpublish has no cache. Default false. */
  readonly withoutCache?: boolean;
}

export interface Row {
  readonly title: string;
  /** Left out of a small run unless it is named: its data are large. */
  readonly isLarge: boolean;
  /** Aimed at: how many times the requests/s of another subject, by its name. */
  readonly goals?: Readonly<Record<string, number>>;
  /** Makes the data where they are missing. */
  open(size: DataSize, onProgress: (done: number) => void): Promise<Workload>;
}

/** How much data. */
export interface DataSize {
  /** Steps of time, of 16 chunks of 1 MiB each. */
  readonly steps: number;
  /** Steps of time, of 256 chunks of 64 KiB each. */
  readonly smallChunkSteps: number;
  /** Chunks of 1 MiB that are transcoded or rechunked. */
  readonly transcoded: number;
  readonly manyVariables: number;
  /** Where stores are kept; the data directory where it is undefined. */
  readonly parent?: string | undefined;
}

export const FULL_SIZE: DataSize = { steps: 64, smallChunkSteps: 4, transcoded: 128, manyVariables: 50_000 };
export const SMALL_SIZE: DataSize = { steps: 4, smallChunkSteps: 1, transcoded: 32, manyVariables: 50_000 };

/** Chunks that warm rows ask for in rotation. */
const ROTATED = 200;
const WARM_CONNECTIONS = 32;
const COLD_CONNECTIONS = 8;

const WARM = { isCold: false, connections: WARM_CONNECTIONS, serving: {} } as const;
const COLD = { isCold: true, connections: COLD_CONNECTIONS, serving: {} } as const;

/** By names of subjects. */
const CACHED_GOALS = { nginx: 1.5, "bare uWebSockets.js": 0.9 } as const;
const SMALL_ANSWER_GOALS = { nginx: 1.3, "bare uWebSockets.js": 0.9 } as const;
const COLD_GOALS = { nginx: 0.9 } as const;
const PASSTHROUGH_GOALS = { nginx: 0.8 } as const;

const MIB_SIDE = 512;
const KIB64_SIDE = 128;
const RECHUNKED_SIDE = 256;

type OnProgress = (done: number) => void;

const openMib = (size: DataSize, onProgress: OnProgress): Promise<FieldStore> =>
  openFieldStore("mib", MIB_SIDE, size.steps, onProgress, size.parent);
const openKib64 = (size: DataSize, onProgress: OnProgress): Promise<FieldStore> =>
  openFieldStore("kib64", KIB64_SIDE, size.smallChunkSteps, onProgress, size.parent);

/** By name, in the order of the table. */
export const ROWS: Readonly<Record<string, Row>> = {
  "cached-1mib": {
    title: "cached chunks of 1 MiB (about 590 KB stored), up to 200 in rotation",
    isLarge: false,
    goals: CACHED_GOALS,
    open: async (size, onProgress) => cachedChunks(await openMib(size, onProgress)),
  },
  "cached-64kib": {
    title: "cached chunks of 64 KiB (about 37 KB stored), 200 in rotation",
    isLarge: false,
    goals: CACHED_GOALS,
    open: async (size, onProgress) => cachedChunks(await openKib64(size, onProgress)),
  },
  "passthrough-cold": {
    title: "chunks of 1 MiB passed through, each once, fresh server, empty cache, 8 clients",
    isLarge: false,
    goals: COLD_GOALS,
    async open(size, onProgress) {
      const store = await openMib(size, onProgress);
      return {
        ...COLD,
        store,
        paths: store.chunkKeys.map((key) => storePath(store, key)),
        answers: "stored",
      };
    },
  },
  "passthrough-warm": {
    title: "chunks of 1 MiB passed through in rotation, no cache, 8 clients",
    isLarge: false,
    goals: PASSTHROUGH_GOALS,
    async open(size, onProgress) {
      const store = await openMib(size, onProgress);
      return {
        ...WARM,
        connections: COLD_CONNECTIONS,
        store,
        paths: store.chunkKeys.map((key) => storePath(store, key)),
        answers: "stored",
        withoutCache: true,
      };
    },
  },
  "transcode-zstd-cold": {
    title: "chunks of 1 MiB transcoded to Zstandard, each once, fresh server, empty cache, 8 clients",
    isLarge: false,
    async open(size, onProgress) {
      const store = await openMib(size, onProgress);
      const keys = store.chunkKeys.slice(0, size.transcoded);
      const serving = { encoding: { compressor: { id: "zstd", level: 3 } } };
      return {
        ...COLD,
        store,
        paths: keys.map((key) => storePath(store, key)),
        answers: "transcoded",
        serving,
      };
    },
  },
  "rechunk-cold": {
    title: "chunks of 1 MiB cut into 4 of 256 KiB, each once, fresh server, empty cache, 8 clients",
    isLarge: false,
    async open(size, onProgress) {
      const store = await openMib(size, onProgress);
      const perSource = (MIB_SIDE / RECHUNKED_SIDE) ** 2;
      const keys = gridKeys(RECHUNKED_SIDE, store.steps).slice(
        0,
        Math.min(size.transcoded, store.chunkKeys.length) * perSource,
      );
      const serving = { variables: { field: { chunks: [1, RECHUNKED_SIDE, RECHUNKED_SIDE] } } };
      return {
        ...COLD,
        store,
        paths: keys.map((key) => storePath(store, key)),
        answers: "transcoded",
        serving,
      };
    },
  },
  info: smallAnswer("`/info`", "document", (store) => `/datasets/${store.id}/info`),
  zmetadata: smallAnswer("`.zmetadata`", "document", (store) => storePath(store, ".zmetadata")),
  "not-modified": smallAnswer("304 for a chunk", "not-modified", (store) => storePath(store, "field/0.0.0")),
  "zmetadata-50000": {
    title: "`.zmetadata` of 50,000 variables",
    isLarge: true,
    goals: SMALL_ANSWER_GOALS,
    async open(size) {
      const store = await openManyStore(size.manyVariables, size.parent);
      const paths = [storePath(store, ".zmetadata")];
      return { ...WARM, connections: COLD_CONNECTIONS, store, paths, answers: "document" };
    },
  },
};

/** A row of one path of the field in 1 MiB chunks. */
function smallAnswer(
  title: string,
  answers: Workload["answers"],
  pathOf: (store: FieldStore) => string,
): Row {
  return {
    title,
    isLarge: false,
    goals: SMALL_ANSWER_GOALS,
    async open(size, onProgress) {
      const store = await openMib(size, onProgress);
      return { ...WARM, store, paths: [pathOf(store)], answers };
    },
  };
}

function cachedChunks(store: FieldStore): Workload {
  const paths = store.chunkKeys.slice(0, ROTATED).map((key) => storePath(store, key));
  return { ...WARM, store, paths, answers: "stored" };
}

/** Keys of the field's steps in chunks of `side` × `side`. */
export function gridKeys(side: number, steps: number): string[] {
  const perSide = FIELD_SIDE / side;
  return Array.from({ length: steps * perSide * perSide }, (_, i) => {
    const y = Math.floor(i / perSide) % perSide;
    return `field/${Math.floor(i / perSide ** 2)}.${y}.${i % perSide}`;
  });
}
