import { setMaxListeners } from "node:events";
import { totalmem } from "node:os";
import { posix } from "node:path";
import type { ChunkOutcome } from "../codec/make-chunk.js";
import { type ErrorData, errorToData, messageOf, ZpublishError } from "../errors.js";
import { elementCount } from "../model/data-tree.js";
import { GUESSED_ITEM_BYTES } from "../model/data-type.js";
import type { ChunkPiece, LocalPlace, PieceLayout, ThreadSource } from "../zarr/chunk-reader.js";
import type { CodecStep } from "../zarr/codec-step.js";
import type { EncodingPlan } from "../zarr/plan/encoding-plan.js";
import { type ItemPick, pickedCount } from "../zarr/plan/item-pick.js";

/** A request to a worker to make one served chunk. */
export interface ChunkTask {
  readonly plan: EncodingPlan;
  /** Position in the served grid; of picked items, the first stored chunk that has some. */
  readonly chunkCoords: readonly number[];
  /** Items that are gathered in place of a served chunk. */
  readonly pick?: ItemPick;
  /** Becomes other than 0, in shared memory, when nothing waits for picked items any more. */
  readonly cancelled?: Int32Array;
  /** Version of the stored bytes, if the caller knows it. The quarantine treats another version as another chunk. */
  readonly version?: string | undefined;
  /** The stored chunks behind it, if the plan's source is `given`. Bytes that are not in shared memory move to the worker. */
  readonly stored?: readonly GivenChunk[];
  /** Tasks of the same stored chunks, which are made with this one: their outcomes are `others` of its own. */
  readonly others?: readonly Omit<ChunkTask, "others" | "stored">[];
}

/** A stored chunk that was read for a worker, or found for it. */
export interface GivenChunk extends GivenBytes {
  /** Position in the stored grid. */
  readonly coords: readonly number[];
  /** The parts' chunks that it is made of, if the array is joined. Then the other fields are theirs. */
  readonly pieces?: readonly GivenPiece[];
}

/** The bytes of a stored chunk, or their place. */
export interface GivenBytes {
  /** As `ChunkReader.version` returns it. Undefined if it is absent, or if the worker opens its source. */
  readonly version: string | undefined;
  /** As in `StoredChunk`. */
  readonly variant?: number;
  /** Undefined if the chunk is absent, or if the worker reads it itself. */
  readonly bytes: Uint8Array | undefined;
  /** Where the worker reads the chunk. Default: it has the bytes. */
  readonly place?: LocalPlace;
  /** Source that the worker opens to read the chunk. Default: it has the bytes or the place. */
  readonly source?: ThreadSource;
}

/** A piece of a chunk, read for a worker, or found for it. */
interface GivenPiece extends Omit<ChunkPiece, "reader"> {
  readonly given: GivenBytes;
}

/** Settings that a worker gets when it starts. */
export interface WorkerData {
  /** True if it computes a checksum of each chunk, for the cache. */
  readonly withChecksums: boolean;
  /** Time limit of one call to a source. */
  readonly sourceTimeoutMs: number;
}

/** A task, and spare memory for its chunk. */
export interface WorkerTask {
  readonly task: ChunkTask | ModuleCall;
  readonly into: ArrayBuffer | undefined;
}

/** Lists the memory that a worker takes over with a task. */
export function movedMemory({ task, into }: WorkerTask): ArrayBuffer[] {
  const { stored = [] } = "module" in task ? {} : task;
  const given = stored.flatMap((chunk) => [chunk, ...(chunk.pieces ?? []).map((piece) => piece.given)]);
  const buffers = [into, ...given.map(({ bytes }) => bytes?.buffer)];
  return [...new Set(buffers.filter((buffer) => buffer instanceof ArrayBuffer))];
}

/** A call of the default export of a module. */
export interface ModuleCall {
  /** URL of the module. */
  readonly module: string;
  readonly data: unknown;
  /** As in {@link ChunkTask}. */
  readonly cancelled: Int32Array;
}

/** The result of a call: what structured clone can copy. */
export type CallOutcome =
  | { readonly status: "returned"; readonly value: unknown }
  | { readonly status: "failed"; readonly error: ErrorData };

/** Creates the outcome of a call that failed. The error names the module, unless it is of this package. */
export function failedCall({ module }: Pick<ModuleCall, "module">, error: unknown): CallOutcome {
  if (error instanceof ZpublishError) return { status: "failed", error: errorToData(error) };
  const message = `module ${posix.basename(module)}: ${messageOf(error)}`;
  return { status: "failed", error: { code: "internal", message, details: {} } };
}

