import { messageOf } from "../errors.js";
import { createHistogram, type Histogram } from "../observe/histogram.js";
import type { Log } from "../observe/log.js";
import { createArrayKeys } from "../pool/array-keys.js";
import type { ChunkOutcome, ChunkTask } from "../pool/chunk-task.js";
import type { EncodePool } from "../pool/encode-pool.js";
import {
  abandonedOutcome,
  drainingOutcome,
  failedOutcome,
  overloadedOutcome,
} from "../pool/failed-outcome.js";
import type { EncodePoolStats } from "../pool/pool-stats.js";
import type { TurnFromProcess, TurnToProcess } from "./process-message.js";
import { createRecentOutcomes } from "./recent-outcomes.js";

/** A pool that makes a chunk when it is this process's turn, or has it from the process that made it. */
export interface TurnPool extends EncodePool {
  /** Takes a message of the supervisor. */
  receive(message: TurnToProcess): void;
}

export interface TurnPoolOptions {
  /** Makes what it is given at once: it never has more to do than the supervisor gives turns for. */
  readonly pool: EncodePool;
  readonly send: (message: TurnFromProcess) => void;
  readonly log: Log;
  /** Chunks that may wait for their turn. */
  readonly maxWaiting: number;
}

/** What was made is kept a little longer than the supervisor lets others ask for it. */
const KEPT_MS = 2_000;
const KEPT_BYTES = 32 * 2 ** 20;

const ALWAYS = () => true;

interface Waiting {
  readonly task: ChunkTask;
  readonly isWanted: () => boolean;
  readonly settle: (outcome: ChunkOutcome) => void;
  /** Of `performance.now()`. */
  readonly askedAt: number;
}

/** The other side is `chunk-turns`. */
export function createTurnPool({ pool, send, log, maxWaiting }: TurnPoolOptions): TurnPool {
  const waiting = new Map<number, Waiting>();
  const making = new Set<number>();
  /** Of those that are being made: for whom others wait, too. */
  const shared = new Set<number>();
  const wait = createHistogram();
  const recent = createRecentOutcomes(KEPT_BYTES, KEPT_MS);
  const keyOf = createArrayKeys();
  let lastId = 0;
  let isClosed = false;

  function noteWait({ askedAt }: Waiting): void {
    wait.observe((performance.now() - askedAt) / 1000);
  }

  /** @param isDropped Whether the supervisor has to be told. */
  function settle(id: number, outcome: ChunkOutcome, isDropped: boolean): void {
    const found = waiting.get(id);
    waiting.delete(id);
    if (isDropped) send({ kind: "decline", id });
    found?.settle(outcome);
  }

  async function take(id: number): Promise<void> {
    const found = waiting.get(id);
    if (found === undefined) {
      send({ kind: "decline", id });
      return;
    }
    if (!found.isWanted()) {
      settle(id, abandonedOutcome(), true);
      return;
    }
    waiting.delete(id);
    noteWait(found);
    making.add(id);
    const { plan, chunkCoords } = found.task;
    log.debug({ path: plan.path, chunkCoords }, "making a chunk");
    let hasTurn = true;
    const outcome = await pool.makeChunk(found.task, found.isWanted, () => {
      // What waits apart takes no worker from others: nor does it take a turn.
      if (hasTurn) send({ kind: "made", id });
      hasTurn = false;
    });
    making.delete(id);
    const isShared = shared.delete(id);
    found.settle(outcome);
    if (isGivenUp(outcome)) {
      send({ kind: "decline", id });
      return;
    }
    recent.keep(id, outcome);
    if (hasTurn || isShared) send({ kind: "made", id, ...(isShared ? { outcome } : {}) });
  }

  function dropAbandoned(): void {
    for (const [id, { isWanted }] of waiting) if (!isWanted()) settle(id, abandonedOutcome(), true);
  }

  return {
    stats: statsInTurn(pool.stats, () => waiting.size, wait),
    makeChunk(task, isWanted = ALWAYS) {
      if (isClosed) return Promise.resolve(drainingOutcome());
      // What asks whether chunks are made here is answered here.
      if (task.isUrgent) return pool.makeChunk(task, isWanted);
      if (waiting.size >= maxWaiting) dropAbandoned();
      if (waiting.size >= maxWaiting) return Promise.resolve(overloadedOutcome(maxWaiting));
      return new Promise((resolve) => {
        const id = ++lastId;
        waiting.set(id, { task, isWanted, settle: resolve, askedAt: performance.now() });
        send({ kind: "ask", id, key: `${keyOf(task.plan)}${task.chunkCoords.join(".")}` });
      });
    },
    receive(message) {
      const { kind, id } = message;
      if (kind === "outcome") {
        const found = waiting.get(id);
        if (found !== undefined) noteWait(found);
        settle(id, withOwnBytes(message.outcome), false);
      } else if (kind === "turn") {
        take(id).catch((error: unknown) => settle(id, failedOutcome("internal", messageOf(error)), true));
      } else if (making.has(id)) shared.add(id);
      else {
        const outcome = recent.get(id);
        send({ kind: "made", id, ...(outcome === undefined ? {} : { outcome }) });
      }
    },
    async close() {
      isClosed = true;
      for (const id of [...waiting.keys()]) settle(id, drainingOutcome(), true);
      await pool.close();
    },
  };
}

/** The stats of the pool behind, which waits for nothing itself; what waits is here, and how long it has. */
function statsInTurn(stats: EncodePoolStats, waiting: () => number, wait: Histogram): EncodePoolStats {
  return Object.create(stats, {
    queued: { get: () => waiting() + stats.queued, enumerable: true },
    wait: { value: wait, enumerable: true },
  });
}

/** What came in a message is a view of the message. */
function withOwnBytes(outcome: ChunkOutcome): ChunkOutcome {
  return outcome.status === "encoded" ? { ...outcome, bytes: new Uint8Array(outcome.bytes) } : outcome;
}

/** It was not tried: others who wait for it are not to be told so. */
function isGivenUp(outcome: ChunkOutcome): boolean {
  return outcome.status === "failed" && ["overloaded", "draining"].includes(outcome.error.code);
}
