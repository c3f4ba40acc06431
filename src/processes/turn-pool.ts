import { type ErrorDetails, messageOf } from "../errors.js";
import type { Log } from "../observe/log.js";
import type { ChunkOutcome, ChunkTask } from "../pool/chunk-task.js";
import type { EncodePool } from "../pool/encode-pool.js";
import type { EncodingPlan } from "../zarr/encoding-plan.js";
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
}

/** The other side is `chunk-turns`. */
export function createTurnPool({ pool, send, log, maxWaiting }: TurnPoolOptions): TurnPool {
  const waiting = new Map<number, Waiting>();
  const making = new Set<number>();
  /** Of those that are being made: for whom others wait, too. */
  const shared = new Set<number>();
  const recent = createRecentOutcomes(KEPT_BYTES, KEPT_MS);
  const keyOf = createKeys();
  let lastId = 0;
  let isClosed = false;

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
      settle(id, abandoned(), true);
      return;
    }
    waiting.delete(id);
    making.add(id);
    const { plan, chunkCoords } = found.task;
    log.debug({ path: plan.path, chunkCoords }, "making a chunk");
    const outcome = await pool.makeChunk(found.task, found.isWanted);
    making.delete(id);
    const isShared = shared.delete(id);
    found.settle(outcome);
    if (isGivenUp(outcome)) {
      send({ kind: "decline", id });
      return;
    }
    recent.keep(id, outcome);
    send({ kind: "made", id, ...(isShared ? { outcome } : {}) });
  }

  function dropAbandoned(): void {
    for (const [id, { isWanted }] of waiting) if (!isWanted()) settle(id, abandoned(), true);
  }

  return {
    get queued() {
      return waiting.size;
    },
    makeChunk(task, isWanted = ALWAYS) {
      if (isClosed) return Promise.resolve(failed("draining", "the server is shutting down"));
      if (waiting.size >= maxWaiting) dropAbandoned();
      if (waiting.size >= maxWaiting) {
        const what = `expected at most ${maxWaiting} chunks to wait for a worker, received one more`;
        return Promise.resolve(failed("overloaded", what));
      }
      return new Promise((resolve) => {
        const id = ++lastId;
        waiting.set(id, { task, isWanted, settle: resolve });
        send({ kind: "ask", id, key: keyOf(task) });
      });
    },
    receive(message) {
      const { kind, id } = message;
      if (kind === "outcome") settle(id, withOwnBytes(message.outcome), false);
      else if (kind === "turn") {
        take(id).catch((error: unknown) => settle(id, failed("internal", messageOf(error)), true));
      } else if (making.has(id)) shared.add(id);
      else {
        const outcome = recent.get(id);
        send({ kind: "made", id, ...(outcome === undefined ? {} : { outcome }) });
      }
    },
    async close() {
      isClosed = true;
      for (const id of [...waiting.keys()])
        settle(id, failed("draining", "the server is shutting down"), true);
      await pool.close();
    },
  };
}

/** What tells chunks apart in all processes: the bytes a plan makes, and the place it makes them of. */
function createKeys(): (task: ChunkTask) => string {
  const keys = new WeakMap<EncodingPlan, string>();
  return ({ plan, chunkCoords }) => {
    const key = keys.get(plan) ?? JSON.stringify([plan.id, plan.path, plan.source]);
    keys.set(plan, key);
    return `${key}${chunkCoords.join(".")}`;
  };
}

/** What came in a message is a view of the message. */
function withOwnBytes(outcome: ChunkOutcome): ChunkOutcome {
  return outcome.status === "encoded" ? { ...outcome, bytes: new Uint8Array(outcome.bytes) } : outcome;
}

/** It was not tried: others who wait for it are not to be told so. */
function isGivenUp(outcome: ChunkOutcome): boolean {
  return outcome.status === "failed" && ["overloaded", "draining"].includes(outcome.error.code);
}

function abandoned(): ChunkOutcome {
  return failed("overloaded", "nobody waits for the chunk any more", { abandoned: true });
}

function failed(
  code: "overloaded" | "draining" | "internal",
  message: string,
  details: ErrorDetails = {},
): ChunkOutcome {
  return { status: "failed", error: { code, message, details } };
}
