import { type Packing, unpacked } from "../../cf/packing.js";
import { chooseRange } from "../../colour/value-range.js";
import { elementCount } from "../../model/data-tree.js";
import {
  otherAxes,
  type PictureAxes,
  type RangeAnswer,
  type ShowRequest,
  type ValueRangeRequest,
  type VariableDescription,
} from "../protocol.js";
import { MAX_UNASKED_CHUNK_BYTES, type Resolution, resolutionsOf } from "./array-reader.js";
import { PRIORITY } from "./chunk-queue.js";
import type { Chunk, DatasetSession } from "./dataset-session.js";
import { planFrame } from "./picture/show-picture.js";
import { type AxisReader, indicesOf, offsetAt } from "./read-axis.js";

/** Most chunks, and decoded bytes, that a sample is made of. One chunk is always read. */
const MAX_CHUNKS = 16;
const MAX_BYTES = 32 * 2 ** 20;
/** Most steps of the first other axis, and chunks of one step. */
const MAX_STEPS = 4;
const MAX_VALUES_PER_CHUNK = 50_000;
/** Most chunks along one axis of the picture. */
const PLANE_CHUNKS = 4;
const BINS = 64;

/** Finds the range and histogram of a variable from a sample. @throws ReadFailure, or the signal's reason */
export async function findRange(
  session: DatasetSession,
  axes: AxisReader,
  request: ValueRangeRequest,
  signal: AbortSignal,
): Promise<RangeAnswer> {
  const { selection, viewport } = request;
  const view = viewport && request.axes && { selection, viewport, axes: request.axes };
  const sampled = view
    ? await sampledOfView(session, axes, view, signal)
    : sampledOfVariable(session, request, signal);
  return describeSample(await readSample(sampled, signal), request.percentiles);
}

/** Chunks that are being read, and which of their cells are in the sample. */
interface Sampled {
  readonly packing: Packing;
  readonly readings: readonly Promise<Chunk>[];
  /** By chunk: how many cells there are, and the offset of each. */
  readonly cells: readonly { readonly count: number; readonly offsetOf: (place: number) => number }[];
}

/** Reads some chunks: of several steps, spread over the plane. */
function sampledOfVariable(
  session: DatasetSession,
  { selection, axes, isConfirmed }: ValueRangeRequest,
  signal: AbortSignal,
): Sampled {
  const variable = session.variable(selection.variable);
  const resolution = resolutionsOf(variable).at(-1)!;
  const { chunkShape, shape } = resolution;
  const chunkBytes = session.chunkBytes(resolution);
  const isRead = isConfirmed === true || chunkBytes <= MAX_UNASKED_CHUNK_BYTES;
  const most = isRead ? Math.max(1, Math.min(MAX_CHUNKS, Math.floor(MAX_BYTES / chunkBytes))) : 0;
  const chosen = spread(sampledChunks(variable, resolution, selection.at, axes), most);
  const { packing, strides } = session.documentOf(resolution);
  return {
    packing,
    readings: chosen.map((coords) =>
      session.queue.read(session.job(resolution, coords), PRIORITY.range, signal),
    ),
    cells: chosen.map((coords) => {
      // What lies behind the array's end is padding.
      const lengths = chunkShape.map((length, axis) =>
        Math.min(length, shape[axis]! - coords[axis]! * length),
      );
      return { count: elementCount(lengths), offsetOf: (place) => offsetAt(place, lengths, strides) };
    }),
  };
}

/** Returns the chunks that may be sampled: some of the plane, at several steps of time, else of the first other axis. */
function sampledChunks(
  variable: VariableDescription,
  { chunkShape, shape }: Resolution,
  at: readonly number[],
  axes: PictureAxes | undefined,
): number[][] {
  const others = axes === undefined ? [] : otherAxes(variable, axes);
  const stepped =
    others.find((axis) => variable.axes[axis]?.role === "T") ?? others.find((axis) => shape[axis]! > 1);
  const choices = shape.map((length, axis) => {
    const chunks = Math.ceil(length / chunkShape[axis]!);
    if (!others.includes(axis)) return inner(chunks, shape.length === 1 ? MAX_CHUNKS : PLANE_CHUNKS);
    const steps = axis === stepped ? spread([...Array(length).keys()], MAX_STEPS - 1) : [];
    const here = Math.min(at[axis] ?? 0, length - 1);
    return [...new Set([here, ...steps].map((step) => Math.floor(step / chunkShape[axis]!)))];
  });
  return Array.from(indicesOf(choices.map(({ length }) => length)), (picked) =>
    picked.map((index, axis) => choices[axis]![index]!),
  );
}

