import { type BoundedMap, createBoundedMap } from "../../collections/bounded-map.js";
import { createSingleFlight, type SingleFlight } from "../../collections/single-flight.js";
import { compareItems } from "../../collections/sorted-lists.js";
import { ZpublishError } from "../../errors.js";
import { createSlice, runCooperatively } from "../../event-loop/cooperative-task.js";
import { rerunning } from "../../event-loop/joined.js";
import { settlesWithin } from "../../event-loop/settles-within.js";
import { sortCooperatively } from "../../event-loop/sort-cooperatively.js";
import type { Log } from "../../observe/log.js";
import type { DatasetProvider } from "../dataset-provider.js";
import type { RefreshScheduler, Slot } from "../refresh-scheduler.js";
import { createProviderList, type ProviderList } from "./provider-list.js";

/** Time that the start waits for lists; later ones are served when they come. */
const START_TIMEOUT_MS = 3_000;
/** Time that closing waits for a provider. */
const CLOSE_TIMEOUT_MS = 5_000;

/** Failures that are remembered per provider, and named in the log. */
export const MAX_FAILURES = 1_000;

/** Identity of a provider: one of a former registry that has the same is taken over. */
export interface ProviderKey {
  /** The plugin, or the kind of provider; compared by identity. */
  readonly owner: unknown;
  /** Its configuration, compared by value. */
  readonly config: unknown;
}

/** A provider to be used. */
export interface ProviderSpec extends ProviderKey {
  /** @throws if the provider cannot be used at all: the server does not start. */
  create(): DatasetProvider | Promise<DatasetProvider>;
}

/** A dataset that could not be opened. */
interface OpenFailure {
  readonly error: ZpublishError;
  /** Time from which on it is tried again. */
  readonly retryAtMs: number;
}

/** A provider with its ids and its open datasets. All registries that have the provider share it. */
export interface ProviderHandle {
  readonly key: ProviderKey;
  readonly provider: DatasetProvider;
  readonly list: ProviderList;
  /** Open datasets by id, with the prefix. */
  readonly slots: Map<string, Slot>;
  readonly opening: SingleFlight<Slot | undefined>;
  /** Datasets that could not be opened lately, by id. */
  readonly failures: BoundedMap<OpenFailure>;
  /** Called when the list has changed. */
  readonly listeners: Set<() => void>;
  /** Number of registries that have the provider; it closes with the last of them. */
  owners: number;
  isClosed(): boolean;
  /** Closes its datasets, and the provider. */
  close(): Promise<void>;
}

/** Counts of one provider. */
export interface ProviderStats {
  readonly name: string;
  /** Number of datasets that it listed last. */
  readonly known: number;
  readonly open: number;
  /** Number of datasets that could not be opened lately. */
  readonly failed: number;
  /** Seconds that its last list took. */
  readonly listSeconds: number;
  readonly failedLists: number;
}

/** Parts of the server that providers need. */
export interface ProviderParts {
  readonly scheduler: RefreshScheduler;
  readonly log: Log;
}

/**
 * Takes over or creates providers, in order. None is asked for its list yet.
 * @param failures Takes the errors of those that cannot be created.
 * @throws The first error of `create` that is no ZpublishError; those created before are closed then.
 */
export async function openProviders(
  specs: readonly ProviderSpec[],
  parts: ProviderParts,
  takeOver: (key: ProviderKey) => ProviderHandle | undefined,
  failures: ZpublishError[],
): Promise<ProviderHandle[]> {
  const handles: ProviderHandle[] = [];
  try {
    for (const spec of specs) {
      const known = takeOver(spec);
      if (known !== undefined) known.owners++;
      const handle = known ?? (await openProvider(spec, parts, failures));
      if (handle !== undefined) handles.push(handle);
    }
  } catch (error) {
    await releaseProviders(handles);
    throw error;
  }
  return handles;
}

