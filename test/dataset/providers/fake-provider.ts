import { pino } from "pino";
import type { GivenDataset } from "../../../src/dataset/dataset-handle.js";
import type { DatasetProvider } from "../../../src/dataset/dataset-provider.js";
import { type DatasetRegistry, openDatasets } from "../../../src/dataset/dataset-registry.js";
import { createRefreshScheduler, type RefreshScheduler } from "../../../src/dataset/refresh-scheduler.js";
import { type FakeSource, fakeSource, storedArray, storedTree } from "../../support/datasets/fake-source.js";

/** A provider whose list and datasets a test sets. */
export interface FakeProvider extends DatasetProvider {
  ids: readonly string[];
  /** Error that lists throw. */
  failure: Error | undefined;
  /** Error that opening a dataset throws, by its id. */
  readonly broken: Map<string, Error>;
  /** Sources of datasets in the order in which they were opened. */
  readonly opened: { readonly id: string; readonly source: FakeSource }[];
  lists: number;
  closed: boolean;
  /** Says that the list has changed. */
  changed(): void;
}

export function fakeProvider(name: string, ids: readonly string[], prefix = `${name}~`): FakeProvider {
  let change = () => {};
  const provider: FakeProvider = {
    name,
    prefix,
    ids,
    failure: undefined,
    broken: new Map(),
    opened: [],
    lists: 0,
    closed: false,
    async list() {
      provider.lists++;
      if (provider.failure !== undefined) throw provider.failure;
      return provider.ids;
    },
    async open(id): Promise<GivenDataset | undefined> {
      const error = provider.broken.get(id);
      if (error !== undefined) throw error;
      if (!provider.ids.includes(id)) return undefined;
      const source = fakeSource(
        storedTree([{ path: "/", attrs: { from: name }, arrays: [storedArray("x")] }]),
      );
      provider.opened.push({ id, source });
      return { id, location: `${name}/${id}`, source, immutable: false, encoding: {}, variables: {} };
    },
    onChange(changed) {
      change = changed;
    },
    async close() {
      provider.closed = true;
    },
    changed: () => change(),
  };
  return provider;
}

export interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly provider?: string;
  readonly dataset?: string;
  readonly name?: string;
  readonly reason?: string;
  readonly count?: number;
}

export interface OpenedRegistry {
  readonly registry: DatasetRegistry;
  readonly scheduler: RefreshScheduler;
  readonly lines: LogLine[];
}

/** Opens a registry of providers, and of configured datasets of one array each. */
export async function openRegistry(
  providers: readonly DatasetProvider[],
  {
    configured = [],
    maxOpenDatasets,
    former,
    isRefreshed = true,
  }: {
    readonly configured?: readonly string[];
    readonly maxOpenDatasets?: number;
    readonly former?: OpenedRegistry;
    readonly isRefreshed?: boolean;
  } = {},
): Promise<OpenedRegistry> {
  const lines: LogLine[] = former?.lines ?? [];
  const scheduler = former?.scheduler ?? createRefreshScheduler();
  // No period ends in a test, but there are some.
  if (isRefreshed) scheduler.every(3_600);
  /** Keeps all lines but those of every start. */
  function write(text: string): void {
    const line = JSON.parse(text) as LogLine;
    if (line.msg !== "datasets listed") lines.push(line);
  }
  const registry = await openDatasets(
    configured.map((id) => ({ id, location: id, immutable: false, encoding: {}, variables: {} })),
    {
      scheduler,
      former: former?.registry,
      cacheControl: "no-cache",
      skipInvalid: false,
      log: pino({ level: "debug" }, { write }),
      openSource: async () =>
        fakeSource(storedTree([{ path: "/", attrs: { from: "configuration" }, arrays: [storedArray("x")] }])),
      providers: providers.map((provider) => ({
        owner: provider,
        config: undefined,
        create: () => provider,
      })),
      ...(maxOpenDatasets === undefined ? {} : { maxOpenDatasets }),
    },
  );
  return { registry, scheduler, lines };
}
