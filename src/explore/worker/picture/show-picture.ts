import { type FrameAnswer, isOnGrid, MISSING, type ShowRequest } from "../../protocol.js";
import { type ChunkOwner, PRIORITY } from "../chunk-queue.js";
import type { Chunk, DatasetSession } from "../dataset-session.js";
import type { AxisReader } from "../read-axis.js";
import { ColourPicture, Picture, type PicturePlan, type PlannedChunk } from "./picture.js";
import { planCurvilinear, planGrid } from "./plan-picture.js";

/** Settles which chunks a picture needs. @throws ReadFailure */
export function planFrame(
  session: DatasetSession,
  axes: AxisReader,
  request: ShowRequest,
): Promise<PicturePlan> {
  const variable = session.variable(request.selection.variable);
  return isOnGrid(variable, request.axes, request.viewport.inCells)
    ? planCurvilinear(session, axes.curvilinear, request)
    : planGrid(session, axes, request);
}

function emptyPicture(
  { grid, isMean }: PicturePlan,
  { viewport: { width, height }, bands }: ShowRequest,
): Picture | ColourPicture {
  if (bands !== undefined) return new ColourPicture(width, height, isMean, bands.count);
  const picture = new Picture(width, height, isMean);
  const { pixels } = picture;
  grid?.rows.forEach((row, y) => {
    if (row === -1) pixels.fill(MISSING, y * width, (y + 1) * width);
  });
  grid?.columns.forEach((column, x) => {
    if (column === -1) for (let pixel = x; pixel < pixels.length; pixel += width) pixels[pixel] = MISSING;
  });
  return picture;
}

/** Milliseconds between two frames of one picture. */
const FRAME_MS = 100;

/** Reads the chunks of a picture, and sends frames while they come. */
export class PictureReading implements ChunkOwner<Chunk> {
  readonly priority = PRIORITY.picture;
  readonly jobs: ChunkOwner<Chunk>["jobs"];
  readonly #plan: PicturePlan;
  readonly #picture: Picture | ColourPicture;
  /** What is seen where the picture waits for chunks, and the chunks that it is made of. */
  readonly #draft: Picture | ColourPicture;
  readonly #drafted: ReadonlyMap<string, PlannedChunk>;
  readonly #session: DatasetSession;
  readonly #send: (frame: FrameAnswer) => void;
  readonly #fail: (error: unknown) => void;
  /** Chunks that are not painted, by key. */
  readonly #open = new Map<string, PlannedChunk>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #error: unknown;
  #failed = 0;

  constructor(
    session: DatasetSession,
    request: ShowRequest,
    plan: PicturePlan,
    send: (frame: FrameAnswer) => void,
    fail: (error: unknown) => void,
  ) {
    this.#session = session;
    this.#plan = plan;
    this.#send = send;
    this.#fail = fail;
    this.#picture = emptyPicture(plan, request);
    this.#draft = emptyPicture({ ...plan, isMean: false }, request);
    this.#drafted = new Map(plan.draft.map((chunk) => [chunk.job.key, chunk]));
    for (const chunk of plan.chunks) {
      const cached = session.queue.get(chunk.job.key);
      if (cached === undefined) this.#open.set(chunk.job.key, chunk);
      else this.#paint(chunk, cached.chunk);
    }
    const open = Array.from(this.#open.values(), ({ job }) => job);
    const isDrafted = ({ key }: { readonly key: string }) => this.#drafted.has(key);
    this.jobs = [...open.filter(isDrafted), ...open.filter((job) => !isDrafted(job))];
  }

  #paint({ job, place }: PlannedChunk, chunk: Chunk): void {
    this.#picture.paint(place, chunk?.numbers);
    const drafted = this.#drafted.get(job.key);
    if (drafted !== undefined) this.#draft.paint(drafted.place, chunk?.numbers);
  }

  /** Begins to read. @param former Picture that this one follows. */
  start(former: ChunkOwner<Chunk> | undefined): void {
    if (this.#open.size === 0) {
      if (former !== undefined) this.#session.queue.release(former);
      this.#sendFrame();
      return;
    }
    this.#timer = setTimeout(() => this.#sendFrame(), FRAME_MS);
    this.#session.queue.want(this, former);
  }

  /** Ends the sending of frames. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Ends the reading: chunks that nothing else wants are cancelled. */
  end(): void {
    this.stop();
    this.#session.queue.release(this);
  }

  onRead(key: string, chunk: Chunk): void {
    this.#paint(this.#open.get(key)!, chunk);
    this.#afterChunk(key);
  }

  onFailed(key: string, error: unknown): void {
    if (this.#failed++ === 0) this.#error = error;
    this.#afterChunk(key);
  }

  #afterChunk(key: string): void {
    this.#open.delete(key);
    if (this.#open.size > 0) {
      this.#timer ??= setTimeout(() => this.#sendFrame(), FRAME_MS);
      return;
    }
    this.end();
    // A picture with a failed chunk is sent, the chunk as not read, and then the failure.
    this.#sendFrame();
    if (this.#failed > 0) this.#fail(this.#error);
  }

  #sendFrame(): void {
    this.stop();
    const { width, height, cells, missing } = this.#picture;
    const { chunks, resolution, part } = this.#plan;
    const isDone = this.#open.size === 0;
    this.#send({
      kind: "frame",
      pixels: isDone ? this.#picture.pixels : this.#picture.over(this.#draft as Picture & ColourPicture),
      width,
      height,
      done: chunks.length - this.#open.size - this.#failed,
      total: chunks.length,
      level: resolution.level,
      cells: isDone && this.#failed === 0 ? cells : this.#plan.cells,
      missing,
      part,
    });
  }
}
