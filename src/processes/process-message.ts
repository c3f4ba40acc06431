import type { Config } from "../config/config.js";
import type { OpenProgress } from "../dataset/dataset-registry.js";
import type { ErrorData } from "../errors.js";
import type { MetricFamily } from "../observe/metric-family.js";
import type { ProcessMetrics } from "../observe/metrics.js";
import type { ChunkOutcome } from "../pool/chunk-task.js";

/** What the supervisor says to a server process. Shared by both sides, as is all of this file. */
export type ToProcess =
  | { readonly kind: "call"; readonly id: number; readonly call: ProcessCall }
  /** What a question of this process's came to. */
  | { readonly kind: "metrics"; readonly id: number; readonly all: readonly ProcessMetrics[] }
  | TurnToProcess;

/** What a server process says to the supervisor. */
export type FromProcess =
  | { readonly kind: "reply"; readonly id: number; readonly reply: ProcessReply }
  | { readonly kind: "progress"; readonly progress: OpenProgress }
  /** Asks for the metrics of all processes. */
  | { readonly kind: "ask-metrics"; readonly id: number }
  | TurnFromProcess;

/** What a server process is told to do; it replies when it has done it. */
export type ProcessCall =
  | {
      readonly name: "open";
      /** For this one process: its share of the workers. */
      readonly config: Config;
      /** 1 … `processes`. */
      readonly process: number;
      readonly processes: number;
    }
  | { readonly name: "listen"; readonly port: number }
  | { readonly name: "refresh" }
  /** Opens what another configuration publishes, of which `use` or `discard` then says what becomes of it. */
  | { readonly name: "prepare"; readonly config: Config }
  | { readonly name: "use" }
  | { readonly name: "discard" }
  /** Collects its metrics. */
  | { readonly name: "metrics" }
  /** Says that the event loop turns. */
  | { readonly name: "ping" }
  /** Takes its leave, as `Server.close`; the process ends after its reply. */
  | { readonly name: "close" };

/** What a call is answered with; errors are data because they lose class and fields on the way. */
export type ProcessReply =
  | { readonly status: "done"; readonly answer: ProcessAnswer }
  | { readonly status: "failed"; readonly error: ErrorData };

/** What `listen` and `metrics` answer; empty for all others. */
export interface ProcessAnswer {
  readonly url?: string;
  readonly families?: readonly MetricFamily[];
}

/** About making chunks, by the `id` that the process gave its question; see `README.md`. */
export type TurnToProcess =
  /** Make it now. */
  | { readonly kind: "turn"; readonly id: number }
  /** Others wait for what you make, or made just now: tell what came of it. */
  | { readonly kind: "share"; readonly id: number }
  /** Another process has made it. */
  | { readonly kind: "outcome"; readonly id: number; readonly outcome: ChunkOutcome };

export type TurnFromProcess =
  /** May I make the chunk of this key? */
  | { readonly kind: "ask"; readonly id: number; readonly key: string }
  /** It is made; with what came of it where that was asked for, and is still known. */
  | { readonly kind: "made"; readonly id: number; readonly outcome?: ChunkOutcome }
  /** I shall not make it: nobody here waits for it any more. */
  | { readonly kind: "decline"; readonly id: number };
