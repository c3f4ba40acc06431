import type { ChunkCache } from "../../../src/cache/chunk-cache.js";
import type { MakeChunk } from "../../../src/chunk/lots.js";
import { createChunkService } from "../../../src/chunk/serve-chunk.js";
import { createWorkerFeed } from "../../../src/chunk/worker-feed.js";
import type { DatasetConfig } from "../../../src/config/config.js";
import type { DatasetSnapshot, ServedArray } from "../../../src/dataset/dataset.js";
import { createLevelArray, type LevelRequest } from "../../../src/dataset/overviews/level-array.js";
import { createSnapshot } from "../../../src/dataset/snapshot.js";
import { ZpublishError } from "../../../src/errors.js";
import { createTaskRunner } from "../../../src/pool/run-chunk-task.js";
import type { Freshness } from "../../../src/stores/object-versions.js";
import type { Source } from "../../../src/zarr/stored-tree.js";
import { mapCache } from "../map-cache.js";

/** What a pyramid is made of. */
export interface PyramidOptions {
  readonly levels: number;
  readonly request?: Partial<LevelRequest>;
  readonly config?: Partial<DatasetConfig>;
  readonly freshness?: Freshness;
  readonly cache?: ChunkCache;
  /** Makes chunks in place of this thread. */
  readonly makeChunk?: MakeChunk;
}

/** A chunk as a client gets it. */
export interface FetchedChunk {
  readonly etag: string;
  /** Undefined: 404. */
  readonly bytes: Uint8Array | undefined;
}

/** Levels of one array, and a service of their chunks. */
export type Pyramid = Awaited<ReturnType<typeof openPyramid>>;

/** Opens a source, and makes levels of its array. */
export async function openPyramid(source: Source, path: string, options: PyramidOptions) {
  const { levels: count, request, config, freshness = { seconds: 3_600 } } = options;
  const cache = mapCache();
  /** Chunks that were made so far, as `path key`. */
  const made: string[] = [];
  const run = createTaskRunner();
  const makeChunk = options.makeChunk ?? ((task) => run(task));
  const feed = createWorkerFeed((task, signal) => {
    made.push(`${task.plan.path} ${task.chunkCoords.join(".")}`);
    return makeChunk(task, signal);
  });
  const service = createChunkService({ cache: { current: options.cache ?? cache }, makeChunk: feed });
  const base = createSnapshot(
    { id: "d", location: "here", immutable: false, encoding: {}, variables: {}, ...config },
    await source.readTree(),
    "no-cache",
  );
  const array = base.arrays.get(path);
  if (array === undefined) throw new Error(`refused: ${JSON.stringify(base.refused)}`);
  const levels: ServedArray[] = [];
  let below = array;
  for (let level = 1; level <= count; level++) {
    const rank = below.stored.shape.length;
    const made = { factors: below.stored.shape.map((_, axis) => (axis < rank - 2 ? 1 : 2)), ...request };
    below = createLevelArray(
      below,
      { name: array.variable.name, path: `${level}/${path}`, method: "mean", ...made },
      {
        store: base.identity,
        immutable: base.immutable,
        snapshot: () => snapshot,
        openReader: (of, each) => service.openReader(of, each, freshness),
      },
    );
    levels.push(below);
  }
  const snapshot: DatasetSnapshot = Object.freeze({
    ...base,
    revision: levels.map((each) => each.digest).join(),
  });

  /** Asks for a chunk of a level as the HTTP layer does: again if the source has changed. */
  async function fetch(level: number, key: string, signal?: AbortSignal): Promise<FetchedChunk> {
    const served = level === 0 ? array : levels[level - 1];
    if (served === undefined) throw new Error(`expected a level, received ${level}`);
    for (let attempt = 1; ; attempt++) {
      try {
        const reply = await service.serve(level === 0 ? base : snapshot, served, { key });
        const body = await reply.open(
          { signal: signal ?? new AbortController().signal, reserve: () => undefined, started: false },
          (byteLength) => ({ start: 0, byteLength }),
        );
        const bytes = body.read(0)?.slice();
        body.release?.();
        return { etag: reply.etag, bytes };
      } catch (error) {
        if (!(error instanceof ZpublishError)) throw error;
        if (error.code === "not-found") return { etag: "", bytes: undefined };
        if (error.code !== "source-changed" || attempt === 3) throw error;
      }
    }
  }

  return { base, levels, service, made, cache, fetch };
}
