import { createBoundedMap } from "../collections/bounded-map.js";
import { createLimiter } from "../collections/limiter.js";
import { createSingleFlight } from "../collections/single-flight.js";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import type { Freshness } from "../stores/object-versions.js";
import type { ChunkReader, ReadOptions, StoredChunk } from "../zarr/chunk-reader.js";
import { storedChunksOf } from "../zarr/plan/create-encoding-plan.js";
import { createServedChunk, IMMUTABLE } from "./chunk-version.js";
import { type ChunkVersion, combineTokens, isAbsent, type ServedChunk } from "./delivery.js";

/** Chunks whose versions are remembered, of one array. */
const MAX_KNOWN = 16_384;
/** Chunks of one array whose versions are looked up at a time. Those below have bounds of their own, so all go on. */
const MAX_LOOKS = 16;
/** Attempts at a chunk whose stored chunks change while it is made. */
const MAX_ATTEMPTS = 3;
/** Version of a chunk that is made of nothing but absent ones, and is not absent. */
const FILLED = "fill";

/** A version, and the time when the stored chunks behind it were looked at. */
interface Believed {
  /** As in `ChunkVersion`. */
  readonly token: string | undefined;
  /** The version as {@link ChunkReader} has it; undefined if the chunk is absent. */
  readonly version: string | undefined;
  /** Milliseconds since process start; of several looks the first. */
  readonly checkedAtMs: number;
}

/** Reader of chunks that this server makes. */
interface ServedReader extends ChunkReader {
  /**
   * Returns the version of a chunk, and its age.
   * @param signal Aborts when the caller needs it no more.
   * @throws ZpublishError `source-unreadable`, `cancelled`
   */
  look(chunkCoords: readonly number[], signal?: AbortSignal): Promise<Believed>;
}

/**
 * Reads a served chunk in a version: from the cache, or made.
 * @param copy Copies the bytes, which are valid until it returns.
 * @throws ZpublishError `not-found` if it is absent, `source-changed` if it has another version
 */
export type ReadServed = <T>(
  chunk: ServedChunk,
  version: ChunkVersion,
  copy: (bytes: Uint8Array) => T,
  signal: AbortSignal | undefined,
) => Promise<T>;

/**
 * Opens a reader of the chunks of a served array. Versions are cached for `freshness`, because one overview chunk depends on thousands
 * of stored chunks; a read that finds another version ends that.
 */
export function openServedReader(
  snapshot: DatasetSnapshot,
  array: ServedArray,
  freshness: Freshness,
  readServed: ReadServed,
): ChunkReader {
  const { plan } = array;
  const believed = createBoundedMap<Believed>({ maxEntries: MAX_KNOWN });
  const looks = createSingleFlight<Believed>();
  const limiter = createLimiter({
    maxRunning: MAX_LOOKS,
    maxPerKey: MAX_LOOKS,
    maxWaiting: Number.POSITIVE_INFINITY,
  });
  const periodMs = periodOf(freshness);

  function known(key: string): Believed | undefined {
    const found = believed.get(key);
    return found !== undefined && performance.now() - found.checkedAtMs < periodMs ? found : undefined;
  }

  async function look(coords: readonly number[], signal?: AbortSignal): Promise<Believed> {
    const key = keyOf(coords);
    const lookOnce = (shared: AbortSignal) => limiter.run("", () => lookNow(key, coords, shared), shared);
    return known(key) ?? looks.run(key, lookOnce, signal);
  }

  async function lookNow(key: string, coords: readonly number[], signal: AbortSignal): Promise<Believed> {
    const { token, checkedAtMs } = await lookBelow(createServedChunk(snapshot, array, key, coords), signal);
    const version = token ?? (plan.absentIsAbsent ? undefined : FILLED);
    const found = { token, version, checkedAtMs };
    believed.set(key, found);
    return found;
  }

  async function read(
    coords: readonly number[],
    { allocate, signal }: ReadOptions = {},
  ): Promise<StoredChunk | undefined> {
    const key = keyOf(coords);
    const chunk = createServedChunk(snapshot, array, key, coords);
    const copy = (bytes: Uint8Array): Uint8Array => {
      const own = allocate?.(bytes.length) ?? new Uint8Array(bytes.length);
      own.set(bytes);
      return own;
    };
    for (let attempt = 1; ; attempt++) {
      const found = snapshot.immutable ? undefined : await look(coords);
      const version = found === undefined ? IMMUTABLE : { wasChecked: true, token: found.token };
      if (isAbsent(version) && plan.absentIsAbsent) return undefined;
      try {
        const bytes = await readServed(chunk, version, copy, signal);
        return { bytes, version: version.token ?? FILLED };
      } catch (error) {
        if (!(error instanceof ZpublishError)) throw error;
        if (error.code === "not-found") return undefined;
        // A file that was replaced is opened by the request itself.
        const isLost = error.details.staleIdentity !== undefined || attempt === MAX_ATTEMPTS;
        if (error.code !== "source-changed" || isLost) throw error;
        believed.delete(key);
      }
    }
  }

  const reader: ServedReader = {
    look,
    version: async (coords) => (snapshot.immutable ? FILLED : (await look(coords)).version),
    versionNow(coords) {
      const key = keyOf(coords);
      const version = known(key)?.version;
      return version === undefined
        ? undefined
        : { version, isUnchanged: () => known(key)?.version === version };
    },
    read,
    async measure(coords) {
      const found = await read(coords);
      return found && { byteLength: found.bytes.length, version: found.version };
    },
  };
  return reader;
}

/**
 * Looks up the version of a chunk. Versions of levels below may be believed. At a failure the other looks end: those of a high level are
 * thousands, for which the next request would wait.
 */
async function lookBelow(chunk: ServedChunk, signal: AbortSignal): Promise<Omit<Believed, "version">> {
  const { reader } = chunk.access;
  const beganMs = performance.now();
  if (!isServed(reader)) return { token: await chunk.delivery.findToken(chunk), checkedAtMs: beganMs };
  const others = new AbortController();
  const end = () => others.abort();
  signal.addEventListener("abort", end, { once: true });
  const stored = storedChunksOf(chunk.array.plan, chunk.coords);
  const below = await Promise.all(stored.map((coords) => reader.look(coords, others.signal))).catch(
    (error) => {
      end();
      throw error;
    },
  );
  return {
    token: combineTokens(below.map(({ version }) => version)),
    checkedAtMs: Math.min(...below.map(({ checkedAtMs }) => checkedAtMs)),
  };
}

function isServed(reader: ChunkReader): reader is ServedReader {
  return "look" in reader;
}

function keyOf(coords: readonly number[]): string {
  return coords.length === 0 ? "0" : coords.join(".");
}

function periodOf(freshness: Freshness): number {
  if (freshness === "always") return 0;
  return freshness === "immutable" ? Number.POSITIVE_INFINITY : freshness.seconds * 1_000;
}
