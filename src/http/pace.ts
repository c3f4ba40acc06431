/** Slowest rate at which a client may read: a tenth of a modem's. */
const MIN_BYTES_PER_SECOND = 1_024;

/** Rate at which a client reads its answer, measured from time to time. */
export class Pace {
  /** Recent rate in bytes per second; undefined before the first measurement. */
  rate: number | undefined;
  readonly #stallTimeoutMs: number;
  #sent: number;
  #lookedMs: number;
  #progressMs: number;
  /** Begin of the current stall period, and the bytes sent by then. */
  #beganMs: number;
  #sentBefore: number;

  /** @param sent Bytes the client has read so far. @param stallTimeoutMs See {@link Pace.hasStalled}. */
  constructor(sent: number, nowMs: number, stallTimeoutMs: number) {
    this.#stallTimeoutMs = stallTimeoutMs;
    this.#sent = sent;
    this.#sentBefore = sent;
    this.#lookedMs = nowMs;
    this.#progressMs = nowMs;
    this.#beganMs = nowMs;
  }

  /** Measures the rate. @param sent Bytes the client has read by now. */
  look(sent: number, nowMs: number): void {
    const rate = ((sent - this.#sent) * 1_000) / Math.max(1, nowMs - this.#lookedMs);
    // Averaged with the rate before: clients read in bursts.
    this.rate = this.rate === undefined ? rate : (this.rate + rate) / 2;
    if (sent > this.#sent) this.#progressMs = nowMs;
    this.#sent = sent;
    this.#lookedMs = nowMs;
  }

  /** Whether the client read nothing for the stall time-out, or less than the slowest rate. To be called after each measurement. */
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
