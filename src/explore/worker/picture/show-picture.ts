import { type FrameAnswer, isOnGrid, MISSING, type ShowRequest } from "../../protocol.js";
import { type ChunkOwner, PRIORITY } from "../chunk-queue.js";
import type { Chunk, DatasetSession } from "../dataset-session.js";
import type { AxisReader } from "../read-axis.js";
import { Picture, type PicturePlan, type PlannedChunk } from "./picture.js";
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

/** Creates the picture of a plan, without any chunk. */
function emptyPicture({ grid, isMean, coarse }: PicturePlan, request: ShowRequest): Picture {
  const { width, height } = request.viewport;
  const picture = new Picture(width, height, { isMean, hasLevels: coarse.length > 0 });
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
  readonly #picture: Picture;
  readonly #session: DatasetSession;
  readonly #send: (frame: FrameAnswer) => void;
  readonly #fail: (error: unknown) => void;
  /** Fine chunks that are not painted, and those of the coarsest level, by key. */
  readonly #open = new Map<string, PlannedChunk>();
  readonly #openCoarse = new Map<string, PlannedChunk>();
  readonly #total: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #error: unknown;
  #failed = 0;
  #sentCoarse = false;

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
    this.#total = plan.fine.chunks.length;
    this.#paintCached();
    const coarse = this.#open.size === 0 ? [] : (plan.coarse[0]?.chunks ?? []);
    for (const chunk of coarse)
      if (!session.queue.has(chunk.job.key)) this.#openCoarse.set(chunk.job.key, chunk);
    // Coarse data that are more than the fine ones would only delay them.
    if (this.#openCoarse.size > this.#open.size) this.#openCoarse.clear();
    this.jobs = [...this.#openCoarse.values(), ...this.#open.values()].map(({ job }) => job);
  }

  /** Begins to read. @param former Picture that this one follows. */
  start(former: ChunkOwner<Chunk> | undefined): void {
    if (this.#open.size === 0) {
      if (former !== undefined) this.#session.queue.release(former);
      this.#sendFrame();
      return;
    }
    this.#timer = setTimeout(() => this.#sendFrame(), FRAME_MS);
    if (this.#openCoarse.size === 0 && this.#picture.hasCoarse) this.#sendFrame();
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
    const coarse = this.#openCoarse.get(key);
    const fine = this.#open.get(key);
    if (coarse !== undefined) {
      this.#openCoarse.delete(key);
      this.#picture.paintCoarse(coarse.place, chunk?.numbers);
    }
    if (fine !== undefined) {
      this.#open.delete(key);
      this.#picture.paint(fine.place, chunk?.numbers);
    }
    this.#afterChunk();
  }

  onFailed(key: string, error: unknown): void {
    // A coarse chunk that fails is not needed; the fine ones show the place, as not read if they fail as well.
    if (!this.#openCoarse.delete(key)) {
      this.#open.delete(key);
      if (this.#failed === 0) this.#error = error;
      this.#failed++;
    }
    this.#afterChunk();
  }

  #afterChunk(): void {
    if (this.#open.size === 0) {
      this.stop();
      this.#session.queue.release(this);
      // A picture with a failed chunk is sent, the chunk as not read, and then the failure.
      this.#sendFrame();
      if (this.#failed > 0) this.#fail(this.#error);
    } else if (this.#openCoarse.size === 0 && this.#picture.hasCoarse && !this.#sentCoarse) this.#sendFrame();
    else this.#timer ??= setTimeout(() => this.#sendFrame(), FRAME_MS);
  }

  #sendFrame(): void {
    this.stop();
    const { pixels, width, height, cells, missing, hasCoarse } = this.#picture;
    const { fine, coarse } = this.#plan;
    const isDone = this.#open.size === 0;
    this.#sentCoarse ||= hasCoarse;
    this.#send({
      kind: "frame",
      pixels: isDone ? pixels : pixels.slice(),
      width,
      height,
      done: this.#total - this.#open.size - this.#failed,
      total: this.#total,
      level: isDone || !hasCoarse ? fine.resolution.level : coarse[0]!.resolution.level,
      cells: isDone && this.#failed === 0 ? cells : this.#plan.cells,
      missing,
    });
  }

  /** Paints what is cached: the fine chunks, and those of coarser levels if some fine ones are not. */
  #paintCached(): void {
    const { fine, coarse } = this.#plan;
    for (const chunk of fine.chunks) {
      const cached = this.#session.queue.get(chunk.job.key);
      if (cached === undefined) this.#open.set(chunk.job.key, chunk);
      else this.#picture.paint(chunk.place, cached.chunk?.numbers);
    }
    if (this.#open.size === 0) return;
    for (const { chunks } of coarse) {
      for (const { job, place } of chunks) {
        const cached = this.#session.queue.get(job.key);
        if (cached !== undefined) this.#picture.paintCoarse(place, cached.chunk?.numbers);
      }
    }
  }
}