async function openProvider(
  spec: ProviderSpec,
  parts: ProviderParts,
  failures: ZpublishError[],
): Promise<ProviderHandle | undefined> {
  try {
    return createProviderHandle(spec, await spec.create(), parts);
  } catch (error) {
    if (!(error instanceof ZpublishError)) throw error;
    failures.push(error);
    return undefined;
  }
}

/** Asks providers for their first list. Never throws. @returns after a few seconds at the latest. */
export async function listAtStart(handles: readonly ProviderHandle[], log: Log): Promise<void> {
  const asked = handles.filter(({ list }) => !list.hasAnswered && list.failure === undefined);
  await settlesWithin(Promise.all(asked.map(({ list }) => list.look())), START_TIMEOUT_MS);
  for (const { list, provider } of asked) {
    if (list.hasAnswered || list.failure !== undefined) continue;
    log.warn({ provider: provider.name }, "datasets are not listed yet; they are served when they are");
  }
}

/** Closes providers that no other registry has. */
export async function releaseProviders(handles: readonly ProviderHandle[]): Promise<void> {
  const left = handles.filter((handle) => --handle.owners === 0);
  await Promise.all(left.map((handle) => handle.close()));
}

/** Creates the handle of a provider. @param createList Default: the list that the provider gives. */
export function createProviderHandle(
  { owner, config }: ProviderKey,
  provider: DatasetProvider,
  { scheduler, log }: ProviderParts,
  createList: typeof createProviderList = createProviderList,
): ProviderHandle {
  const listeners = new Set<() => void>();
  const slots = new Map<string, Slot>();
  let isClosed = false;
  const list = createList(provider, log, () => {
    for (const listener of listeners) listener();
  });
  const removeTask = scheduler.addTask(list.look);

  async function closeProvider(): Promise<void> {
    try {
      await settlesWithin(Promise.resolve(provider.close()), CLOSE_TIMEOUT_MS);
    } catch (error) {
      log.error({ provider: provider.name, err: error }, "closing failed");
    }
  }

  return {
    key: { owner, config },
    provider,
    list,
    slots,
    opening: createSingleFlight(),
    failures: createBoundedMap({ maxEntries: MAX_FAILURES }),
    listeners,
    owners: 1,
    isClosed: () => isClosed,
    async close() {
      isClosed = true;
      removeTask();
      list.close();
      const open = [...slots.values()];
      slots.clear();
      for (const slot of open) scheduler.remove(slot);
      await Promise.all(open.map(({ dataset }) => dataset.close()));
      await closeProvider();
    },
  };
}

/** Returns the current counts of a provider. */
export function statsOfProvider({ provider, list, slots, failures }: ProviderHandle): ProviderStats {
  return {
    name: provider.name,
    known: list.ids.length,
    open: slots.size,
    failed: failures.size,
    listSeconds: list.seconds,
    failedLists: list.failures,
  };
}

/**
 * Creates the merged ids of providers. Of ids that come twice, the first counts: configured ones, then those of earlier providers.
 * @param onChange Called when a list has changed.
 */
export function createAllIds(
  configured: readonly string[],
  handles: readonly ProviderHandle[],
  onChange: () => void,
) {
  let ids: readonly string[] = configured;

  const merge = rerunning(async () => {
    if (configured.length === 0 && handles.length === 1) {
      ids = handles[0]!.list.ids;
      return;
    }
    const slice = createSlice();
    const all = new Set(configured);
    for (const { list } of handles)
      for (const id of list.ids) {
        if (slice.isOver()) await slice.next();
        all.add(id);
      }
    const provided = [...all].slice(configured.length);
    ids = [...configured, ...(await runCooperatively(sortCooperatively(provided, compareItems)))];
  });

  function onList(): void {
    onChange();
    void merge();
  }
  for (const { listeners } of handles) listeners.add(onList);
  if (handles.length > 0) void merge();

  return {
    /** Returns configured ids in order, then those of providers, sorted. The same array while nothing has changed. */
    ids: () => ids,
    /** Resolves when the ids are those of the last lists. */
    settled: async () => merge.running,
    close() {
      for (const { listeners } of handles) listeners.delete(onList);
    },
  };
}
