import { setMaxListeners } from "node:events";
import { createBoundedMap } from "../collections/bounded-map.js";
import { createLimiter } from "../collections/limiter.js";
import { createSingleFlight, type Waiting } from "../collections/single-flight.js";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import { type MaybePromise, whenDone } from "../event-loop/maybe-promise.js";
import type { Freshness } from "../stores/object-versions.js";
import type { ChunkReader, ReadOptions, StoredChunk, StoredVersion } from "../zarr/chunk-reader.js";
import { createServedChunk, IMMUTABLE } from "./chunk-version.js";
import { type ChunkVersion, isAbsent, type ServedChunk } from "./delivery.js";

/** Chunks whose versions are remembered, of one array. */
const MAX_KNOWN = 16_384;
/** Chunks of one array whose versions are looked up at a time. Those below have bounds of their own, so all go on. */
const MAX_LOOKS = 16;
/** Version of a chunk that is made of nothing but absent ones, and is not absent. */
const FILLED = "fill";

/** A version, and when the stored chunks behind it were looked at. */
type Believed = Pick<StoredVersion, "token"> & { readonly checkedAtMs: number };

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

/** Tells whether a served chunk is in the cache in a version; undefined if there is no cache. */
export type FindServed = (chunk: ServedChunk, version: ChunkVersion) => boolean | undefined;

/**
 * Opens a reader of the chunks of a served array. Versions are cached for `freshness`, because one overview chunk depends on thousands
 * of stored chunks; a read that finds another version ends that.
 */
export function openServedReader(
  snapshot: DatasetSnapshot,
  array: ServedArray,
  freshness: Freshness,
  readServed: ReadServed,
  findServed: FindServed,
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

  function look(coords: readonly number[], caller?: Waiting): MaybePromise<Believed> {
    const key = keyOf(coords);
    const lookOnce = ({ signal }: Waiting) => limiter.run("", () => lookNow(key, coords, signal), signal);
    return known(key) ?? looks.run(key, lookOnce, caller);
  }

  async function lookNow(
    key: string,
    coords: readonly number[],
    signal: AbortSignal | undefined,
  ): Promise<Believed> {
    const found = await lookBelow(createServedChunk(snapshot, array, key, coords), signal);
    believed.set(key, found);
    return found;
  }

  async function versionOf(coords: readonly number[], signal?: AbortSignal): Promise<ChunkVersion> {
    const found = snapshot.immutable ? undefined : await look(coords, signal && { signal });
    return found === undefined ? IMMUTABLE : { wasChecked: true, token: found.token };
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
    const version = await versionOf(coords, signal);
    if (isAbsent(version) && plan.absentIsAbsent) return undefined;
    try {
      const bytes = await readServed(chunk, version, copy, signal);
      return { bytes, version: version.token ?? FILLED };
    } catch (error) {
      if (!(error instanceof ZpublishError)) throw error;
      if (error.code === "not-found") return undefined;
      // The next attempt of the request looks again.
      if (error.code === "source-changed") believed.delete(key);
      throw error;
    }
  }

  return {
    version(coords, { signal } = {}) {
      if (snapshot.immutable) return { token: FILLED };
      const key = keyOf(coords);
      return whenDone(look(coords, { signal }), ({ token, checkedAtMs }) => ({
        token: token ?? (plan.absentIsAbsent ? undefined : FILLED),
        checkedAtMs,
        isUnchanged: () => known(key)?.token === token,
      }));
    },
    read,
    async isCached(coords, signal) {
      // Several are looked up at a time.
      if (signal !== undefined) setMaxListeners(0, signal);
      const chunk = createServedChunk(snapshot, array, keyOf(coords), coords);
      return findServed(chunk, await versionOf(coords, signal));
    },
  };
}

/** Looks up the version of a chunk. At a failure the other looks below end: they may be thousands. */
async function lookBelow(chunk: ServedChunk, signal: AbortSignal | undefined): Promise<Believed> {
  const beganMs = performance.now();
  const looking = new AbortController();
  const end = () => looking.abort();
  signal?.addEventListener("abort", end, { once: true });
  try {
    const found = await chunk.delivery.version(chunk, { signal: looking.signal });
    return { token: found.token, checkedAtMs: found.checkedAtMs ?? beganMs };
  } finally {
    end();
  }
}

function keyOf(coords: readonly number[]): string {
  return coords.length === 0 ? "0" : coords.join(".");
}

function periodOf(freshness: Freshness): number {
  if (freshness === "always") return 0;
  return freshness === "immutable" ? Number.POSITIVE_INFINITY : freshness.seconds * 1_000;
}
