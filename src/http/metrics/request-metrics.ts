import type { OverdueRequests } from "../overdue-requests.js";
import type { RejectionLog } from "./rejection-log.js";
import type { RequestCounts } from "./request-counts.js";

/** Counts of all requests of one server, whatever its app. */
export interface RequestMetrics {
  readonly counts: RequestCounts;
  readonly overdue: OverdueRequests;
  readonly rejections: RejectionLog;
}
