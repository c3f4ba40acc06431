import { cacheKeyOf } from "../cache/cache-key.js";
import type { ChunkCache } from "../cache/chunk-cache.js";
import { errorToData } from "../errors.js";
import type { Log } from "../observe/log.js";
import type { EncodePool } from "../pool/encode-pool.js";
import { settlesWithin } from "../settles-within.js";
import { createProbeChunk, type ProbeChunk } from "./probe-chunk.js";
import { UnreadyError } from "./unready-error.js";

/** Whether a server can answer, tried on what answers. */
export interface Readiness {
  /**
   * Tries the way of a request: a dataset's metadata, one chunk through the pool, the cache. However many ask, it is tried
   * once in a second at most. Never rejects.
   */
  check(): Promise<ReadinessReport>;
  /** From now on it may be ready. */
  begin(): void;
  /** From now on it is not. */
  drain(): void;
}

export interface ReadinessReport {
  readonly ready: boolean;
  /**
   * What keeps it from being ready: the part that fails, and words made for whoever asks, or the code of its error. Messages
   * of errors may name files: they are in the log.
   */
  readonly reason?: string;
  /** A word or a few for each part that was tried. No path of the machine. */
  readonly checks: Readonly<Record<string, string>>;
}

/** What is tried. */
export interface ReadinessParts {
  /**
   * Makes the metadata of some dataset that is open, if they are not made, and says in a word what it found: there may be
   * none to make. That one dataset fails is no reason: others are served.
   * @throws Whatever keeps them from being made.
   */
  readonly metadata: () => string | Promise<string>;
  /** Undefined where nothing serves chunks: none is started then. */
  readonly pool: () => EncodePool | undefined;
  /** Undefined where there is none. */
  readonly cache: () => ChunkCache | undefined;
  /** How long one chunk may take: a pool that is busy with such ones is not stuck. */
  readonly chunkTimeoutMs: number;
  /** Makes the chunk that is tried; another only in tests. */
  readonly createProbe?: () => Promise<ProbeChunk>;
  /** Is told what fails, once while it does so, and that it works again. */
  readonly log: Log;
}

/** One check serves all who ask so soon after. */
const CHECK_INTERVAL_MS = 1_000;
/** How long a check waits for one of its parts; then it says what it knows. Balancers may not wait longer than two seconds. */
const PART_TIMEOUT_MS = 750;
/** A pool that works is tried all the same after so long, and so is the cache, which counts what is looked up in it. */
const PROBE_INTERVAL_MS = 10_000;
/** For how long a failure is worth saying that nobody waited for. */
const FAILURE_SAID_MS = 10_000;
/** How long a chunk may wait while no worker has anything to do. */
const IDLE_PATIENCE_MS = 5_000;

/** Readiness of a server that is starting. */
export function createReadiness(parts: ReadinessParts): Readiness {
  let state: "starting" | "serving" | "draining" = "starting";
  let checking: Promise<ReadinessReport> | undefined;
  let last: { readonly at: number; readonly report: ReadinessReport } | undefined;
  const pool = createPoolCheck(parts);
  const cache = createCacheCheck(parts);
  const { log } = parts;
  /** Parts that failed when they were last tried, and with what kind of error. */
  const failing = new Map<string, string>();

  async function tryAll(): Promise<ReadinessReport> {
    const checks: Record<string, string> = {};
    let reason: string | undefined;
    for (const [name, check] of [
      ["metadata", () => checkMetadata(parts)],
      ["pool", pool],
      ["cache", cache],
    ] as const) {
      try {
        checks[name] = await check();
        if (failing.delete(name)) log.info({ part: name }, "a part of the server works again");
      } catch (error) {
        checks[name] = "failed";
        reason ??= `${name}: ${shownOf(error)}`;
        const kind = error instanceof UnreadyError ? error.name : errorToData(error).code;
        if (failing.get(name) === kind) continue;
        failing.set(name, kind);
        log.error({ err: error, part: name }, "a part of the server does not work: it is not ready");
      }
    }
    return reason === undefined ? { ready: true, checks } : { ready: false, reason, checks };
  }

  return {
    async check() {
      if (state !== "serving") return { ready: false, reason: state, checks: {} };
      const now = performance.now();
      if (last !== undefined && now - last.at < CHECK_INTERVAL_MS) return last.report;
      checking ??= tryAll().then((report) => {
        checking = undefined;
        last = { at: performance.now(), report };
        return report;
      });
      const report = await checking;
      // It may have begun to drain meanwhile.
      return (state as string) === "draining" ? { ready: false, reason: "draining", checks: {} } : report;
    },
    begin() {
      if (state === "starting") state = "serving";
    },
    drain() {
      state = "draining";
    },
  };
}

