import { createLimiter } from "../../collections/limiter.js";
import { messageOf, ZpublishError } from "../../errors.js";
import type { Log } from "../../observe/log.js";
import { type DatasetSnapshot, type DatasetVersion, VERSION_MARK } from "../dataset.js";
import { type DatasetHandle, errorOfDataset, type GivenDataset, openInTime } from "../dataset-handle.js";
import type { DatasetProvider } from "../dataset-provider.js";
import { createSlot, type RefreshScheduler, type Slot } from "../refresh-scheduler.js";
import {
  createProviderHandle,
  MAX_FAILURES,
  type ProviderHandle,
  type ProviderParts,
} from "./provider-handle.js";

/** Datasets that are opened at a time, of all providers and of one: others go on if those of one hang. */
const OPEN_CONCURRENCY = { maxRunning: 16, maxPerKey: 8, maxWaiting: 10_000 };
/** Time until a dataset that could not be opened is tried again. Requests in between get the same error. */
const FAILED_RETRY_MS = 1_000;
/** Time for which a dataset stays open after a request, which may still look it up. */
const IN_USE_MS = 1_000;
/** Datasets beyond the limit that may be open for that reason. */
const MAX_IN_USE = 100;
/** `Cache-Control` of versions, of which nothing ever changes, unless the dataset has one of its own. */
const FOR_EVER = "public, max-age=31536000, immutable";

/** Options of {@link createProvidedDatasets}. */
interface ProvidedOptions {
  /** The first one that lists an id has it. */
  readonly handles: readonly ProviderHandle[];
  /** Datasets that are configured, by id. */
  readonly configured: ReadonlyMap<string, Slot>;
  readonly scheduler: RefreshScheduler;
  readonly maxOpen: number;
  readonly log: Log;
  /** Opens the source of a dataset. */
  readonly openHandle: (config: GivenDataset) => Promise<DatasetHandle>;
  /** Opens the source of a dataset that is only looked at: nothing is logged about it. */
  readonly openQuietly: (config: GivenDataset) => Promise<DatasetHandle>;
}

/** Datasets of providers, and versions of all datasets: each is opened when it is first asked for, and only so many are open. */
export type ProvidedDatasets = ReturnType<typeof createProvidedDatasets>;

/** Creates the datasets of providers, none of which is open but those of handles that were taken over. */
export function createProvidedDatasets(options: ProvidedOptions) {
  const { configured, scheduler, openQuietly } = options;
  const versions = createVersions(
    (id) => configured.has(id) || options.handles.some(({ list }) => list.has(id)),
    async (id) => (configured.get(id) ?? (await open(id)))?.dataset,
    options,
  );
  const handles = [...options.handles, versions.handle];
  const closer = createCloser({ ...options, handles });
  const openOf = createOpening(options, closer.closeSoon);

  function ownerOf(id: string): ProviderHandle | undefined {
    if (configured.has(id)) return undefined;
    return handles.find(({ list }) => list.has(id));
  }

  function openSlot(id: string): Slot | undefined {
    for (const { slots } of handles) {
      const slot = slots.get(id);
      if (slot !== undefined) return slot;
    }
    return undefined;
  }

  async function open(id: string): Promise<Slot | undefined> {
    const handle = ownerOf(id) ?? (await lookFor(id));
    const slot = handle && (await openOf(handle, id));
    if (slot !== undefined || handle !== versions.handle) return slot;
    // It is no version, but may be a dataset that is newer than the last list.
    const owner = await lookFor(id);
    return owner === undefined || owner === handle ? undefined : openOf(owner, id);
  }

  /** Asks providers again, since a dataset may be newer than the last list. @throws ZpublishError if none has it, and one cannot tell. */
  async function lookFor(id: string): Promise<ProviderHandle | undefined> {
    const asked = options.handles.filter(
      ({ provider, list }) =>
        id.startsWith(provider.prefix) &&
        (scheduler.isRefreshed || !list.hasAnswered || list.failure !== undefined),
    );
    const looks = await Promise.allSettled(asked.map(({ list }) => list.lookBeforeNotFound()));
    const owner = ownerOf(id);
    const failed = looks.find((look) => look.status === "rejected");
    if (owner === undefined && failed !== undefined) throw failed.reason;
    return owner;
  }

  return {
    ...createLooks(ownerOf, openQuietly),
    /** Returns an open dataset, which counts as used; undefined if it is not open. */
    slotOf(id: string) {
      const slot = openSlot(id);
      if (slot !== undefined) slot.usedAtMs = performance.now();
      return slot;
    },
    /** Returns an open dataset, which does not count as used; undefined if it is not open. */
    openSlot,
    /** Tells whether a provider lists the id, or it may be that of a version. */
    has: (id: string) => ownerOf(id) !== undefined,
    /** Returns which version of a dataset an id names; undefined if it names none. There may be no such version. */
    findVersion: versions.find,
    /** Tells whether an id that is not open may be that of a dataset or a version. */
    mayHave: (id: string) =>
      options.handles.some(({ provider }) => id.startsWith(provider.prefix)) ||
      versions.find(id) !== undefined,
    lookFor,
    offersFile(id: string) {
      const { provider } = ownerOf(id) ?? {};
      return provider?.offersFile?.(id.slice(provider.prefix.length)) ?? false;
    },
    /** Opens a dataset, asking providers that do not list it again; undefined if there is none. @throws ZpublishError if it cannot be opened. */
    open,
    slots: () => handles.flatMap(({ slots }) => [...slots.values()]),
    failures: () =>
      new Map(
        handles.flatMap(({ failures }) =>
          [...failures.entries()].map(([id, { error }]) => [id, error] as const),
        ),
      ),
    /** Closes datasets that are no longer listed, or are now those of another provider. */
    dropUnlisted() {
      for (const handle of handles) {
        for (const id of [...handle.slots.keys()].filter((id) => ownerOf(id) !== handle)) {
          closer.drop(handle, id);
        }
        for (const [id] of handle.failures.entries()) if (ownerOf(id) !== handle) handle.failures.delete(id);
      }
    },
    /** Closes the versions. */
    async close() {
      closer.stop();
      await versions.handle.close();
    },
  };
}

