import { FAULT_EVENTS } from "./fault-events.js";
import { FILE_EVENTS } from "./file-events.js";
import { ORIGIN_EVENTS } from "./origin-events.js";
import { PROGRAM_EVENTS } from "./program-events.js";
import type { ChaosEvent } from "./stage.js";

/** What happens one after the other, beside files that are written all the time (`REWRITES`). */
export const EVENTS: readonly ChaosEvent[] = [
  ...FILE_EVENTS,
  ...FAULT_EVENTS,
  ...ORIGIN_EVENTS,
  ...PROGRAM_EVENTS,
];
