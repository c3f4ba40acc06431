import { createLimiter } from "../../collections/limiter.js";
import { messageOf, ZpublishError } from "../../errors.js";
import type { Log } from "../../observe/log.js";
import type { DatasetSnapshot } from "../dataset.js";
import { type DatasetHandle, errorOfDataset, type GivenDataset, openInTime } from "../dataset-handle.js";
import { createSlot, type RefreshScheduler, type Slot } from "../refresh-scheduler.js";
import { MAX_FAILURES, type ProviderHandle } from "./provider-handle.js";

/** Datasets that are opened at a time, of all providers and of one: others go on if those of one hang. */
const OPEN_CONCURRENCY = { maxRunning: 16, maxPerKey: 8, maxWaiting: 10_000 };
/** Time until a dataset that could not be opened is tried again. Requests in between get the same error. */
const FAILED_RETRY_MS = 1_000;
/** Time for which a dataset stays open after a request, which may still look it up. */
const IN_USE_MS = 1_000;
/** Datasets beyond the limit that may be open for that reason. */
const MAX_IN_USE = 100;

/** Options of {@link createProvidedDatasets}. */
interface ProvidedOptions {
  /** The first one that lists an id has it. */
  readonly handles: readonly ProviderHandle[];
  readonly isConfigured: (id: string) => boolean;
  readonly scheduler: RefreshScheduler;
  readonly maxOpen: number;
  readonly log: Log;
  /** Opens the source of a dataset. */
  readonly openHandle: (config: GivenDataset) => Promise<DatasetHandle>;
  /** Opens the source of a dataset that is only looked at: nothing is logged about it. */
  readonly openQuietly: (config: GivenDataset) => Promise<DatasetHandle>;
}

/** Datasets of providers: each is opened when it is first asked for, and only so many are open. */
export type ProvidedDatasets = ReturnType<typeof createProvidedDatasets>;

/** Creates the datasets of providers, none of which is open but those of handles that were taken over. */
export function createProvidedDatasets(options: ProvidedOptions) {
  const { handles, isConfigured, scheduler, log, openHandle, openQuietly } = options;
  const limiter = createLimiter(OPEN_CONCURRENCY);
  const closer = createCloser(options);

  function ownerOf(id: string): ProviderHandle | undefined {
    if (isConfigured(id)) return undefined;
    return handles.find(({ list }) => list.has(id));
  }

  function openSlot(id: string): Slot | undefined {
    for (const { slots } of handles) {
      const slot = slots.get(id);
      if (slot !== undefined) return slot;
    }
    return undefined;
  }

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
      closer.closeSoon();
    }
  }

  async function open(id: string): Promise<Slot | undefined> {
    const handle = ownerOf(id) ?? (await lookFor(id));
    if (handle === undefined) return undefined;
    const known = handle.slots.get(id);
    if (known !== undefined) return known;
    return handle.opening.run(id, () => openOnce(handle, id));
  }

  /** Asks providers again, since a dataset may be newer than the last list. @throws ZpublishError if none has it, and one cannot tell. */
  async function lookFor(id: string): Promise<ProviderHandle | undefined> {
    const asked = handles.filter(
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
    /** Tells whether a provider lists the id. */
    has: (id: string) => ownerOf(id) !== undefined,
    /** Tells whether an id that is not open may be that of a dataset. */
    mayHave: (id: string) => handles.some(({ provider }) => id.startsWith(provider.prefix)),
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
    close: closer.stop,
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