/** Creates what opens datasets: each once for all who ask, and only so many at a time. @param closeSoon Called when one is open. */
function createOpening({ scheduler, log, openHandle }: ProvidedOptions, closeSoon: () => void) {
  const limiter = createLimiter(OPEN_CONCURRENCY);

  async function openNow(handle: ProviderHandle, id: string, signal: AbortSignal): Promise<Slot | undefined> {
    const { provider } = handle;
    const given = await provider.open(id.slice(provider.prefix.length));
    if (given === undefined) return undefined;
    const dataset = await openHandle({ ...given, id });
    const slot = createSlot(dataset);
    try {
      await scheduler.during(slot, () => dataset.open());
      if (signal.aborted || handle.isClosed()) throw new ZpublishError("draining", "opened too late");
      if (!handle.list.has(id)) {
        await dataset.close();
        return undefined;
      }
    } catch (error) {
      await dataset.close();
      throw error;
    }
    handle.slots.set(id, slot);
    return slot;
  }

  async function openOnce(handle: ProviderHandle, id: string): Promise<Slot | undefined> {
    const failure = handle.failures.get(id);
    if (failure !== undefined && performance.now() < failure.retryAtMs) throw failure.error;
    try {
      const slot = await limiter.run(handle.provider.name, () =>
        openInTime((signal) => openNow(handle, id, signal)),
      );
      handle.failures.delete(id);
      return slot;
    } catch (error) {
      throw rememberFailure(handle, id, error, log);
    } finally {
      closeSoon();
    }
  }

  return async function openOf(handle: ProviderHandle, id: string): Promise<Slot | undefined> {
    return handle.slots.get(id) ?? handle.opening.run(id, () => openOnce(handle, id));
  };
}

/** Creates what looks at datasets for descriptions of them, which is no use of them. */
function createLooks(
  ownerOf: (id: string) => ProviderHandle | undefined,
  openQuietly: ProvidedOptions["openQuietly"],
) {
  return {
    /** As {@link "../dataset-registry.js".DatasetRegistry} has it. */
    async lend<T>(id: string, use: (snapshot: DatasetSnapshot) => Promise<T>): Promise<T | undefined> {
      const { provider, slots } = ownerOf(id) ?? {};
      if (provider === undefined) return undefined;
      const open = slots?.get(id)?.dataset;
      if (open?.snapshot !== undefined) {
        await open.refresh();
        return use(open.snapshot);
      }
      const given = await provider.open(id.slice(provider.prefix.length));
      if (given === undefined) return undefined;
      const dataset = await openQuietly({ ...given, id });
      try {
        await openInTime(() => dataset.open());
        return await use(dataset.snapshot as DatasetSnapshot);
      } finally {
        await dataset.close();
      }
    },
    /** Returns the version of a dataset without opening it; undefined if its provider has none. */
    async versionOf(id: string): Promise<string | undefined> {
      const provider = ownerOf(id)?.provider;
      return provider?.versionOf?.(id.slice(provider.prefix.length));
    },
    /** Tells whether a dataset can be described without it being open. @param isRemote Whether it may be on another machine. */
    isDescribable(id: string, isRemote: boolean): boolean {
      const provider = ownerOf(id)?.provider;
      return provider?.versionOf !== undefined && (isRemote || provider.isRemote !== true);
    },
  };
}

