import { effect, signal, untracked } from "@preact/signals-core";
import { cellsKey } from "./map/picture-loader.js";
import type { PageState, PictureRequest } from "./page-state.js";

/** Steps per second that can be chosen. */
export const PLAY_RATES: readonly number[] = [1, 2, 5, 10, 20, 30];

/** Steps that are read ahead besides those of one second. */
const LEAST_AHEAD = 4;

/** Returns the step that follows: one further, or as many as were due, if that one is cached. After the last step comes the first. */
function nextStep(step: number, due: number, length: number, isCached: (step: number) => boolean): number {
  for (let skip = Math.min(due, length - 1); skip > 1; skip--) {
    if (isCached((step + skip) % length)) return (step + skip) % length;
  }
  return (step + 1) % length;
}

/** Plays through the steps of an axis: reads ahead, drops steps rather than lag, and stops at once. */
export class Playback {
  readonly #model: PageState;
  /** Axis that is played; undefined if none is. */
  readonly axis = signal<number | undefined>(undefined);
  readonly rate = signal(10);
  /** Steps of {@link cachedAxis} that can be shown without reading. */
  readonly cached = signal<ReadonlySet<number>>(new Set());
  readonly cachedAxis = signal<number | undefined>(undefined);

  #timer: ReturnType<typeof setInterval> | undefined;
  #due = 0;
  #cachedKey = "";

  constructor(model: PageState) {
    this.#model = model;
    effect(() => {
      const [request, frame, axis] = [model.request.value, model.picture.frame.value, this.cachedAxis.value];
      if (request === undefined || axis === undefined) return;
      const key = this.#keyOf(request, axis);
      if (key !== this.#cachedKey) this.cached.value = new Set();
      this.#cachedKey = key;
      const isShown = frame?.done === frame?.total;
      if (frame !== undefined && isShown && this.#keyOf(frame.request, axis) === key)
        untracked(() => this.#note([frame.request.selection.at[axis]!]));
    });
  }

  /** Plays an axis, or stops if that is played already. */
  toggle(axis: number): void {
    const isPlayed = this.axis.peek() === axis;
    this.stop();
    if (isPlayed || this.#lengthOf(axis) < 2) return;
    this.axis.value = axis;
    this.follow(axis);
    this.#restart();
    this.#readAhead();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.axis.value = undefined;
  }

  setRate(rate: number): void {
    this.rate.value = rate;
    if (this.axis.peek() !== undefined) this.#restart();
  }

  /** Notes cached steps of this axis from now on. */
  follow(axis: number): void {
    this.cachedAxis.value = axis;
  }

  isCached(request: PictureRequest): boolean {
    const axis = this.cachedAxis.peek();
    if (axis === undefined || this.#keyOf(request, axis) !== this.#cachedKey) return false;
    return this.cached.peek().has(request.selection.at[axis]!);
  }

  #restart(): void {
    clearInterval(this.#timer);
    this.#due = 0;
    this.#timer = setInterval(() => this.#tick(), 1000 / this.rate.peek());
  }

  #tick(): void {
    const axis = this.axis.peek();
    const request = this.#model.request.peek();
    if (axis === undefined || request === undefined) return;
    this.#due++;
    const step = request.selection.at[axis]!;
    const shown = this.#model.picture.frame.peek();
    if (shown?.request.selection.at[axis] !== step || shown.done !== shown.total) return;
    const length = this.#lengthOf(axis);
    const next = nextStep(step, this.#due, length, (each) => this.cached.peek().has(each));
    this.#due = 0;
    this.#model.setStep(axis, next);
    this.#readAhead();
  }

  #readAhead(): void {
    const axis = this.axis.peek();
    const request = this.#model.request.peek();
    if (axis === undefined || request === undefined) return;
    const length = this.#lengthOf(axis);
    const steps = Array.from(
      { length: Math.min(this.rate.peek() + LEAST_AHEAD, length - 1) },
      (_, index) => (request.selection.at[axis]! + 1 + index) % length,
    ).filter((step) => !this.cached.peek().has(step));
    if (steps.length === 0) return;
    const key = this.#keyOf(request, axis);
    this.#model.client.send<"ahead">({ kind: "ahead", show: request, along: axis, steps }, (answer) => {
      if (answer.kind === "cached" && key === this.#cachedKey) this.#note(answer.steps);
    });
  }

  #note(steps: readonly number[]): void {
    const known = this.cached.peek();
    if (steps.some((step) => !known.has(step))) this.cached.value = new Set([...known, ...steps]);
  }

  #lengthOf(axis: number): number {
    return this.#model.variable.peek()?.shape[axis] ?? 0;
  }

  /** Everything on which the chunks of a step depend, but for the step. */
  #keyOf(request: PictureRequest, axis: number): string {
    return cellsKey(request, axis) + JSON.stringify(request.viewport.box);
  }
}
