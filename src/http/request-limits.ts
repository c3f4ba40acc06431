import { DEFAULT_LOAD_LIMITS, type LoadLimits } from "./load.js";

/** Limits of requests. */
export interface RequestLimits extends LoadLimits {
  /** Bytes of path and query; a longer one is answered 414. Default 8 KiB. */
  readonly maxUrlBytes: number;
  /** Time after which a client is dropped that took less than 1 KiB per second of it. Default 60 s. */
  readonly stallTimeoutMs: number;
  /** Time after which a request is answered 503 if its answer has not begun. Default 150 s. */
  readonly requestTimeoutMs: number;
}

/** Defaults of {@link RequestLimits}. */
export const DEFAULT_REQUEST_LIMITS: RequestLimits = {
  ...DEFAULT_LOAD_LIMITS,
  maxUrlBytes: 8 * 1024,
  stallTimeoutMs: 60_000,
  requestTimeoutMs: 150_000,
};
