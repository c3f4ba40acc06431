import { centreOf, indexAt } from "../axis.js";
import {
  isOnGrid,
  type ProbeAnswer,
  type ProbeRequest,
  type ReadingCost,
  type SeriesAnswer,
  type SeriesRequest,
  type VariableDescription,
} from "../protocol.js";
import { valueText } from "../value-text.js";
import { costOf, finestOf } from "./array-reader.js";
import { type ChunkJob, type ChunkOwner, PRIORITY, ReadFailure } from "./chunk-queue.js";
import type { Chunk, DatasetSession } from "./dataset-session.js";
import { unpacked } from "./picture/byte-scale.js";
import { nameOfCell } from "./picture/read-listed-cells.js";
import type { AxisReader, FoundCell } from "./read-axis.js";

const ANSWER_MS = 100;

/** Reads the values along one axis, chunk by chunk from its begin. */
export class SeriesReading implements ChunkOwner<Chunk> {
  readonly priority = PRIORITY.series;
  readonly jobs: readonly ChunkJob<Chunk>[];
  readonly cost: ReadingCost;
  readonly #session: DatasetSession;
  readonly #packing: VariableDescription["packing"];
  readonly #send: (answer: SeriesAnswer) => void;
  readonly #fail: (error: unknown) => void;
  readonly #values: Float64Array<ArrayBuffer>;
  /** Keys of chunks that are not read, and their places in the series. */
  readonly #open = new Map<string, number>();
  readonly #chunkLength: number;
  readonly #total: number;
  /** Place of the first value in its chunk, and distance of the next one. */
  readonly #base: number;
  readonly #stride: number;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    session: DatasetSession,
    { selection, along }: SeriesRequest,
    send: (answer: SeriesAnswer) => void,
    fail: (error: unknown) => void,
  ) {
    const variable = session.variable(selection.variable);
    const { shape, chunkShape, dataType } = variable;
    const length = shape[along];
    if (length === undefined) throw new ReadFailure(`${variable.title} has no axis ${along}.`);
    this.#session = session;
    this.#packing = variable.packing;
    this.#send = send;
    this.#fail = fail;
    this.#values = new Float64Array(length).fill(Number.NaN);
    const source = finestOf(variable);
    const at = shape.map((_, axis) => (axis === along ? 0 : (selection.at[axis] ?? 0)));
    const { coords, offset } = session.placeOf(source, at);
    this.#stride = session.documentOf(source).strides[along]!;
    this.#base = offset;
    this.#chunkLength = chunkShape[along]!;
    this.#total = Math.ceil(length / this.#chunkLength);
    const jobs: ChunkJob<Chunk>[] = [];
    for (let place = 0; place < this.#total; place++) {
      const job = session.job(source, coords.with(along, place));
      const cached = session.queue.get(job.key);
      if (cached === undefined) {
        this.#open.set(job.key, place);
        jobs.push(job);
      } else this.#fill(place, cached.chunk);
    }
    this.jobs = jobs;
    this.cost = costOf(this.jobs.length, chunkShape, dataType.itemSize);
  }

  start(): void {
    if (this.#open.size === 0) this.#answer();
    else this.#session.queue.want(this);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#session.queue.release(this);
  }

  onRead(key: string, chunk: Chunk): void {
    this.#fill(this.#open.get(key)!, chunk);
    this.#open.delete(key);
    if (this.#open.size === 0) {
      this.stop();
      this.#answer();
    } else this.#timer ??= setTimeout(() => this.#answer(), ANSWER_MS);
  }

  onFailed(_key: string, error: unknown): void {
    this.stop();
    this.#fail(error);
  }

  #fill(place: number, chunk: Chunk): void {
    if (chunk?.numbers === undefined) return;
    const begin = place * this.#chunkLength;
    const count = Math.min(this.#chunkLength, this.#values.length - begin);
    for (let index = 0; index < count; index++) {
      const stored = chunk.numbers[this.#base + index * this.#stride]!;
      this.#values[begin + index] = unpacked(stored, this.#packing);
    }
  }

  #answer(): void {
    this.#timer = undefined;
    this.#send({
      kind: "series",
      values: this.#values.slice(),
      done: this.#total - this.#open.size,
      total: this.#total,
    });
  }
}

/** Reads the value of the cell at a place of the picture. @throws ReadFailure, or the signal's reason */
export async function probeCell(
  session: DatasetSession,
  axes: AxisReader,
  request: ProbeRequest,
  signal: AbortSignal,
): Promise<ProbeAnswer> {
  const { selection, x, y, inCells, bands } = request;
  const variable = session.variable(selection.variable);
  const { shape, packing } = variable;
  const found = isOnGrid(variable, request.axes, inCells)
    ? await axes.curvilinear.cellAt(request)
    : await cellOnGrid(axes, variable, request);
  if (found === undefined) return { kind: "value", cell: undefined, x, y, value: undefined, text: "" };
  const cell = shape.map((_, axis) =>
    axis === request.axes.y ? found.row : axis === request.axes.x ? found.column : (selection.at[axis] ?? 0),
  );
  const source = finestOf(variable);
  const readCell = async (at: readonly number[]) => {
    const { coords, offset } = session.placeOf(source, at);
    const chunk = await session.readChunk(source, coords, PRIORITY.probe, signal);
    const value = chunk?.numbers === undefined ? Number.NaN : unpacked(chunk.numbers[offset]!, packing);
    return { value: Number.isNaN(value) ? undefined : value, text: valueText(variable, chunk, offset) };
  };
  const { axis = 0, count } = bands ?? {};
  const cells =
    count === undefined ? [cell] : Array.from({ length: count }, (_, band) => cell.with(axis, band));
  const [name, ...read] = await Promise.all([
    nameOfCell(session, variable, cell, signal),
    ...cells.map(readCell),
  ]);
  const text = read.map((each) => each.text).join(", ");
  return { kind: "value", cell, x: found.x, y: found.y, value: read[0]!.value, text, name };
}

async function cellOnGrid(
  axes: AxisReader,
  variable: VariableDescription,
  { x, y, inCells, axes: shown }: ProbeRequest,
): Promise<FoundCell | undefined> {
  const [xAxis, yAxis] = await axes.plane(variable, shown, inCells);
  const [column, row] = [indexAt(xAxis, x), indexAt(yAxis, y)];
  if (column === -1 || row === -1) return undefined;
  return { row, column, x: centreOf(xAxis, column), y: centreOf(yAxis, row) };
}
