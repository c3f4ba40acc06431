import type { LimitsConfig } from "../config/config.js";

/** The limits of one of several processes: together they have those of one server. What is per request or worker stays. */
export function limitsOfProcess(limits: LimitsConfig, processes: number): LimitsConfig {
  const share = (whole: number): number => Math.ceil(whole / processes);
  return {
    ...limits,
    maxConnections: share(limits.maxConnections),
    maxRequests: share(limits.maxRequests),
    maxPages: share(limits.maxPages),
    maxResponseBytes: share(limits.maxResponseBytes),
    maxQueuedChunks: share(limits.maxQueuedChunks),
  };
}
