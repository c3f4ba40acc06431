import type { ProcessMetrics } from "../observe/metrics.js";
import type { EncodePool } from "../pool/encode-pool.js";

/** That several processes are one server, which `processes/` keeps together: they share port, cache, limits and work. */
export interface Sharing {
  /** Of this process, 1 … `processes`. The first logs what all of them find out about datasets. */
  readonly process: number;
  readonly processes: number;
  /** The pool, made to wait for its turn. */
  readonly inTurn: (pool: EncodePool) => EncodePool;
  /** The metrics of all processes, this one's too. Never rejects. */
  readonly allMetrics: () => Promise<readonly ProcessMetrics[]>;
}
