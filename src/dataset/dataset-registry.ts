import type { DatasetConfig } from "../config/config.js";
import { ZpublishError } from "../errors.js";
import { settlesWithin } from "../settles-within.js";
import type { DatasetSnapshot, Datasets } from "./dataset.js";
import type { DatasetWatch, Slot } from "./dataset-watch.js";
import { errorOfDataset } from "./kept-dataset.js";
import { type OpenOptions, openAtStart } from "./open-at-start.js";

export type { OpenProgress } from "./open-at-start.js";

/** How long a request waits for a dataset that has to be opened first; as long as one chunk may take. */
const OPEN_TIMEOUT_MS = 120_000;
/** How long closing waits for looks under way: a source may hang. */
const CLOSE_TIMEOUT_MS = 5_000;

/** The datasets of one configuration, kept fresh. */
export interface DatasetRegistry extends Datasets {
  /**
   * What has to be waited for before a dataset is answered for: that it is opened, or looked at because nobody asked for
   * it in a while. Undefined where there is nothing to wait for, or no such dataset.
   * @throws ZpublishError what keeps it from being opened
   */
  ready(id: string): Promise<void> | undefined;
  /**
   * Looks at every open dataset once; failures are logged, never thrown. A look at a dataset that is under way already is
   * joined.
   */
  refresh(): Promise<void>;
  /** From now on requests are answered from here: what was taken over from another registry is served as is said here. */
  begin(): void;
  /** What another registry would have to open anew; undefined where there is nothing of that configuration. */
  slotOf(config: DatasetConfig): Slot | undefined;
  readonly stats: DatasetStats;
  /** Ids of the first few datasets that are open. */
  someOpen(count: number): readonly string[];
  /** Closes the datasets that no other registry has. */
  close(): Promise<void>;
}

/** Counts of one registry. */
export interface DatasetStats {
  readonly datasets: number;
  /** Of these, those that have been read. */
  readonly open: number;
  /** Looks for new metadata that failed: the last state is served on. Of all registries that had the same watch. */
  readonly failedLooks: number;
}

export interface RegistryOptions extends Omit<OpenOptions, "takeOver"> {
  readonly watch: DatasetWatch;
  /** Where datasets whose configuration is the same are taken over from, as they are. */
  readonly former?: Pick<DatasetRegistry, "slotOf"> | undefined;
}

/**
 * Opens datasets; see {@link openAtStart} for which of them at once.
 * @throws ZpublishError of the first, in the order configured, that cannot be opened, unless `skipInvalid`; `invalid-config` where
 * two have one id.
 */
export async function openDatasets(
  configs: readonly DatasetConfig[],
  options: RegistryOptions,
): Promise<DatasetRegistry> {
  const { watch, former, cacheControl } = options;
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
    watch.ask(slot);
    if (slot.isFresh) return undefined;
    if (watch.isLookedAt(slot) && slot.dataset.snapshot() !== undefined) {
      slot.isFresh = true;
      return undefined;
    }
    slot.preparing ??= prepare(slot).finally(() => {
      slot.preparing = undefined;
    });
    return slot.preparing;
  }

  async function prepare(slot: Slot): Promise<void> {
    if (slot.dataset.snapshot() === undefined) await watch.during(slot, () => open(slot));
    else await watch.lookFor(slot);
    // Where that took long it may not be watched any more.
    watch.ask(slot);
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
    watch.ask(slot);
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
    async lookBeforeAbsence(snapshot) {
      const slot = slotOf(snapshot.id);
      if (snapshot.immutable || !watch.isRefreshed) return snapshot;
      await slot.absence.look();
      return snapshotOf(slot);
    },
    isCurrent(snapshot) {
      const slot = slots.get(snapshot.id);
      if (slot === undefined || !slot.isFresh || slot.dataset.snapshot() !== snapshot) return false;
      watch.askAgain(slot);
      return true;
    },
    ready,
    refresh: () => watch.refresh([...slots.values()]),
    begin() {
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
      return { datasets: slots.size, open, failedLooks: watch.failedLooks };
    },
    someOpen(count) {
      const found: string[] = [];
      for (const [id, { dataset }] of slots) {
        if (found.length === count) break;
        if (dataset.snapshot() !== undefined) found.push(id);
      }
      return found;
    },
    async close() {
      const left = [...slots.values()].filter((slot) => --slot.owners === 0);
      for (const slot of left) watch.drop(slot);
      const all = left.map(({ dataset }) => dataset);
      const looks = all.filter((dataset) => dataset.isLooking()).map((dataset) => dataset.look());
      await settlesWithin(Promise.all(looks), CLOSE_TIMEOUT_MS);
      await Promise.all(all.map((dataset) => dataset.close()));
    },
  };
}

/** Out of sight of the registry's own functions, which would keep the former one, and all before it, in memory. */
function takeOverFrom(former: RegistryOptions["former"]): OpenOptions["takeOver"] {
  return (config) => {
    const slot = former?.slotOf(config);
    if (slot !== undefined) slot.owners++;
    return slot;
  };
}