/** Reads what is visible, at the resolution at which it is shown. */
async function sampledOfView(
  session: DatasetSession,
  axes: AxisReader,
  view: Pick<ShowRequest, "selection" | "axes" | "viewport">,
  signal: AbortSignal,
): Promise<Sampled> {
  const range = { low: 0, high: 1, isLog: false };
  const request = { ...view, kind: "show", range, isMoving: true, isConfirmed: false } as const;
  const { chunks, resolution } = await planFrame(session, axes, request);
  // A huge chunk is asked about in the middle of the map.
  const isHuge = session.chunkBytes(resolution) > MAX_UNASKED_CHUNK_BYTES;
  const chosen = chunks.filter(({ job }) => !isHuge || session.queue.has(job.key)).slice(0, MAX_CHUNKS);
  return {
    packing: session.documentOf(resolution).packing,
    readings: chosen.map(({ job }) => session.queue.read(job, PRIORITY.range, signal)),
    cells: chosen.map(({ place: { rows, columns, base } }) => {
      const [rowCells, columnCells] = [rows, columns].map(({ offsets, isFirst }) =>
        offsets.filter((_, place) => isFirst[place] === 1),
      ) as [Int32Array, Int32Array];
      const { length } = columnCells;
      const offsetOf = (place: number) =>
        base + rowCells[Math.floor(place / length)]! + columnCells[place % length]!;
      return { count: rowCells.length * length, offsetOf };
    }),
  };
}

/**
 * Reads the finite values of a sample, and counts missing ones. A chunk that fails makes it smaller, and the picture that shows it says why.
 * @throws The first failure if all fail, or the signal's reason
 */
async function readSample({ readings, packing, cells }: Sampled, signal: AbortSignal) {
  const results = await Promise.allSettled(readings);
  signal.throwIfAborted();
  const failure = results.find((result) => result.status === "rejected");
  if (failure !== undefined && results.every(({ status }) => status === "rejected")) throw failure.reason;
  const values: number[] = [];
  let missing = 0;
  for (const [index, result] of results.entries()) {
    if (result.status === "rejected") continue;
    const { count, offsetOf } = cells[index]!;
    // An odd step meets all columns of tables whose rows are even.
    const step = count <= MAX_VALUES_PER_CHUNK ? 1 : Math.ceil(count / MAX_VALUES_PER_CHUNK) | 1;
    for (let place = 0; place < count; place += step) {
      const value = unpacked(result.value?.numbers?.[offsetOf(place)] ?? Number.NaN, packing);
      if (Number.isFinite(value)) values.push(value);
      else if (Number.isNaN(value)) missing++;
    }
  }
  return { values, missing };
}

function describeSample(
  { values: found, missing }: Awaited<ReturnType<typeof readSample>>,
  percentiles: readonly [number, number],
): RangeAnswer {
  const values = Float64Array.from(found);
  const range = values.length === 0 ? undefined : chooseRange(values, percentiles);
  const { 0: least = Number.NaN, [values.length - 1]: greatest = Number.NaN } = values;
  const bins = new Array<number>(values.length === 0 ? 0 : BINS).fill(0);
  const width = (greatest - least) / BINS;
  for (const value of values) {
    const bin = width > 0 ? Math.min(BINS - 1, Math.floor((value - least) / width)) : 0;
    bins[bin] = bins[bin]! + 1;
  }
  return { kind: "range", range, least, greatest, bins, count: values.length + missing, missing };
}

/** Returns at most `count` of the numbers from 0, the middles of equal parts: the ends of an axis are often poles. */
function inner(length: number, count: number): number[] {
  const parts = Math.min(length, count);
  return Array.from({ length: parts }, (_, part) => Math.floor(((part + 0.5) * length) / parts));
}

/** Returns at most `count` items, at equal distances, the first and the last among them; one is the middle one. */
function spread<T>(items: readonly T[], count: number): T[] {
  if (items.length <= count) return [...items];
  if (count === 1) return [items[items.length >> 1]!];
  const step = (items.length - 1) / (count - 1);
  return Array.from({ length: count }, (_, index) => items[Math.round(index * step)]!);
}
