import { effect, signal, untracked } from "@preact/signals-core";
import { type FailedAnswer, type PicturePart, type TooMuchAnswer, UNREAD } from "../../protocol.js";
import type { PageState, PictureRequest, ShownFrame } from "../page-state.js";
import type { AnswerOf } from "../worker-client.js";

/** Milliseconds without movement after which a step is read that a slider passes. */
const REST_MS = 120;
/** Least milliseconds between two requests while the view moves. */
const INTERVAL_MS = 30;
/** Milliseconds after which a picture that is no longer the one asked for is dimmed. */
const DIM_MS = 300;

/** Asks for pictures, and keeps the one on the screen until the next is complete. */
export class PictureLoader {
  readonly #model: PageState;
  readonly frame = signal<ShownFrame | undefined>(undefined);
  /** How far the last picture that was asked for has come, in the milliseconds since the request. */
  readonly progress = signal<{ done: number; total: number; ms: number } | undefined>(undefined);
  /** Whether the picture is not what was asked for, for longer than a moment. */
  readonly isDimmed = signal(false);
  /** What of the last picture is read, since all of it is too much; else undefined. */
  readonly part = signal<PicturePart | undefined>(undefined);
  readonly tooMuch = signal<TooMuchAnswer | undefined>(undefined);
  readonly failure = signal<FailedAnswer | undefined>(undefined);
  failedAt = new Date();

  #asked: PictureRequest | undefined;
  /** The last request as text: a change of colours alone needs no other picture. */
  #scheduledKey: string | undefined;
  #sentAt = Number.NEGATIVE_INFINITY;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #dimTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(model: PageState) {
    this.#model = model;
    effect(() => {
      const next = model.request.value;
      untracked(() => this.#schedule(next));
    });
  }

  /** Reads all of the picture that was too much to read unasked. */
  confirm(): void {
    if (this.#asked !== undefined) this.#send({ ...this.#asked, isConfirmed: true });
  }

  retry(): void {
    if (this.#asked !== undefined) this.#send(this.#asked);
  }

  #schedule(request: PictureRequest | undefined): void {
    const key = JSON.stringify(request);
    if (key === this.#scheduledKey) return;
    this.#scheduledKey = key;
    clearTimeout(this.#timer);
    if (request === undefined) return;
    const { isPlaying, playback } = this.#model;
    const isNewStep = request.isMoving && this.#asked !== undefined && !isSameSelection(request, this.#asked);
    const mayWait = isNewStep && !isPlaying.peek() && !playback.isCached(request);
    const wait = mayWait ? REST_MS : this.#sentAt + INTERVAL_MS - performance.now();
    if (wait <= 0) this.#send(request);
    else this.#timer = setTimeout(() => this.#send(request), wait);
    if (!isSameSelection(request, this.frame.peek()?.request)) this.#dimLater();
  }

  #send(request: PictureRequest): void {
    const isConfirmed =
      request.isConfirmed || (this.#asked?.isConfirmed === true && isSameSize(request, this.#asked));
    const asked = { ...request, isConfirmed };
    const begin = performance.now();
    this.#asked = asked;
    this.#sentAt = begin;
    this.tooMuch.value = undefined;
    this.failure.value = undefined;
    this.#model.client.send<"show">(asked, (answer) =>
      this.#receive(asked, answer, performance.now() - begin),
    );
  }

  #receive(request: PictureRequest, answer: AnswerOf<"show"> | FailedAnswer, ms: number): void {
    if (answer.kind === "failed") {
      this.failedAt = new Date();
      this.failure.value = answer as FailedAnswer;
      return;
    }
    if (answer.kind === "too-much") {
      this.tooMuch.value = answer;
      return;
    }
    const { done, total } = answer;
    this.progress.value = { done, total, ms };
    this.part.value = answer.part;
    const isWhole = done === total || (request.bands === undefined && !answer.pixels.includes(UNREAD));
    const shown = this.frame.peek();
    const isSame = isSameSelection(request, shown?.request);
    // A mixture of two steps would be no picture of either.
    if (!isWhole && !isSame && shown?.request.selection.variable === request.selection.variable) return;
    const under = isSame && !isWhole ? (shown?.isWhole ? shown : shown?.under) : undefined;
    this.frame.value = { ...answer, request, isWhole, under: under && { ...under, under: undefined } };
    clearTimeout(this.#dimTimer);
    this.#dimTimer = undefined;
    this.isDimmed.value = false;
  }

  #dimLater(): void {
    if (this.#dimTimer !== undefined || this.frame.peek() === undefined) return;
    this.#dimTimer = setTimeout(() => {
      this.isDimmed.value = true;
    }, DIM_MS);
  }
}

/** Returns a text that is the same for requests of the same cells. The step `along` an axis makes no difference. */
export function cellsKey({ selection, axes, viewport, bands }: PictureRequest, along?: number): string {
  const steps = selection.at.map((step, axis) =>
    axis === along || axis === axes.x || axis === axes.y ? "" : step,
  );
  return JSON.stringify([selection.variable, axes.x, axes.y, viewport.inCells, bands?.axis, along, steps]);
}

function isSameSelection(one: PictureRequest, other: PictureRequest | undefined): boolean {
  return other !== undefined && cellsKey(one) === cellsKey(other);
}

/** Whether two requests read about as much: a person who agreed to one step agreed to the next. */
function isSameSize(one: PictureRequest, other: PictureRequest): boolean {
  const isSame = one.selection.variable === other.selection.variable;
  return isSame && one.axes.x === other.axes.x && one.axes.y === other.axes.y;
}
