/** For how long of something its past states are remembered. */
const REMEMBERED_MS = 120_000;

/** While something was, or may have been, in one state; milliseconds of the clock of `now`. */
export interface Span<T> {
  readonly state: T;
  readonly from: number;
  /** Infinite while it is. */
  readonly until: number;
}

interface OpenSpan<T> extends Span<T> {
  until: number;
}

/** Milliseconds of a clock that all processes of this machine share. */
export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** In which states something was, and when. While it changes it may be in the old state or in the new one. */
export class Timeline<T> {
  #spans: OpenSpan<T>[];

  constructor(state: T) {
    this.#spans = [{ state, from: 0, until: Number.POSITIVE_INFINITY }];
  }

  /** The last state, whether it has been reached or not. */
  get state(): T {
    return this.#spans.at(-1)!.state;
  }

  /**
   * Begins another state.
   * @returns To be called when the old one is over. @param graceMs How long it may be seen after that.
   */
  begin(state: T): (graceMs?: number) => void {
    const from = now();
    const before = this.#spans.filter(({ until }) => until === Number.POSITIVE_INFINITY);
    this.#spans = this.#spans.filter(({ until }) => until > from - REMEMBERED_MS);
    this.#spans.push({ state, from, until: Number.POSITIVE_INFINITY });
    return (graceMs = 0) => {
      const until = now() + graceMs;
      for (const span of before) span.until = until;
    };
  }

  /** All that it may have been at some moment from `from` to `until`. */
  during(from: number, until: number): readonly Span<T>[] {
    return this.#spans.filter((span) => span.from <= until && span.until >= from);
  }
}
