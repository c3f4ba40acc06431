import type { DatasetConfig } from "../config/config.js";
import { ZpublishError } from "../errors.js";
import { settlesWithin } from "../event-loop/settles-within.js";
import type { DatasetSnapshot, Datasets } from "./dataset.js";
import { errorOfDataset } from "./dataset-handle.js";
import { type OpenOptions, openAtStart } from "./open-at-start.js";
import type { RefreshScheduler, Slot } from "./refresh-scheduler.js";

export type { OpenProgress } from "./open-at-start.js";

/** Time that a request waits until a dataset is open: as long as one chunk may take. */
const OPEN_TIMEOUT_MS = 120_000;
/** Time that closing waits for refreshes under way: a source may hang. */
const CLOSE_TIMEOUT_MS = 5_000;

/** Registry of one configuration's datasets, which are refreshed. */
export interface DatasetRegistry extends Datasets {
  /**
   * Prepares a dataset for a request: opens it, or refreshes it after a time without requests. Undefined if the request
   * need not wait, or if there is no such dataset.
   * @throws ZpublishError if it cannot be opened.
   */
  ready(id: string): Promise<void> | undefined;
  /**
   * Refreshes every open dataset once; joins a refresh that is under way. Failures are logged, never thrown.
   */
  refresh(): Promise<void>;
  /** Applies this configuration's `Cache-Control` to all datasets, also to those taken over from another registry. */
  applyCacheControl(): void;
  /** Returns the slot of a configuration, for another registry to take over; undefined if there is none. */
  slotOf(config: DatasetConfig): Slot | undefined;
  readonly stats: DatasetStats;
  /** Closes the datasets that no other registry has. */
  close(): Promise<void>;
}

/** Counts of a registry's datasets. */
export interface DatasetStats {
  readonly datasets: number;
  /** Number of datasets that are open. */
  readonly open: number;
  /** Failed refreshes, of all registries with the same scheduler. The last state is still served after one. */
  readonly failedRefreshes: number;
}

/** Options of {@link openDatasets}. */
export interface RegistryOptions extends Omit<OpenOptions, "takeOver"> {
  readonly scheduler: RefreshScheduler;
  /** Registry from which datasets whose configuration is the same are taken over. */
  readonly former?: Pick<DatasetRegistry, "slotOf"> | undefined;
}

/**
 * Opens the registry of a configuration; {@link openAtStart} tells which datasets are opened at once.
 * @throws ZpublishError of the first dataset, in the order configured, that cannot be opened, unless `skipInvalid`;
 * `invalid-config` if two have one id.
 */
export async function openDatasets(
  configs: readonly DatasetConfig[],
  options: RegistryOptions,
): Promise<DatasetRegistry> {
  const { scheduler, former, cacheControl } = options;
  const opened = await openAtStart(configs, {
    ...options,
    takeOver: takeOverFrom(former),
  });
  const slots = new Map(opened.map((slot) => [slot.dataset.id, slot]));
  const ids = Object.freeze([...slots.keys()]);

  function slotOf(id: string): Slot {
    const slot = slots.get(id);
    if (slot === undefined) throw new ZpublishError("not-found", `Dataset '${id}' not found`);
    return slot;
  }

  function ready(id: string): Promise<void> | undefined {
    const slot = slots.get(id);
    if (slot === undefined) return undefined;
    scheduler.recordRequest(slot);
    if (slot.isFresh) return undefined;
    if (scheduler.isCurrent(slot) && slot.dataset.snapshot() !== undefined) {
      slot.isFresh = true;
      return undefined;
    }
    slot.preparing ??= prepare(slot).finally(() => {
      slot.preparing = undefined;
    });
    return slot.preparing;
  }

  async function prepare(slot: Slot): Promise<void> {
    if (slot.dataset.snapshot() === undefined) await scheduler.during(slot, () => open(slot));
    else await scheduler.refreshForRequest(slot);
    // If that took long, the scheduler may have removed it as idle.
    scheduler.recordRequest(slot);
    slot.isFresh = true;
  }

  async function open({ dataset }: Slot): Promise<void> {
    try {
      if (!(await settlesWithin(dataset.open(), OPEN_TIMEOUT_MS))) {
        const problem = `cannot be read: expected to be open after ${OPEN_TIMEOUT_MS} ms`;
        throw new ZpublishError("source-unreadable", problem);
      }
    } catch (error) {
      throw error instanceof ZpublishError ? errorOfDataset(dataset.id, error) : error;
    }
  }

  function snapshotOf({ dataset }: Slot): DatasetSnapshot {
    const snapshot = dataset.snapshot();
    if (snapshot !== undefined) return snapshot;
    throw new ZpublishError("internal", `expected dataset '${dataset.id}' to be open: wait for open() first`);
  }

  function get(id: string): DatasetSnapshot {
    const slot = slotOf(id);
    scheduler.recordRequest(slot);
    return snapshotOf(slot);
  }

  return {
    ids: () => ids,
    get,
    open(id) {
      const slot = slotOf(id);
      const pending = ready(id);
      return pending === undefined ? snapshotOf(slot) : pending.then(() => snapshotOf(slot));
    },
    async refreshBeforeNotFound(snapshot) {
      const slot = slotOf(snapshot.id);
      if (snapshot.immutable || !scheduler.isRefreshed) return snapshot;
      await slot.throttle.refresh();
      return snapshotOf(slot);
    },
    ready,
    refresh: () => scheduler.refresh([...slots.values()]),
    applyCacheControl() {
      for (const config of configs)
        slots.get(config.id)?.dataset.setCacheControl(config.cacheControl ?? cacheControl);
    },
    slotOf(config) {
      const slot = slots.get(config.id);
      return slot?.dataset.isOf(config) ? slot : undefined;
    },
    get stats() {
      let open = 0;
      for (const { dataset } of slots.values()) if (dataset.snapshot() !== undefined) open++;
      return { datasets: slots.size, open, failedRefreshes: scheduler.failedRefreshes };
    },
    async close() {
      const left = [...slots.values()].filter((slot) => --slot.owners === 0);
      for (const slot of left) scheduler.remove(slot);
      const all = left.map(({ dataset }) => dataset);
      const refreshes = all.filter((dataset) => dataset.isRefreshing()).map((dataset) => dataset.refresh());
      await settlesWithin(Promise.all(refreshes), CLOSE_TIMEOUT_MS);
      await Promise.all(all.map((dataset) => dataset.close()));
    },
  };
}

/** A separate function, so that the registry's closures do not retain the former one and all before it. */
function takeOverFrom(former: RegistryOptions["former"]): OpenOptions["takeOver"] {
  return (config) => {
    const slot = former?.slotOf(config);
    if (slot !== undefined) slot.owners++;
    return slot;
  };
}