/** Remembers that a dataset could not be opened. @returns The error that requests get. */
function rememberFailure(
  { failures, provider }: ProviderHandle,
  id: string,
  error: unknown,
  log: Log,
): ZpublishError {
  const problem = `provider '${provider.name}' failed: ${messageOf(error)}`;
  const known =
    error instanceof ZpublishError
      ? error
      : new ZpublishError("source-unreadable", problem, { cause: error });
  const named = errorOfDataset(id, known);
  if (known.code === "overloaded") return named;
  const before = failures.get(id);
  // Beyond the limit, each would be logged again and again, since the oldest are forgotten.
  if (before === undefined ? failures.size < MAX_FAILURES : before.error.message !== named.message)
    log.warn({ dataset: id, provider: provider.name, reason: known.message }, "dataset cannot be opened");
  failures.set(id, { error: named, retryAtMs: performance.now() + FAILED_RETRY_MS });
  return named;
}

/** Creates what closes datasets beyond the limit, those first that were not asked for for the longest time. */
function createCloser({ handles, scheduler, maxOpen, log }: ProvidedOptions) {
  let soon: NodeJS.Immediate | undefined;
  let later: NodeJS.Timeout | undefined;
  let isStopped = false;

  /** Closes datasets in a later turn: those who wait for one have its snapshot by then. */
  function closeSoon(): void {
    if (isStopped) return;
    soon ??= setImmediate(() => {
      soon = undefined;
      closeIdle();
    }).unref();
  }

  function closeIdle(): void {
    const excess = handles.reduce((sum, { slots }) => sum + slots.size, 0) - maxOpen;
    if (excess <= 0) return;
    const byUse = handles
      .flatMap((handle) => [...handle.slots].map(([id, { usedAtMs }]) => ({ handle, id, usedAtMs })))
      .sort((a, b) => a.usedAtMs - b.usedAtMs);
    const inUseSince = performance.now() - IN_USE_MS;
    const idle = byUse
      .slice(0, excess)
      .filter(({ usedAtMs }, index) => usedAtMs <= inUseSince || excess - index > MAX_IN_USE);
    for (const { handle, id } of idle) drop(handle, id);
    clearTimeout(later);
    if (idle.length < excess) later = setTimeout(closeSoon, IN_USE_MS).unref();
  }

  function drop({ slots }: ProviderHandle, id: string): void {
    const slot = slots.get(id);
    if (slot === undefined) return;
    slots.delete(id);
    scheduler.remove(slot);
    void slot.dataset
      .close()
      .catch((error: unknown) => log.error({ dataset: id, err: error }, "closing failed"));
  }

  // Handles that were taken over may have more than this registry wants.
  closeSoon();
  return {
    closeSoon,
    drop,
    stop(): void {
      isStopped = true;
      clearImmediate(soon);
      clearTimeout(later);
    },
  };
}

/**
 * Creates the versions of all datasets, which a provider has that lists none of them.
 * @param isDataset Tells whether there is a dataset of an id. Datasets go before versions.
 * @param openDataset Opens a dataset; undefined if it is gone.
 */
function createVersions(
  isDataset: (id: string) => boolean,
  openDataset: (id: string) => Promise<DatasetHandle | undefined>,
  parts: ProviderParts,
) {
  /** Returns which version an id names; undefined if it is that of a dataset, or begins with none. There may be no such version. */
  function find(id: string): DatasetVersion | undefined {
    if (isDataset(id)) return undefined;
    // Ids and names may have the character, too: the longest id counts.
    for (let at = id.lastIndexOf(VERSION_MARK); at > 0; at = id.lastIndexOf(VERSION_MARK, at - 1)) {
      const dataset = id.slice(0, at);
      if (isDataset(dataset)) return { dataset, name: id.slice(at + 1) };
    }
    return undefined;
  }

  const provider: DatasetProvider = {
    name: "versions",
    prefix: "",
    list: async () => [],
    async open(id) {
      const version = find(id);
      const dataset = version && (await openDataset(version.dataset));
      if (version === undefined || dataset === undefined) return undefined;
      // Some sources know their versions only then.
      if (dataset.versions === undefined) await dataset.open();
      const { config, versions } = dataset;
      const source = await versions?.open(version.name);
      if (source === undefined) return undefined;
      const { location } = source;
      return {
        ...config,
        // A file has all versions.
        ...{ id, location, source, version, versions, file: false },
        immutable: true,
        freshness: "immutable",
        cacheControl: config.cacheControl ?? FOR_EVER,
      };
    },
    close: async () => undefined,
  };

  const handle = createProviderHandle({ owner: createVersions, config: undefined }, provider, parts, () => ({
    ...{ ids: [], hasAnswered: true, failure: undefined, seconds: 0, failures: 0 },
    has: (id) => find(id) !== undefined,
    look: async () => undefined,
    lookBeforeNotFound: async () => undefined,
    close: () => undefined,
  }));
  return { handle, find };
}
