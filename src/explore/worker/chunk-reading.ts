import type { ChunkJob, ChunkOwner } from "./chunk-queue.js";
import type { Chunk, DatasetSession } from "./dataset-session.js";

/** What is made of chunks as they come. */
interface ReadingWork<T> {
  readonly priority: number;
  /** In the order in which they are read. */
  readonly chunks: readonly T[];
  /** Whether the first chunk that fails ends the reading; else the others are read, and answered with, before the failure is told. */
  readonly endsOnFailure: boolean;
  fill(chunk: T, values: Chunk): void;
  /** @param open Chunks that are not read yet. @param failed Chunks that could not be read. */
  answer(open: number, failed: number): void;
  fail(error: unknown): void;
}

/** Milliseconds between two answers. */
const ANSWER_MS = 100;

/** Reads chunks, and answers while they come. */
export class ChunkReading<T extends { readonly job: ChunkJob<Chunk> }> implements ChunkOwner<Chunk> {
  readonly priority: number;
  readonly jobs: readonly ChunkJob<Chunk>[];
  readonly #session: DatasetSession;
  readonly #work: ReadingWork<T>;
  readonly #open = new Map<string, T>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #errors: unknown[] = [];

  constructor(session: DatasetSession, work: ReadingWork<T>) {
    this.#session = session;
    this.#work = work;
    this.priority = work.priority;
    for (const chunk of work.chunks) {
      const cached = session.queue.get(chunk.job.key);
      if (cached === undefined) this.#open.set(chunk.job.key, chunk);
      else work.fill(chunk, cached.chunk);
    }
    this.jobs = Array.from(this.#open.values(), ({ job }) => job);
  }

  /** Begins to read. @param former Reading that this one follows. */
  start(former?: ChunkOwner<Chunk>): void {
    if (this.#open.size > 0) {
      this.#timer = setTimeout(() => this.#answer(), ANSWER_MS);
      this.#session.queue.want(this, former);
      return;
    }
    if (former !== undefined) this.#session.queue.release(former);
    this.#answer();
  }

  /** Ends the answers. */
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
    this.#work.fill(this.#open.get(key)!, chunk);
    this.#afterChunk(key);
  }

  onFailed(key: string, error: unknown): void {
    this.#errors.push(error);
    if (!this.#work.endsOnFailure) {
      this.#afterChunk(key);
      return;
    }
    this.end();
    this.#work.fail(error);
  }

  #afterChunk(key: string): void {
    this.#open.delete(key);
    if (this.#open.size > 0) {
      this.#timer ??= setTimeout(() => this.#answer(), ANSWER_MS);
      return;
    }
    this.end();
    this.#answer();
    if (this.#errors.length > 0) this.#work.fail(this.#errors[0]);
  }

  #answer(): void {
    this.stop();
    this.#work.answer(this.#open.size, this.#errors.length);
  }
}
