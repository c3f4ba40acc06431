import { messageOf } from "../../errors.js";
import type {
  AheadRequest,
  CancelRequest,
  ExploreAnswer,
  SeriesRequest,
  ShowRequest,
  WorkerRequest,
} from "../protocol.js";
import { isTooMuch, MAX_UNASKED_CHUNK_BYTES } from "./array-reader.js";
import { type ChunkJob, PRIORITY, type QueueLimits, ReadFailure } from "./chunk-queue.js";
import { type Chunk, DatasetSession } from "./dataset-session.js";
import { findRange } from "./find-range.js";
import { planFrame, readingOfPicture } from "./picture/show-picture.js";
import { AxisReader, answerAxis, answerText } from "./read-axis.js";
import { probeCell, readingOfSeries } from "./series-reading.js";

/**
 * Reads the chunks of the next frames, so that playing waits for none. A chunk that fails ahead of time is shown as failed once its
 * frame is shown. `onStart` is called when chunks are asked for: readings before this one may end then.
 * @returns The steps of which all chunks are read.
 * @throws ReadFailure
 */
async function readAhead(
  session: DatasetSession,
  axes: AxisReader,
  { show, along, steps }: AheadRequest,
  signal: AbortSignal,
  onStart: () => void,
): Promise<number[]> {
  const { queue } = session;
  const frames: { readonly step: number; readonly jobs: readonly ChunkJob<Chunk>[] }[] = [];
  let [bytes, count] = [0, 0];
  for (const step of steps) {
    // Further frames would push the first ones out of the cache, or come too late.
    if (bytes > queue.maxBytes / 2 || isTooMuch({ chunks: count, bytes: 0 })) break;
    const selection = { ...show.selection, at: show.selection.at.with(along, step) };
    const { chunks, cost } = await planFrame(session, axes, { ...show, selection });
    bytes += cost.bytes;
    count += cost.chunks;
    frames.push({ step, jobs: chunks.map(({ job }) => job) });
  }
  const jobs = new Map(frames.flatMap(({ jobs }) => jobs.map((job) => [job.key, job] as const)));
  const unread = Array.from(jobs.values()).filter(({ key }) => !queue.has(key));
  const readings = unread.map((job) => queue.read(job, PRIORITY.ahead, signal));
  onStart();
  await Promise.allSettled(readings);
  return frames.filter(({ jobs }) => jobs.every(({ key }) => queue.has(key))).map(({ step }) => step);
}

/** Sends an answer. @param transfer Buffers that the receiver owns from now on. */
type SendAnswer = (answer: ExploreAnswer, transfer: readonly ArrayBuffer[]) => void;

type AnswerBody = ExploreAnswer extends infer Each
  ? Each extends unknown
    ? Omit<Each, "id">
    : never
  : never;

type Reading = ReturnType<typeof readingOfPicture>;

/** Answers the requests of the page, in a worker or in a test. */
export class ExploreSession {
  readonly #send: SendAnswer;
  readonly #limits: QueueLimits;
  /** Requests that are being answered, by id. */
  readonly #running = new Map<number, AbortController>();
  #opened: Promise<{ readonly session: DatasetSession; readonly axes: AxisReader }> | undefined;
  #show: { readonly id: number; readonly reading: Reading | undefined } | undefined;
  /** Ids of requests to read ahead, ascending. */
  #ahead: readonly number[] = [];

  constructor(limits: QueueLimits, send: SendAnswer) {
    this.#limits = limits;
    this.#send = send;
  }

