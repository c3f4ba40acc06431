import type { Config } from "../config/config.js";
import type { OpenProgress } from "../dataset/dataset-registry.js";
import type { ErrorData } from "../errors.js";
import type { MetricFamily } from "../observe/metric-family.js";
import type { ProcessMetrics } from "../observe/metrics.js";

/** A message of the supervisor to a server process. */
export type ToProcess =
  | { readonly kind: "call"; readonly id: number; readonly call: ProcessCall }
  /** The answer to `ask-metrics`. */
  | { readonly kind: "metrics"; readonly id: number; readonly all: readonly ProcessMetrics[] };

/** A message of a server process to the supervisor. */
export type FromProcess =
  | { readonly kind: "reply"; readonly id: number; readonly reply: ProcessReply }
  | { readonly kind: "progress"; readonly progress: OpenProgress }
  /** Asks for the metrics of all processes. */
  | { readonly kind: "ask-metrics"; readonly id: number };

/** A call to a server process, which replies when it is done. */
export type ProcessCall =
  | {
      readonly name: "open";
      /** With this process's share of the workers. */
      readonly config: Config;
      /** From 1 to `processes`. */
      readonly process: number;
      readonly processes: number;
    }
  | { readonly name: "listen"; readonly port: number }
  | { readonly name: "refresh" }
  /** Opens the datasets of another configuration; `use` or `discard` follows. */
  | { readonly name: "prepare"; readonly config: Config }
  | { readonly name: "use" }
  | { readonly name: "discard" }
  /** Collects its metrics. */
  | { readonly name: "metrics" }
  /** Replies at once, to show that the event loop runs. */
  | { readonly name: "ping" }
  /** Closes the server as `ServerHandle.close` does; the process ends after its reply. */
  | { readonly name: "close" };

/** The reply to a call. Errors are data, because they lose class and fields between processes. */
export type ProcessReply =
  | { readonly status: "done"; readonly answer: ProcessAnswer }
  | { readonly status: "failed"; readonly error: ErrorData };

/** The answer of `listen` and `metrics`; empty for other calls. */
export interface ProcessAnswer {
  readonly url?: string;
  readonly families?: readonly MetricFamily[];
}
