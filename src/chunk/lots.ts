import type { ChunkOutcome } from "../codec/make-chunk.js";
import { createLimiter } from "../collections/limiter.js";
import { createSingleFlight } from "../collections/single-flight.js";
import { errorToData } from "../errors.js";
import { elementCount } from "../model/data-tree.js";
import type { ChunkTask } from "../pool/chunk-task.js";
import type { EncodingPlan } from "../zarr/plan/encoding-plan.js";
import { storedChunksOfTask } from "../zarr/plan/item-pick.js";

/** Makes a chunk; see `EncodePool.makeChunk`. */
export type MakeChunk = (task: ChunkTask, signal?: AbortSignal) => Promise<ChunkOutcome>;

/** Decoded bytes up to which a worker keeps a stored chunk for the next task (`createDecodedCache`), so that no lots are needed. */
const MAX_KEPT_BYTES = 32 * 2 ** 20;
/** Bound of the bytes that the tasks of a lot make, before they are encoded. A picture, or picked items, count as 128 KiB. */
const MAX_LOT_BYTES = 32 * 2 ** 20;
const PICTURE_BYTES = 128 * 1024;
/** Bound of the stored chunks of a lot, decoded, if there are several. */
const MAX_HELD_BYTES = 64 * 2 ** 20;

/** Tasks that need the same stored chunks, and have not begun. */
interface Lot {
  readonly id: string;
  readonly tasks: ChunkTask[];
  byteLength: number;
}

/**
 * Wraps `makeChunk` so that tasks which need the same large stored chunk, or pictures of the same chunks, are made in lots: one lot at a
 * time, by one worker, which reads and decodes the stored chunks once. Tasks that come meanwhile make the next lot.
 */
export function inLots(makeChunk: MakeChunk): MakeChunk {
  /** By what the tasks need. */
  const open = new Map<string, Lot>();
  const flights = createSingleFlight<readonly ChunkOutcome[]>();
  const turns = createLimiter({ maxRunning: Infinity, maxPerKey: 1, maxWaiting: Infinity });
  let lots = 0;

  function lotFor(key: string, byteLength: number): Lot {
    const found = open.get(key);
    if (found !== undefined && found.byteLength + byteLength <= MAX_LOT_BYTES) return found;
    const lot = { id: `${lots++}`, tasks: [], byteLength: 0 };
    open.set(key, lot);
    return lot;
  }

  function close(key: string, lot: Lot): void {
    if (open.get(key) === lot) open.delete(key);
  }

  async function makeLot(key: string, lot: Lot, signal: AbortSignal): Promise<readonly ChunkOutcome[]> {
    const make = async () => {
      close(key, lot);
      const [first, ...others] = lot.tasks as [ChunkTask, ...ChunkTask[]];
      const outcome = await makeChunk(others.length > 0 ? { ...first, others } : first, signal);
      return [outcome, ...(outcome.others ?? others.map(() => outcome))];
    };
    // Not at once: requests that came together are in one lot.
    return Promise.resolve().then(() => turns.run(key, make, signal));
  }

  async function makeInLot(key: string, task: ChunkTask, signal: AbortSignal | undefined) {
    const byteLength = madeByteLength(task);
    const lot = lotFor(key, byteLength);
    lot.byteLength += byteLength;
    const index = lot.tasks.push(task) - 1;
    try {
      const outcomes = await flights.run(lot.id, (flight) => makeLot(key, lot, flight.signal), { signal });
      return outcomes[index]!;
    } catch (error) {
      // All who waited for it have gone.
      close(key, lot);
      return { status: "failed", error: errorToData(error) } as const;
    }
  }

  return (task, signal) => {
    const key = lotKeyOf(task);
    return key === undefined ? makeChunk(task, signal) : makeInLot(key, task, signal);
  };
}

function madeByteLength({ plan: { compute, itemSize, served }, pick }: ChunkTask): number {
  if (compute !== undefined || pick !== undefined) return PICTURE_BYTES;
  return elementCount(served.chunkShape) * itemSize;
}

const sourceKeys = new WeakMap<EncodingPlan, string>();

/** Names the stored chunks of a task that is made in lots; undefined if it is not. */
function lotKeyOf(task: ChunkTask): string | undefined {
  const { plan } = task;
  const { kind, source, compute, itemSize, stored, decode, variants } = plan;
  if (kind !== "rechunk" || source.kind === "memory") return undefined;
  const byteLength = elementCount(stored.chunkShape) * itemSize;
  const isLarge = byteLength > MAX_KEPT_BYTES;
  const isPicture = compute !== undefined && compute.kind !== "coarsen";
  if (!isLarge && !isPicture) return undefined;
  const chunks = storedChunksOfTask(task);
  // The worker holds all of them while it makes a lot.
  if (chunks.length > 1 && chunks.length * byteLength > MAX_HELD_BYTES) return undefined;
  let key = sourceKeys.get(plan);
  if (key === undefined) {
    key = JSON.stringify([source, decode, variants]);
    sourceKeys.set(plan, key);
  }
  return `${key}\n${chunks.join(" ")}`;
}
