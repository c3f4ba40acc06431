import type { DatasetConfig } from "../config/config.js";
import { messageOf, ZpublishError } from "../errors.js";
import type { Log } from "../observe/log.js";
import { settlesWithin } from "../settles-within.js";
import type { Source } from "../source/source.js";
import type { DatasetSnapshot, Datasets } from "./dataset.js";
import { type OpenDataset, openDataset } from "./open-dataset.js";

/** Datasets opened at a time: enough to keep a disk busy, few enough to keep memory and file handles bounded. */
const OPEN_CONCURRENCY = 8;

/** How soon a dataset is looked at again in which something seems half written. */
const HELD_RETRY_MS = 1_000;
/** How long closing waits for refreshes under way: a source may hang. */
const CLOSE_TIMEOUT_MS = 5_000;

/** How opening gets on. */
export interface OpenProgress {
  readonly opened: number;
  readonly total: number;
  /** The dataset that moved. */
  readonly id: string;
  /** Arrays of it read so far. */
  readonly arrays: number;
}

export interface RegistryOptions {
  readonly cacheControl: string;
  /** A dataset that cannot be opened is a warning instead of an error. */
  readonly skipInvalid: boolean;
  readonly log: Log;
  readonly openSource: (config: DatasetConfig) => Promise<Source>;
  readonly progress?: ((progress: OpenProgress) => void) | undefined;
}

/** The datasets of a server, kept fresh. */
export interface DatasetRegistry extends Datasets {
  /**
   * Looks at every dataset once; failures are logged, never thrown. A look at a dataset that is under way already is
   * joined.
   */
  refresh(): Promise<void>;
  /**
   * Refreshes every `seconds`, counted from the end of the refresh before, or from when it had that long; 0: never.
   */
  refreshEvery(seconds: number): void;
  close(): Promise<void>;
}

/**
 * Opens all datasets.
 * @throws ZpublishError of the first, in the order configured, that cannot be opened, unless `skipInvalid`; `invalid-config` where
 * two have one id.
 */
export async function openDatasets(
  configs: readonly DatasetConfig[],
  options: RegistryOptions,
): Promise<DatasetRegistry> {
  const { log } = options;
  refuseDuplicateIds(configs);
  const slots = await openAll(configs, options);
  const datasets = new Map<string, OpenDataset>();
  for (const slot of slots) if (slot !== undefined) datasets.set(slot.id, slot);
  const ids = Object.freeze([...datasets.keys()]);

  /** Refreshes that have not ended: a source that hangs keeps its own dataset waiting, and no other. */
  const underWay = new Map<string, Promise<void>>();
  const timers = new Set<NodeJS.Timeout>();
  let closed = false;
  /** What was said last of a dataset that fails, so that it is said once and not every few seconds. */
  const failing = new Map<string, string>();

  async function look(dataset: OpenDataset): Promise<void> {
    const { id } = dataset;
    try {
      const before = dataset.snapshot();
      const result = await dataset.refresh();
      if (result === "changed") {
        log.info({ dataset: id, revision: dataset.snapshot().revision }, "dataset refreshed");
        logFindings(dataset, log, before);
      }
      if (result === "held") later(() => refreshOne(dataset), HELD_RETRY_MS);
      if (failing.delete(id)) log.info({ dataset: id }, "dataset can be refreshed again");
    } catch (error) {
      const reason = messageOf(error);
      if (failing.get(id) === reason) return;
      failing.set(id, reason);
      log.warn({ dataset: id, reason }, "dataset cannot be refreshed; its last state is served on");
    }
  }

  function refreshOne(dataset: OpenDataset): Promise<void> {
    const { id } = dataset;
    const running = underWay.get(id) ?? look(dataset).finally(() => underWay.delete(id));
    underWay.set(id, running);
    return running;
  }

  async function refresh(): Promise<void> {
    // Those under way first: they are joined, and must not take the place of others.
    const joined = [...underWay.values()];
    const waiting = [...datasets.values()].filter(({ id }) => !underWay.has(id));
    await Promise.all([
      ...joined,
      ...Array.from({ length: OPEN_CONCURRENCY }, async () => {
        for (let dataset = waiting.shift(); dataset !== undefined && !closed; dataset = waiting.shift()) {
          await refreshOne(dataset);
        }
      }),
    ]);
  }

  function later(run: () => Promise<void>, delayMs: number): void {
    if (closed) return;
    const timer = setTimeout(() => {
      timers.delete(timer);
      void run();
    }, delayMs).unref();
    timers.add(timer);
  }

  return {
    ids: () => ids,
    get(id) {
      const dataset = datasets.get(id);
      if (dataset === undefined) throw new ZpublishError("not-found", `Dataset '${id}' not found`);
      return dataset.snapshot();
    },
    refresh,
    refreshEvery(seconds) {
      if (seconds <= 0) return;
      const periodMs = seconds * 1000;
      const tick = async () => {
        await settlesWithin(refresh(), periodMs);
        later(tick, periodMs);
      };
      later(tick, periodMs);
    },
    async close() {
      closed = true;
      for (const timer of timers) clearTimeout(timer);
      await settlesWithin(Promise.all(underWay.values()), CLOSE_TIMEOUT_MS);
      await Promise.all([...datasets.values()].map((dataset) => dataset.close()));
    },
  };
}

