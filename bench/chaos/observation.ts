/** What a client saw of one request. */
export interface Observation {
  /** Number in `CHAOS_KEYS`. */
  readonly key: number;
  /** 0: there was no answer, or it broke off. */
  readonly status: number;
  /** Of status 0: whether an answer had begun. */
  readonly isBegun?: boolean;
  /** When it was sent and when its answer was there, on the clock of `now`. */
  readonly from: number;
  readonly until: number;
  /**
   * Of a chunk: the version of each of its files. Of a document of arrays that grow: their rows. Undefined where the
   * answer says nothing of it.
   */
  readonly versions?: readonly number[];
  /** Of a chunk: how it was encoded. */
  readonly coding?: string;
  /** What was wrong with the answer itself, whatever was true at the time. */
  readonly wrong?: string;
  /** Whether what is wrong is what a chunk holds. */
  readonly isContent?: boolean;
  /** Of status 0: what became of the connection; of others: what the body says. */
  readonly detail?: string;
}
