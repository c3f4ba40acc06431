import type { OverdueRequests } from "./overdue-requests.js";
import type { RequestCounts } from "./request-counts.js";
import type { TurnedAway } from "./turned-away.js";

/** What looks at all requests of one server, whatever its site. */
export interface RequestWatch {
  readonly counts: RequestCounts;
  readonly overdue: OverdueRequests;
  readonly turnedAway: TurnedAway;
}