function refuseDuplicateIds(configs: readonly DatasetConfig[]): void {
  const locations = new Map<string, string>();
  for (const { id, location } of configs) {
    const other = locations.get(id);
    if (other !== undefined) {
      throw new ZpublishError(
        "invalid-config",
        `dataset id '${id}': expected to be used once, received it for '${other}' and for '${location}'`,
      );
    }
    locations.set(id, location);
  }
}

async function openAll(
  configs: readonly DatasetConfig[],
  { cacheControl, skipInvalid, log, openSource, progress }: RegistryOptions,
): Promise<(OpenDataset | undefined)[]> {
  const slots: (OpenDataset | undefined)[] = configs.map(() => undefined);
  const failures: (unknown | undefined)[] = configs.map(() => undefined);
  let next = 0;
  let opened = 0;
  let failed = false;

  async function openOneAfterAnother(): Promise<void> {
    while (next < configs.length && !failed) {
      const index = next++;
      const config = configs[index] as DatasetConfig;
      const total = configs.length;
      let source: Source | undefined;
      try {
        source = await openSource(config);
        const dataset = await openDataset(config, source, cacheControl, (arrays) =>
          progress?.({ opened, total, id: config.id, arrays }),
        );
        slots[index] = dataset;
        logFindings(dataset, log);
        progress?.({ opened: ++opened, total, id: config.id, arrays: dataset.snapshot().arrays.size });
      } catch (error) {
        await source?.close();
        if (!(error instanceof ZpublishError)) throw error;
        const described = new ZpublishError(error.code, `dataset '${config.id}': ${error.message}`, {
          details: error.details,
          cause: error,
        });
        if (skipInvalid) log.warn({ dataset: config.id, reason: error.message }, "dataset skipped");
        else {
          failures[index] = described;
          failed = true;
        }
      }
    }
  }

  await Promise.all(Array.from({ length: Math.min(OPEN_CONCURRENCY, configs.length) }, openOneAfterAnother));
  const failure = failures.find((error) => error !== undefined);
  if (failure !== undefined) {
    await Promise.all(slots.map((dataset) => dataset?.close()));
    throw failure;
  }
  return slots;
}

/** Logs what cannot be served, and what is odd; after a refresh only what was not said of the state before. */
function logFindings(dataset: OpenDataset, log: Log, before?: DatasetSnapshot): void {
  const { refused, warnings } = dataset.snapshot();
  const said = new Set(before?.warnings);
  for (const { path, reason } of before?.refused ?? []) said.add(`${path}\n${reason}`);
  for (const { path, reason } of refused) {
    if (!said.has(`${path}\n${reason}`)) log.warn({ dataset: dataset.id, path, reason }, "refused");
  }
  for (const warning of warnings) {
    if (!said.has(warning)) log.warn({ dataset: dataset.id }, warning);
  }
}
