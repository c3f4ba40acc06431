import type { Packing } from "../../cf/packing.js";
import { chooseRange } from "../../colour/value-range.js";
import {
  otherAxes,
  type PictureAxes,
  type RangeAnswer,
  type ValueRangeRequest,
  type VariableDescription,
} from "../protocol.js";
import { costOf, type Resolution, resolutionsOf } from "./array-reader.js";
import { PRIORITY } from "./chunk-queue.js";
import type { Chunk, DatasetSession } from "./dataset-session.js";
import { unpacked } from "./picture/byte-scale.js";
import { planFrame } from "./picture/show-picture.js";
import { type AxisReader, indicesOf } from "./read-axis.js";

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
  const variable = session.variable(request.selection.variable);
  const sample =
    request.viewport === undefined || request.axes === undefined
      ? await sampleOfVariable(session, variable, request, signal)
      : await sampleOfView(session, axes, request, request.axes, signal);
  return describeSample(sample, request.percentiles);
}

/** Reads some chunks: of several steps, spread over the plane. */
async function sampleOfVariable(
  session: DatasetSession,
  variable: VariableDescription,
  { selection, axes }: ValueRangeRequest,
  signal: AbortSignal,
): Promise<Collected> {
  const resolution = resolutionsOf(variable).at(-1)!;
  const { chunkShape, shape } = resolution;
  const chunkBytes = costOf(1, chunkShape, variable.dataType.itemSize).bytes;
  const count = Math.max(1, Math.min(MAX_CHUNKS, Math.floor(MAX_BYTES / chunkBytes)));
  const chosen = spread(sampledChunks(variable, resolution, selection.at, axes), count);
  const read = (coords: readonly number[]) => session.readChunk(resolution, coords, PRIORITY.range, signal);
  const chunks = await readable(chosen.map(read), signal);
  const { packing, strides } = session.documentOf(resolution);
  const collected = new Collected(packing);
  for (const { chunk, index } of chunks) {
    // What lies behind the array's end is padding.
    const lengths = chunkShape.map((length, axis) =>
      Math.min(length, shape[axis]! - chosen[index]![axis]! * length),
    );
    collected.addBox(chunk, lengths, strides);
  }
  return collected;
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
async function sampleOfView(
  session: DatasetSession,
  axes: AxisReader,
  { selection, viewport }: ValueRangeRequest,
  pictureAxes: PictureAxes,
  signal: AbortSignal,
): Promise<Collected> {
  const plan = await planFrame(session, axes, {
    kind: "show",
    selection,
    axes: pictureAxes,
    viewport: viewport!,
    range: { low: 0, high: 1, isLog: false },
    isMoving: true,
    isConfirmed: false,
  });
  const planned = plan.chunks.slice(0, MAX_CHUNKS);
  const chunks = await readable(
    planned.map(({ job }) => session.queue.read(job, PRIORITY.range, signal)),
    signal,
  );
  const collected = new Collected(session.documentOf(plan.resolution).packing);
  chunks.forEach(({ chunk, index }) => {
    const { rows, columns, base } = planned[index]!.place;
    const [rowCells, columnCells] = [rows, columns].map(({ offsets, isFirst }) =>
      offsets.filter((_, place) => isFirst[place] === 1),
    ) as [Int32Array, Int32Array];
    const total = rowCells.length * columnCells.length;
    const step = stepOf(total);
    for (let place = 0; place < total; place += step) {
      const row = Math.floor(place / columnCells.length);
      collected.add(chunk, base + rowCells[row]! + columnCells[place % columnCells.length]!);
    }
  });
  return collected;
}

/**
 * Returns the chunks that can be read, with their places in the list: one that fails makes a sample smaller, and the picture that shows
 * it says why.
 * @throws The first failure if all fail, or the signal's reason
 */
async function readable(
  readings: readonly Promise<Chunk>[],
  signal: AbortSignal,
): Promise<{ readonly chunk: Chunk; readonly index: number }[]> {
  const results = await Promise.allSettled(readings);
  signal.throwIfAborted();
  const read = results.flatMap((result, index) =>
    result.status === "fulfilled" ? [{ chunk: result.value, index }] : [],
  );
  const failure = results.find((result) => result.status === "rejected");
  if (read.length === 0 && failure !== undefined) throw failure.reason;
  return read;
}

/** Finite values of a sample. */
class Collected {
  readonly #packing: Packing;
  readonly values: number[] = [];
  missing = 0;

  constructor(packing: Packing) {
    this.#packing = packing;
  }

  add(chunk: Chunk, offset: number): void {
    const stored = chunk?.numbers?.[offset];
    const value = stored === undefined ? Number.NaN : unpacked(stored, this.#packing);
    if (Number.isFinite(value)) this.values.push(value);
    else if (Number.isNaN(value)) this.missing++;
  }

  addBox(chunk: Chunk, lengths: readonly number[], strides: readonly number[]): void {
    const total = lengths.reduce((product, length) => product * length, 1);
    const step = stepOf(total);
    for (let place = 0; place < total; place += step) {
      let rest = place;
      let offset = 0;
      for (let axis = lengths.length - 1; axis >= 0; axis--) {
        offset += (rest % lengths[axis]!) * strides[axis]!;
        rest = Math.floor(rest / lengths[axis]!);
      }
      this.add(chunk, offset);
    }
  }
}

/** An odd step meets all columns of tables whose rows are even. */
function stepOf(total: number): number {
  return total <= MAX_VALUES_PER_CHUNK ? 1 : Math.ceil(total / MAX_VALUES_PER_CHUNK) | 1;
}

function describeSample(
  { values: found, missing }: Collected,
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
