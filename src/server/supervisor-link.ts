import type { ProcessMetrics } from "../observe/metrics.js";

/** Link of a server process to its supervisor, with `--processes`. */
export interface SupervisorLink {
  /** Number of this process, from 1 to `processes`. The first logs what all of them find out about datasets. */
  readonly process: number;
  readonly processes: number;
  /** Collects the metrics of all processes, this one included. Never rejects. */
  readonly allMetrics: () => Promise<readonly ProcessMetrics[]>;
}
