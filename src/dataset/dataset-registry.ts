import { isDeepStrictEqual } from "node:util";
import type { DatasetConfig } from "../config/config.js";
import { ZpublishError } from "../errors.js";
import { settlesWithin } from "../event-loop/settles-within.js";
import type { DatasetSnapshot, Datasets, DatasetVersion } from "./dataset.js";
import { errorOfDataset, openInTime } from "./dataset-handle.js";
import { createOpener, type OpenOptions, openAtStart } from "./open-at-start.js";
import { createProvidedDatasets, type ProvidedDatasets } from "./providers/provided-datasets.js";
import {
  createAllIds,
  listAtStart,
  openProviders,
  type ProviderHandle,
  type ProviderKey,
  type ProviderSpec,
  type ProviderStats,
  releaseProviders,
  statsOfProvider,
} from "./providers/provider-handle.js";
import type { RefreshScheduler, Slot } from "./refresh-scheduler.js";

export type { OpenProgress } from "./open-at-start.js";

/** Time that closing waits for refreshes under way: a source may hang. */
const CLOSE_TIMEOUT_MS = 5_000;

/** Registry of one configuration's datasets, which are refreshed. */
export interface DatasetRegistry extends Datasets {
  /**
   * Prepares a dataset for a request: opens it, or refreshes it after a time without requests. Undefined if the request
   * need not wait, or if there is no such dataset.
   * @param staleIdentity Identity of a snapshot whose source has changed since: the index of a file that was replaced finds nothing in
   * the new one. If it is still the current one, the dataset is refreshed.
   * @throws ZpublishError if it cannot be opened; `not-found` if it turns out that no provider has it.
   */
  ready(id: string, staleIdentity?: string): Promise<void> | undefined;
  /** Tells whether there is a dataset with an id, as far as the last lists tell. Versions are no datasets. */
  has(id: string): boolean;
  /** Returns which version of a dataset an id names; undefined if it names none. There may be no such version. */
  findVersion(id: string): DatasetVersion | undefined;
  /**
   * Asks the providers that may have an id for their lists again: a dataset may be newer than those. Undefined if none may have it.
   * @throws ZpublishError if no provider has it, and one of them cannot be asked
   */
  listAgain(id: string): Promise<void> | undefined;
  /**
   * Tells whether a dataset can be described while it is not open.
   * @param isRemote Whether it may take requests to other machines.
   */
  isDescribable(id: string, isRemote: boolean): boolean;
  /**
   * Returns a text that changes whenever a dataset does, without opening it. Undefined if it is not {@link isDescribable}.
   * @throws if that cannot be told now
   */
  versionOf(id: string): Promise<string | undefined>;
  /**
   * Opens a dataset of a provider for a moment, beside those that requests use, and closes it after `use`. One that is open is refreshed
   * and used. Undefined if there is none of that id.
   * @throws ZpublishError if it cannot be opened; what `use` throws
   */
  lend<T>(id: string, use: (snapshot: DatasetSnapshot) => Promise<T>): Promise<T | undefined>;
  /** Refreshes every open dataset once; joins a refresh that is under way. Failures are logged, never thrown. */
  refresh(): Promise<void>;
  /**
   * Returns the slot of a configuration, for another registry to take over; undefined if there is none.
   * @param cacheControl Default `Cache-Control` of the other registry.
   */
  slotOf(config: DatasetConfig, cacheControl: string): Slot | undefined;
  /** Returns the provider with a key, as {@link slotOf} returns slots. */
  providerOf(key: ProviderKey, cacheControl: string): ProviderHandle | undefined;
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
  readonly providers: readonly ProviderStats[];
}

/** Options of {@link openDatasets}. */
interface RegistryOptions extends Omit<OpenOptions, "takeOver" | "failures"> {
  readonly scheduler: RefreshScheduler;
  /** Providers of further datasets. If several have one id, the first one's counts. Default: none. */
  readonly providers?: readonly ProviderSpec[];
  /** Datasets of providers that are open at a time. Default: no bound. */
  readonly maxOpenDatasets?: number;
  /** Registry from which datasets and providers whose configuration is the same are taken over. */
  readonly former?: Pick<DatasetRegistry, "slotOf" | "providerOf"> | undefined;
}

