import type { DatasetConfig } from "../config/config.js";
import { messageOf, ZpublishError } from "../errors.js";
import type { Log } from "../observe/log.js";
import type { Source } from "../source/source.js";
import { workThrough } from "../source/work-through.js";
import { createAbsenceLooks } from "./absence-looks.js";
import type { Slot } from "./dataset-watch.js";
import { createKeptDataset, errorOfDataset, type KeptDataset } from "./kept-dataset.js";

/** Datasets opened at a time: enough to keep a disk busy, few enough to keep memory and file handles bounded. */
const OPEN_CONCURRENCY = 8;
/**
 * Datasets that are read whole at start, the first ones: as many as the page of the service describes. Of any number, all
 * would take minutes.
 */
const MAX_READ_AT_START = 100;

/** How opening gets on. */
export interface OpenProgress {
  readonly opened: number;
  readonly total: number;
  /** The dataset that moved. */
  readonly id: string;
  /** Arrays of it read so far. */
  readonly arrays: number;
}

export interface OpenOptions {
  readonly cacheControl: string;
  /** As in `SnapshotOptions`. */
  readonly maxChunkBytes?: number | undefined;
  /** A dataset that cannot be opened is a warning instead of an error. */
  readonly skipInvalid: boolean;
  readonly log: Log;
  readonly openSource: (config: DatasetConfig) => Promise<Source>;
  readonly progress?: ((progress: OpenProgress) => void) | undefined;
  /** Called whenever a dataset is no longer what it was. */
  readonly onChange?: (() => void) | undefined;
  /** A dataset of that configuration that is there already, now also the caller's; undefined where it is to be opened. */
  readonly takeOver: (config: DatasetConfig) => Slot | undefined;
}

/**
 * Opens the first datasets, and those whose configuration names arrays or dimensions, since it may be wrong. Of the
 * others it is made sure that they can be opened; they are when somebody asks for them. What is taken over is left as it is.
 * @returns In the order configured.
 * @throws ZpublishError of the first, in the order configured, that cannot be opened, unless `skipInvalid`; `invalid-config` where
 * two have one id.
 */
export async function openAtStart(configs: readonly DatasetConfig[], options: OpenOptions): Promise<Slot[]> {
  refuseDuplicateIds(configs);
  const { log, openSource, progress, skipInvalid, takeOver } = options;
  const total = configs.length;
  const slots = configs.map(takeOver);
  const failures: (unknown | undefined)[] = [];
  let opened = slots.filter((slot) => slot !== undefined).length;

  async function openOne(config: DatasetConfig, index: number): Promise<void> {
    const { id } = config;
    let dataset: KeptDataset | undefined;
    try {
      dataset = createKeptDataset(config, await openSource(config), options);
      slots[index] = createSlot(dataset);
      const isRead = index < MAX_READ_AT_START || namesParts(config);
      if (isRead) await dataset.open((arrays) => progress?.({ opened, total, id, arrays }));
      else await dataset.check();
      progress?.({ opened: ++opened, total, id, arrays: dataset.snapshot()?.arrays.size ?? 0 });
    } catch (error) {
      slots[index] = undefined;
      await dataset?.close();
      if (!(error instanceof ZpublishError)) throw error;
      if (skipInvalid) log.warn({ dataset: id, reason: messageOf(error) }, "dataset skipped");
      else failures[index] = errorOfDataset(id, error);
    }
  }

  try {
    await workThrough(configs.entries(), OPEN_CONCURRENCY, async ([index, config]) => {
      if (failures.length === 0 && slots[index] === undefined) await openOne(config, index);
    });
    const failure = failures.find((error) => error !== undefined);
    if (failure !== undefined) throw failure;
  } catch (error) {
    const opened = slots.filter((slot) => slot !== undefined && --slot.owners === 0);
    await Promise.all(opened.map((slot) => slot?.dataset.close()));
    throw error;
  }
  return slots.filter((slot) => slot !== undefined);
}

function createSlot(dataset: KeptDataset): Slot {
  const absence = createAbsenceLooks(dataset);
  return { dataset, owners: 1, askedIn: 0, lookedIn: 0, isFresh: false, preparing: undefined, absence };
}

/** Whether a configuration says something that only a dataset as a whole can tell to be wrong. */
function namesParts({ encoding, variables }: DatasetConfig): boolean {
  const { chunks } = encoding;
  return Object.keys(variables).length > 0 || (chunks !== undefined && !Array.isArray(chunks));
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
