/** A file system did not answer a call in time, or has not yet answered the calls before. */
export class NoAnswerError extends Error {
  /** Where other errors have that of the system: it is what messages say. */
  readonly code: string;
  /** When the call was answered after all: what it uses must not be touched before. Undefined: it was not begun. */
  readonly settled: Promise<void> | undefined;

  /** @param timeoutMs How long it was waited for; undefined: not at all. */
  constructor(timeoutMs: number | undefined, settled?: Promise<void>) {
    const problem =
      timeoutMs === undefined
        ? "calls before have had no answer yet"
        : `no answer within ${timeoutMs / 1000} s`;
    super(problem);
    this.code = problem;
    this.settled = settled;
  }
}