/**
 * Opens the registry of a configuration; {@link openAtStart} tells which datasets are opened at once. Providers are asked for their
 * lists; it waits a few seconds for them.
 * @throws ZpublishError naming the providers and datasets that cannot be opened, these unless `skipInvalid`; `invalid-config` if two have one id; what creating a provider throws.
 */
export async function openDatasets(
  configs: readonly DatasetConfig[],
  options: RegistryOptions,
): Promise<DatasetRegistry> {
  const { scheduler, log, former } = options;
  const failures: ZpublishError[] = [];
  const providerOf = (key: ProviderKey) => former?.providerOf(key, options.cacheControl);
  const handles = await openProviders(options.providers ?? [], { scheduler, log }, providerOf, failures);
  try {
    const listing = listAtStart(handles, log);
    const opened = await openAtStart(configs, {
      ...options,
      takeOver: takeOverFrom(former, options.cacheControl),
      failures,
    });
    await listing;
    return await createRegistry(opened, handles, options);
  } catch (error) {
    await releaseProviders(handles);
    throw error;
  }
}

async function createRegistry(
  opened: readonly Slot[],
  handles: readonly ProviderHandle[],
  { former: _former, ...options }: RegistryOptions,
): Promise<DatasetRegistry> {
  const { scheduler, cacheControl, log } = options;
  const slots = new Map(opened.map((slot) => [slot.dataset.id, slot]));
  const provided = createProvidedDatasets({
    handles,
    configured: slots,
    scheduler,
    maxOpen: options.maxOpenDatasets ?? Number.POSITIVE_INFINITY,
    log,
    openHandle: createOpener(options),
    openQuietly: createOpener({ ...options, log: log.child({}, { level: "silent" }) }),
  });
  const listed = createAllIds([...slots.keys()], handles, () => provided.dropUnlisted());
  await listed.settled();

  const { ready, get, refreshBeforeNotFound } = createPreparation(slots, provided, scheduler);

  const snapshotOf = (id: string) => (slots.get(id) ?? provided.openSlot(id))?.dataset.snapshot;

  return {
    ids: listed.ids,
    configuredCount: slots.size,
    offersFile(id) {
      const snapshot = snapshotOf(id);
      return snapshot === undefined ? provided.offersFile(id) : snapshot.file !== undefined;
    },
    failures: provided.failures,
    opened: snapshotOf,
    get,
    open(id) {
      const pending = ready(id);
      return pending === undefined ? get(id) : pending.then(() => get(id));
    },
    refreshBeforeNotFound,
    ready,
    has: (id) => slots.has(id) || (provided.has(id) && provided.findVersion(id) === undefined),
    findVersion: provided.findVersion,
    listAgain: (id) => (provided.mayHave(id) ? provided.lookFor(id).then(() => undefined) : undefined),
    versionOf: provided.versionOf,
    isDescribable: provided.isDescribable,
    lend: provided.lend,
    async refresh() {
      const lists = handles.map(({ list }) => list.look());
      await Promise.all([scheduler.refresh([...slots.values(), ...provided.slots()]), ...lists]);
      await listed.settled();
    },
    slotOf(config, byDefault) {
      const slot = slots.get(config.id);
      return slot?.dataset.isOf(config, byDefault) ? slot : undefined;
    },
    providerOf: ({ owner, config }, byDefault) =>
      byDefault === cacheControl
        ? handles.find(({ key }) => key.owner === owner && isDeepStrictEqual(key.config, config))
        : undefined,
    get stats() {
      let open = provided.slots().length;
      for (const { dataset } of slots.values()) if (dataset.snapshot !== undefined) open++;
      return {
        datasets: listed.ids().length,
        open,
        failedRefreshes: scheduler.failedRefreshes,
        providers: handles.map(statsOfProvider),
      };
    },
    async close() {
      listed.close();
      const closing = provided.close();
      const left = [...slots.values()].filter((slot) => --slot.owners === 0);
      for (const slot of left) scheduler.remove(slot);
      const all = left.map(({ dataset }) => dataset);
      const refreshes = all.filter((dataset) => dataset.isRefreshing()).map((dataset) => dataset.refresh());
      await settlesWithin(Promise.all(refreshes), CLOSE_TIMEOUT_MS);
      await Promise.all([...all.map((dataset) => dataset.close()), closing, releaseProviders(handles)]);
    },
  };
}