function shownOf(error: unknown): string {
  return error instanceof UnreadyError ? error.message : errorToData(error).code;
}

async function checkMetadata({ metadata }: ReadinessParts): Promise<string> {
  // Large ones take their time, once.
  let said = "busy";
  const made = Promise.resolve(metadata()).then((found) => {
    said = found;
  });
  await settlesWithin(made, PART_TIMEOUT_MS);
  return said;
}

/** A chunk that is made to see whether one can be. */
interface Probe {
  readonly begunAt: number;
  readonly made: Promise<void>;
  /** Whether a look waits for it, and will say how it ends. */
  isAwaited: boolean;
}

/** Load is no reason: a pool that makes chunks is a pool that works. */
function createPoolCheck({
  pool,
  chunkTimeoutMs,
  createProbe = createProbeChunk,
}: ReadinessParts): () => Promise<string> {
  let chunk: Promise<ProbeChunk> | undefined;
  let probe: Probe | undefined;
  let probedAt = Number.NEGATIVE_INFINITY;
  /** Of a probe that failed when nobody waited for it any more: the next look says it. */
  let failed: { readonly error: unknown; readonly at: number } | undefined;
  let seen = 0;

  async function make(at: EncodePool): Promise<void> {
    chunk ??= createProbe().catch((error: unknown) => {
      // What keeps it from being made may pass: it is tried again.
      chunk = undefined;
      throw error;
    });
    await (await chunk).make(at);
  }

  function begin(at: EncodePool): Probe {
    const made = make(at).finally(() => {
      probe = undefined;
      probedAt = performance.now();
    });
    const begun: Probe = { begunAt: performance.now(), made, isAwaited: false };
    made.catch((error: unknown) => {
      if (!begun.isAwaited) failed = { error, at: performance.now() };
    });
    probe = begun;
    return begun;
  }

  return async () => {
    const asked = pool();
    if (asked === undefined) return "none";
    const { stats } = asked;
    const before = seen;
    seen = stats.completed;
    const missed = failed;
    failed = undefined;
    if (missed !== undefined && performance.now() - missed.at < FAILURE_SAID_MS) {
      throw explained(missed.error, stats);
    }
    const isDue = performance.now() - probedAt >= PROBE_INTERVAL_MS;
    if (!isDue && probe === undefined && seen > before && !stats.isBroken) return "ok";
    const current = probe ?? begin(asked);
    const { begunAt, made } = current;
    current.isAwaited = true;
    try {
      if (await settlesWithin(made, PART_TIMEOUT_MS)) return "ok";
    } catch (error) {
      throw explained(error, stats);
    } finally {
      current.isAwaited = false;
    }
    if (stats.completed > seen) return "busy";
    const waited = performance.now() - Math.max(begunAt, stats.completedAt);
    const patience = stats.running > 0 ? chunkTimeoutMs + IDLE_PATIENCE_MS : IDLE_PATIENCE_MS;
    if (waited < patience) return "busy";
    throw new UnreadyError(`expected a chunk to be made, none was for ${Math.round(waited / 1000)} s`);
  };
}

/** A pool that cannot make chunks says it as one that has too many to make. */
function explained(error: unknown, { isBroken }: EncodePool["stats"]): unknown {
  return isBroken ? new UnreadyError("expected a worker to start, none does", { cause: error }) : error;
}

/** Without the cache everything is served, more slowly; with one that gives other bytes nothing should be. */
function createCacheCheck({ cache }: ReadinessParts): () => Promise<string> {
  // The same in all processes, now and later: it takes one place.
  const key = cacheKeyOf("readiness");
  const bytes = new Uint8Array(512).map((_, index) => index * 7);
  let said = "ok";
  let lookedAt = Number.NEGATIVE_INFINITY;
  return async () => {
    const asked = cache();
    if (asked === undefined) return "none";
    if (asked.stats.isOff) return "off";
    const now = performance.now();
    if (now - lookedAt < PROBE_INTERVAL_MS) return said;
    lookedAt = now;
    const found = asked.get(key);
    if (found === undefined) asked.put(key, bytes);
    else if (Buffer.compare(found, bytes) !== 0) {
      lookedAt = Number.NEGATIVE_INFINITY;
      throw new UnreadyError("expected the bytes that were put into it, received others");
    }
    // What is put is written in a while, and may not be for lack of room.
    said = "ok";
    return said;
  };
}
