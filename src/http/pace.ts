/** Bytes a client has to take for each second of the time after which it has stalled: a modem's tenth. */
const MIN_BYTES_PER_SECOND = 1_024;

/** How fast a client takes what it asked for, looked at now and then. */
export class Pace {
  /** Of late, in bytes per second; undefined where it was not looked at yet. */
  rate: number | undefined;
  readonly #stallTimeoutMs: number;
  #sent: number;
  #lookedMs: number;
  #progressMs: number;
  /** When the time that is looked at as a whole began, and what was sent by then. */
  #beganMs: number;
  #sentBefore: number;

  /** @param sent Bytes the client has taken so far. @param stallTimeoutMs For {@link Pace.hasStalled}. */
  constructor(sent: number, nowMs: number, stallTimeoutMs: number) {
    this.#stallTimeoutMs = stallTimeoutMs;
    this.#sent = sent;
    this.#sentBefore = sent;
    this.#lookedMs = nowMs;
    this.#progressMs = nowMs;
    this.#beganMs = nowMs;
  }

  /** Notes what the client has taken by now. */
  look(sent: number, nowMs: number): void {
    const rate = ((sent - this.#sent) * 1_000) / Math.max(1, nowMs - this.#lookedMs);
    // Half of it is what was before: what clients take comes in bursts.
    this.rate = this.rate === undefined ? rate : (this.rate + rate) / 2;
    if (sent > this.#sent) this.#progressMs = nowMs;
    this.#sent = sent;
    this.#lookedMs = nowMs;
  }

  /** Whether it takes nothing, or next to nothing: not to be had a byte at a time, for ever. To be asked after each look. */
  hasStalled(nowMs: number): boolean {
    if (nowMs - this.#progressMs > this.#stallTimeoutMs) return true;
    const elapsedMs = nowMs - this.#beganMs;
    if (elapsedMs < this.#stallTimeoutMs) return false;
    const taken = this.#sent - this.#sentBefore;
    this.#beganMs = nowMs;
    this.#sentBefore = this.#sent;
    return taken * 1_000 < MIN_BYTES_PER_SECOND * elapsedMs;
  }
}
