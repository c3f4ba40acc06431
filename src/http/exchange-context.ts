import type { LinkedList } from "../collections/linked-list.js";
import type { Log } from "../observe/log.js";
import type { HeaderContext } from "./headers/encoded-headers.js";
import type { Load } from "./load.js";
import type { FailureLog } from "./metrics/failure-log.js";
import type { RejectionLog } from "./metrics/rejection-log.js";
import type { RequestCounts } from "./metrics/request-counts.js";
import type { OpenRequest, OverdueRequests } from "./overdue-requests.js";
import type { BodySender } from "./stream-body.js";

/** Counts of all requests of one server, whatever its app. */
export interface RequestMetrics {
  readonly counts: RequestCounts;
  readonly overdue: OverdueRequests;
  readonly rejections: RejectionLog;
  readonly failures: FailureLog;
}

/** What all requests of one server share. */
export interface ExchangeContext extends HeaderContext {
  readonly load: Load;
  readonly sender: BodySender;
  readonly log: Log;
  /** Requests whose answer is not sent yet. */
  readonly open: LinkedList<OpenRequest>;
  readonly scheme: "http" | "https";
  /** Prefix of all paths: empty, or begins with a slash and ends without one. */
  readonly rootPath: string;
  readonly metrics: RequestMetrics;
  /** Limit of the headers that a waiting request keeps, in bytes. */
  readonly maxHeaderBytes: number;
}
