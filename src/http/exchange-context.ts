import type { LinkedList } from "../collections/linked-list.js";
import type { Log } from "../observe/log.js";
import type { AccessRules } from "./access/access-rules.js";
import type { Exchange } from "./exchange.js";
import type { Cors } from "./headers/cors.js";
import type { Load } from "./load.js";
import type { RequestMetrics } from "./metrics/request-metrics.js";
import type { BodySender } from "./stream-body.js";

/** What all requests of one server share. */
export interface ExchangeContext {
  readonly cors: Cors;
  /** `Cache-Control` of replies without one. */
  readonly cacheControl: string;
  readonly load: Load;
  readonly sender: BodySender;
  readonly log: Log;
  /** Requests whose answer is not sent yet. */
  readonly open: LinkedList<Exchange>;
  /** Whether connections end with their current answer. */
  readonly draining: boolean;
  readonly scheme: "http" | "https";
  /** Prefix of all paths: empty, or begins with a slash and ends without one. */
  readonly rootPath: string;
  readonly access: AccessRules;
  readonly metrics: RequestMetrics;
  /** Limit of the headers that a waiting request keeps, in bytes. */
  readonly maxHeaderBytes: number;
}