/** Prepares datasets for requests: opens them, refreshes them, and finds their snapshots. */
function createPreparation(
  slots: ReadonlyMap<string, Slot>,
  provided: ProvidedDatasets,
  scheduler: RefreshScheduler,
): Pick<DatasetRegistry, "ready" | "get" | "refreshBeforeNotFound"> {
  function slotOf(id: string): Slot | undefined {
    return slots.get(id) ?? provided.slotOf(id);
  }

  function ready(id: string, staleIdentity?: string): Promise<void> | undefined {
    const slot = slotOf(id);
    let pending: Promise<void> | undefined;
    if (slot !== undefined) pending = readySlot(slot);
    else if (provided.mayHave(id)) pending = readyProvided(id);
    return staleIdentity === undefined ? pending : refreshStale(id, staleIdentity, pending);
  }

  async function readyProvided(id: string): Promise<void> {
    const slot = await provided.open(id);
    if (slot === undefined) throw notFound(id, provided.findVersion(id));
    await readySlot(slot);
  }

  function readySlot(slot: Slot): Promise<void> | undefined {
    scheduler.recordRequest(slot);
    if (slot.isFresh) return undefined;
    if (scheduler.isCurrent(slot) && slot.dataset.snapshot !== undefined) {
      slot.isFresh = true;
      return undefined;
    }
    slot.preparing ??= prepare(slot).finally(() => {
      slot.preparing = undefined;
    });
    return slot.preparing;
  }

  async function prepare(slot: Slot): Promise<void> {
    const { dataset } = slot;
    if (dataset.snapshot !== undefined) await scheduler.refreshForRequest(slot);
    else {
      const open = () => openInTime(() => dataset.open());
      await scheduler.during(slot, open).catch((error: unknown) => {
        throw error instanceof ZpublishError ? errorOfDataset(dataset.id, error) : error;
      });
    }
    // If that took long, the scheduler may have removed it as idle.
    scheduler.recordRequest(slot);
    slot.isFresh = true;
  }

  async function refreshStale(
    id: string,
    staleIdentity: string,
    pending: Promise<void> | undefined,
  ): Promise<void> {
    await pending;
    const snapshot = get(id);
    if (snapshot.identity === staleIdentity) await refreshBeforeNotFound(snapshot);
  }

  function get(id: string): DatasetSnapshot {
    const slot = slotOf(id);
    if (slot !== undefined) scheduler.recordRequest(slot);
    const snapshot = slot?.dataset.snapshot;
    if (snapshot !== undefined) return snapshot;
    if (slot === undefined && !provided.has(id)) throw notFound(id);
    throw new ZpublishError("internal", `expected dataset '${id}' to be open: wait for open() first`);
  }

  async function refreshBeforeNotFound(snapshot: DatasetSnapshot): Promise<DatasetSnapshot> {
    const { id, immutable } = snapshot;
    if (immutable || !scheduler.isRefreshed) return snapshot;
    // It may have been closed for others since the request began.
    if (slotOf(id) === undefined) await ready(id);
    const slot = slotOf(id);
    if (slot === undefined) throw notFound(id);
    await slot.throttle.refresh();
    return slot.dataset.snapshot ?? snapshot;
  }

  return { ready, get, refreshBeforeNotFound };
}

function notFound(id: string, version?: DatasetVersion): ZpublishError {
  const message =
    version === undefined
      ? `Dataset '${id}' not found`
      : `Version '${version.name}' not found in dataset '${version.dataset}'`;
  return new ZpublishError("not-found", message);
}

/** A separate function, so that the registry's closures do not retain the former one and all before it. */
function takeOverFrom(former: RegistryOptions["former"], cacheControl: string): OpenOptions["takeOver"] {
  return (config) => {
    const slot = former?.slotOf(config, cacheControl);
    if (slot !== undefined) slot.owners++;
    return slot;
  };
}