  /** Handles a request. Never throws: failures are answers. */
  async handle(request: WorkerRequest): Promise<void> {
    if (request.kind === "cancel") {
      this.#cancel(request);
      return;
    }
    const { id } = request;
    const controller = new AbortController();
    this.#running.set(id, controller);
    try {
      const isOver = await this.#answer(request, controller.signal);
      if (isOver) this.#running.delete(id);
    } catch (error) {
      if (this.#show?.id === id) this.#endShow();
      this.#fail(id, error);
    }
  }

  /** @returns Whether there are no further answers. */
  async #answer(
    request: Exclude<WorkerRequest, CancelRequest & { id: number }>,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { id } = request;
    if (request.kind === "open") {
      this.#endShow();
      this.#opened = DatasetSession.open(request, this.#limits).then((session) => ({
        session,
        axes: new AxisReader(session),
      }));
      this.#reply(id, { kind: "opened", dataset: (await this.#opened).session.description });
      return true;
    }
    if (request.kind === "show") this.#begin(id);
    if (this.#opened === undefined) throw new ReadFailure("No dataset is open.");
    const { session, axes } = await this.#opened;
    signal.throwIfAborted();
    switch (request.kind) {
      case "axis":
        this.#reply(id, await answerAxis(axes, session.variable(request.variable), request.axis));
        return true;
      case "show":
        return this.#showPicture(session, axes, request);
      case "ahead":
        this.#ahead = [...this.#ahead, id];
        this.#reply(id, {
          kind: "cached",
          steps: await readAhead(session, axes, request, signal, () => this.#endAheadBefore(id)),
        });
        return true;
      case "range":
        this.#reply(id, await findRange(session, axes, request, signal));
        return true;
      case "probe":
        this.#reply(id, await probeCell(session, axes, request, signal));
        return true;
      case "series":
        return this.#readSeries(session, request, signal);
      case "text":
        this.#reply(id, await answerText(session, request, signal));
        return true;
    }
  }

  /** Notes which picture is asked for. The one before is read until the new one is planned. */
  #begin(id: number): void {
    const { reading, id: former = id } = this.#show ?? {};
    reading?.stop();
    if (former !== id) this.#running.delete(former);
    this.#show = { id, reading };
  }

  async #showPicture(
    session: DatasetSession,
    axes: AxisReader,
    request: ShowRequest & { readonly id: number },
  ): Promise<boolean> {
    const { id } = request;
    const plan = await planFrame(session, axes, request);
    // A later request may have come while coordinates were read.
    if (this.#show?.id !== id) return true;
    const former = this.#show.reading;
    if (plan.cost.bytes > MAX_UNASKED_CHUNK_BYTES && !request.isConfirmed) {
      if (former !== undefined) session.queue.release(former);
      this.#show = undefined;
      this.#reply(id, { kind: "too-much", ...plan.cost });
      return true;
    }
    const reading = readingOfPicture(
      session,
      request,
      plan,
      (frame) => this.#reply(id, frame, [frame.pixels.buffer]),
      (error) => this.#fail(id, error),
    );
    this.#show = { id, reading };
    reading.start(former);
    return false;
  }

  /** Ends the readings ahead before this one. */
  #endAheadBefore(id: number): void {
    for (const request of this.#ahead) if (request < id) this.#cancel({ kind: "cancel", request });
    this.#ahead = this.#ahead.filter((each) => each >= id);
  }

  #readSeries(
    session: DatasetSession,
    request: SeriesRequest & { readonly id: number },
    signal: AbortSignal,
  ): boolean {
    const { id } = request;
    const { reading, cost } = readingOfSeries(
      session,
      request,
      (series) => this.#reply(id, series, [series.values.buffer]),
      (error) => this.#fail(id, error),
    );
    if (isTooMuch(cost) && !request.isConfirmed) {
      this.#reply(id, { kind: "too-much", ...cost });
      return true;
    }
    signal.addEventListener("abort", () => reading.end());
    reading.start();
    return false;
  }

  #cancel({ request }: CancelRequest): void {
    const running = this.#running.get(request);
    this.#running.delete(request);
    running?.abort(new Error("the page cancelled the request"));
    if (this.#show?.id === request) this.#endShow();
  }

  #endShow(): void {
    this.#show?.reading?.end();
    this.#show = undefined;
  }

  #reply(id: number, answer: AnswerBody, transfer: readonly ArrayBuffer[] = []): void {
    if (this.#running.has(id)) this.#send({ id, ...answer } as ExploreAnswer, transfer);
  }

  #fail(id: number, error: unknown): void {
    const failure =
      error instanceof ReadFailure ? error : new ReadFailure(`Unexpected error: ${messageOf(error)}.`);
    const { message: sentence, requestId, mayRetry } = failure;
    this.#reply(id, { kind: "failed", sentence, requestId, mayRetry });
    this.#running.delete(id);
  }
}
