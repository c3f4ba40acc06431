import type { FaultyOrigin } from "../../test/origins/faulty-origin.js";
import { CHAOS_ARRAYS, REMOTE_DATASET, VISITOR_DATASET } from "./chaos-arrays.js";
import type { ChaosServer } from "./chaos-server.js";
import type { ChaosStore } from "./chaos-store.js";
import type { Judge } from "./judge.js";

/** What events happen to. */
export interface Stage {
  readonly server: ChaosServer;
  readonly store: ChaosStore;
  /** Has the stores as objects, of which one dataset is read. */
  readonly origin: FaultyOrigin;
  readonly judge: Judge;
  readonly random: () => number;
  /** The next version of each file. */
  readonly versions: Map<string, number>;
  /** Files that something happens to: nothing else may. */
  readonly busyFiles: Set<string>;
  /** Notes what is to be in the report. */
  readonly note: (text: string) => void;
  /** What the configuration says. */
  config: ChaosConfig;
}

/** What of the configuration changes. */
export interface ChaosConfig {
  readonly hasVisitor: boolean;
  readonly visitorCoding: "zstd" | "gzip";
}

/** One thing that happens. */
export interface ChaosEvent {
  readonly name: string;
  /** How often, beside others. */
  readonly weight: number;
  /** Whether it starts the program anew: what leaks is then let go. */
  readonly isRestart?: boolean;
  /** Resolves when it is over; to false where there was nothing that it could have happened to. */
  // biome-ignore lint/suspicious/noConfusingVoidType: what an async function without a result returns.
  readonly happens: (stage: Stage) => Promise<void | false>;
}

/** The configuration file. */
export function configDocument(stage: Pick<Stage, "store" | "origin" | "config">): unknown {
  const { store, origin, config } = stage;
  const datasets: Record<string, { location: string; variables: Record<string, unknown> }> = {};
  for (const array of CHAOS_ARRAYS) {
    const { dataset, path, encoding, rowsPerChunk } = array;
    if (dataset === VISITOR_DATASET && !config.hasVisitor) continue;
    const isRemote = dataset === REMOTE_DATASET;
    const location = isRemote ? `${origin.url}/${dataset}.zarr` : store.location(dataset);
    datasets[dataset] ??= { location, variables: {} };
    // Arrays behind a web server are found by their names alone.
    if (encoding === undefined && rowsPerChunk === 1 && !isRemote) continue;
    const asked =
      dataset === VISITOR_DATASET ? { compressor: { id: config.visitorCoding, level: 1 } } : encoding;
    datasets[dataset].variables[path] = {
      ...asked,
      ...(rowsPerChunk > 1 ? { chunks: [rowsPerChunk, -1] } : {}),
    };
  }
  return { datasets };
}

/** One of a list. */
export function pick<T>(random: () => number, list: readonly T[]): T {
  return list[Math.floor(random() * list.length)]!;
}