/**
 * The answer of a worker. `worn-out`: it has not begun the task, which comes back, and has to be replaced, because only the end of its
 * thread releases WebAssembly memory.
 */
export type TaskAnswer =
  | ChunkOutcome
  | CallOutcome
  | { readonly status: "worn-out"; readonly task: ChunkTask };

/** Several tasks for one caller. They end early when it aborts, or when one of them fails. */
export interface Work {
  /** In memory that workers see; see `ChunkTask`. */
  readonly flag: Int32Array;
  /** Its reason is the first failure, or ZpublishError `cancelled`. */
  readonly signal: AbortSignal;
  /** Ends the work. @returns The first failure: the others only follow from it. */
  fail(error: unknown): unknown;
  end(): void;
}

/** Begins work without tasks. @param signal Ends it. */
export function beginWork(signal: AbortSignal | undefined): Work {
  const flag = new Int32Array(new SharedArrayBuffer(4));
  const controller = new AbortController();
  // Each task of the work listens.
  setMaxListeners(0, controller.signal);
  const fail = (error: unknown): unknown => {
    signal?.removeEventListener("abort", end);
    Atomics.store(flag, 0, 1);
    controller.abort(error);
    return controller.signal.reason;
  };
  const end = () => void fail(new ZpublishError("cancelled", "nothing waits for these values any more"));
  signal?.addEventListener("abort", end, { once: true });
  if (signal?.aborted) end();
  return { flag, signal: controller.signal, fail, end };
}

/** Codecs that copy their input into a heap of their own, and the result out of it. */
const WITH_HEAP: ReadonlySet<string> = new Set(["zstd"]);

const estimates = new WeakMap<EncodingPlan, number>();

/**
 * Estimates the memory that making one chunk may take: incompressible stored bytes, the output of each codec (none is released before the
 * end), and the copy that leaves the worker. Of the parts' chunks, one is in memory at a time.
 */
export function memoryOfTask({
  plan,
  stored = [],
  pick,
}: Pick<ChunkTask, "plan" | "stored" | "pick">): number {
  // As stored, and decoded.
  const ofPick =
    pick === undefined ? 0 : 2 * pickedCount(pick) * Math.max(8, plan.itemSize || GUESSED_ITEM_BYTES);
  let ofPiece = 0;
  for (const { pieces = [] } of stored)
    for (const { layout } of pieces) ofPiece = Math.max(ofPiece, memoryOfPiece(layout));
  return memoryOfPlan(plan) + ofPick + ofPiece;
}

function memoryOfPiece({ chunkShape, itemSize, decode, variants, conversion }: PieceLayout): number {
  const copies = Math.max(copiesOf(decode), ...variants.map(copiesOf)) + (conversion === undefined ? 1 : 3);
  return elementCount(chunkShape) * (itemSize || GUESSED_ITEM_BYTES) * copies;
}

function memoryOfPlan(plan: EncodingPlan): number {
  const known = estimates.get(plan);
  if (known !== undefined) return known;
  const itemBytes = plan.itemSize || GUESSED_ITEM_BYTES;
  const storedBytes = elementCount(plan.stored.chunkShape) * itemBytes;
  const servedBytes = elementCount(plan.served.chunkShape) * itemBytes;
  const isViewed = plan.source.kind === "memory";
  const isRechunk = plan.kind === "rechunk";
  // Decoded chunks are kept for neighbouring served chunks.
  const { decode = [], encode = [] } = plan.variants ?? {};
  const decoding = Math.max(copiesOf(plan.decode), ...decode.map(copiesOf));
  const ofStored = (isViewed ? 0 : 1) + decoding + (isRechunk && decoding > 0 ? 1 : 0);
  const ofServed = (isRechunk ? 1 : 0) + Math.max(copiesOf(plan.encode), copiesOf(encode)) + 1;
  const estimate = storedBytes * ofStored + servedBytes * ofServed;
  estimates.set(plan, estimate);
  return estimate;
}

function copiesOf(steps: readonly CodecStep[]): number {
  return steps.reduce((copies, { codec }) => copies + (WITH_HEAP.has(codec.id) ? 3 : 1), 0);
}

/**
 * Default bound of the memory of all chunks being made: half of the memory of the machine or the control group.
 * @param processes Processes that share it.
 */
export function defaultMemoryBudget(processes = 1): number {
  // 0 if no limit is known; without a limit it is a number beyond all memory.
  const constrained = process.constrainedMemory?.() ?? 0;
  const total = constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
  return Math.floor(total / 2 / processes);
}
