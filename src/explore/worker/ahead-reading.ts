import type { AheadRequest } from "../protocol.js";
import { type ChunkJob, type ChunkOwner, PRIORITY } from "./chunk-queue.js";
import type { Chunk, DatasetSession } from "./dataset-session.js";
import { planPicture } from "./picture/show-picture.js";
import type { AxisReader } from "./read-axis.js";

/** Reads the chunks of the next frames, so that playing waits for none. */
export class AheadReading implements ChunkOwner<Chunk> {
  readonly priority = PRIORITY.ahead;
  readonly jobs: readonly ChunkJob<Chunk>[];
  readonly #session: DatasetSession;
  readonly #tell: (steps: readonly number[]) => void;
  readonly #steps: readonly { readonly step: number; readonly keys: readonly string[] }[];
  readonly #open: Set<string>;

  private constructor(
    session: DatasetSession,
    steps: readonly { readonly step: number; readonly jobs: readonly ChunkJob<Chunk>[] }[],
    tell: (steps: readonly number[]) => void,
  ) {
    this.#session = session;
    this.#tell = tell;
    this.#steps = steps.map(({ step, jobs }) => ({ step, keys: jobs.map(({ key }) => key) }));
    const byKey = new Map(steps.flatMap(({ jobs }) => jobs.map((job) => [job.key, job] as const)));
    this.jobs = [...byKey.values()].filter(({ key }) => !session.queue.has(key));
    this.#open = new Set(this.jobs.map(({ key }) => key));
  }

  /**
   * Settles which chunks the frames need.
   * @param tell Receives the steps of which all chunks are read, once none is left to read.
   * @throws ReadFailure
   */
  static async plan(
    session: DatasetSession,
    axes: AxisReader,
    { show, along, steps }: AheadRequest,
    tell: (steps: readonly number[]) => void,
  ): Promise<AheadReading> {
    const planned = [];
    let bytes = 0;
    for (const step of steps) {
      // Further frames would push the first ones out of the cache.
      if (bytes > session.queue.maxBytes / 2) break;
      const selection = { ...show.selection, at: show.selection.at.with(along, step) };
      const { fine, cost } = await planPicture(session, axes, { ...show, selection });
      bytes += cost.bytes;
      planned.push({ step, jobs: fine.chunks.map(({ job }) => job) });
    }
    return new AheadReading(session, planned, tell);
  }

  /** Begins to read. @param former Reading that this one follows. */
  start(former: ChunkOwner<Chunk> | undefined): void {
    this.#session.queue.want(this, former);
    if (this.#open.size === 0) this.#finish();
  }

  /** Ends the reading. */
  end(): void {
    this.#session.queue.release(this);
  }

  onRead(key: string): void {
    this.#open.delete(key);
    if (this.#open.size === 0) this.#finish();
  }

  /** A chunk that fails ahead of time is shown as failed once its frame is shown. */
  onFailed(key: string): void {
    this.onRead(key);
  }

  #finish(): void {
    this.end();
    const cached = this.#steps.filter(({ keys }) => keys.every((key) => this.#session.queue.has(key)));
    this.#tell(cached.map(({ step }) => step));
  }
}
