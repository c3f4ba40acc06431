/** Requests to be sent to one subject. */
export interface LoadRequest {
  /** Without a slash at its end. */
  readonly baseUrl: string;
  /** Asked for in turn. */
  readonly paths: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  /** How long (with `isOnce` until every path has been asked for, if that is earlier), or `once`: every path once. */
  readonly length: { readonly seconds: number; readonly isOnce?: boolean } | "once";
  /** The one status that is no failure. */
  readonly status: number;
  /** For files of the generator. */
  readonly scratch: string;
}

export interface LoadResult {
  readonly generator: "wrk" | "node";
  readonly requests: number;
  readonly seconds: number;
  /** Milliseconds from request to last byte. */
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  /** Answers of another status, and broken connections; anything above 0 makes the round worth nothing. */
  readonly failures: number;
  /** What the first of them was; undefined where there is none, or nobody knows. */
  readonly firstFailure?: string | undefined;
  /** CPU of the generator, which has one thread; undefined where the system does not say. */
  readonly generatorCpuSeconds?: number | undefined;
}
