import type { DatasetConfig } from "../config/config.js";
import { messageOf, ZpublishError } from "../errors.js";
import { workThrough } from "../event-loop/work-through.js";
import type { Log } from "../observe/log.js";
import type { Source } from "../zarr/stored-tree.js";
import {
  createDatasetHandle,
  type DatasetHandle,
  errorOfDataset,
  type GivenDataset,
} from "./dataset-handle.js";
import type { OverviewOptions } from "./overviews/overviews.js";
import { createSlot, type Slot } from "./refresh-scheduler.js";

/** Datasets that are opened at a time: enough to keep a disk busy, few enough to bound memory and file handles. */
const OPEN_CONCURRENCY = 8;
/**
 * Number of datasets that are read at start, the first ones: as many as the page of the service describes. Reading all of
 * many would take minutes.
 */
const MAX_READ_AT_START = 100;
/** Failures after which no further dataset is opened: each may be a server that does not answer. */
const MAX_FAILURES = 20;

/** Progress of opening datasets. */
export interface OpenProgress {
  readonly opened: number;
  readonly total: number;
  /** The dataset that made progress. */
  readonly id: string;
  /** Number of its arrays that are read. */
  readonly arrays: number;
}

/** Options of {@link openAtStart}. */
export interface OpenOptions extends Omit<OverviewOptions, "openLevelReader"> {
  /** Returns the {@link OverviewOptions.openLevelReader} of a dataset. Default: level arrays cannot be read. */
  readonly levelReaderOf?: ((config: GivenDataset) => OverviewOptions["openLevelReader"]) | undefined;
  readonly cacheControl: string;
  /** True if a dataset that cannot be opened is a warning instead of an error. */
  readonly skipInvalid: boolean;
  readonly log: Log;
  readonly openSource: (config: GivenDataset) => Promise<Source>;
  readonly progress?: ((progress: OpenProgress) => void) | undefined;
  /** Returns the open dataset of a configuration, which the caller then owns too; undefined if it has to be opened. */
  readonly takeOver: (config: DatasetConfig) => Slot | undefined;
  /** Errors of providers, which are named before those of datasets. */
  readonly failures: readonly ZpublishError[];
}

/**
 * Opens the first datasets, and those whose configuration names arrays or dimensions, since the names may be wrong. The
 * others are only checked; the first request opens them. A dataset that is taken over stays as it is.
 * @returns Slots in the order configured.
 * @throws ZpublishError naming what cannot be opened, a line for each, unless `skipInvalid`; its code and details are those of the first
 * one in the order configured. `invalid-config` if two have one id.
 */
export async function openAtStart(configs: readonly DatasetConfig[], options: OpenOptions): Promise<Slot[]> {
  assertUniqueIds(configs);
  const { log, progress, skipInvalid, takeOver } = options;
  const openHandle = createOpener(options);
  const total = configs.length;
  const slots = configs.map(takeOver);
  const failures: (ZpublishError | undefined)[] = [];
  let opened = slots.filter((slot) => slot !== undefined).length;

  async function openOne(config: DatasetConfig, index: number): Promise<void> {
    const { id } = config;
    let dataset: DatasetHandle | undefined;
    try {
      dataset = await openHandle(config);
      slots[index] = createSlot(dataset);
      const isRead = index < MAX_READ_AT_START || namesParts(config);
      if (isRead) await dataset.open((arrays) => progress?.({ opened, total, id, arrays }));
      else await dataset.check();
      progress?.({ opened: ++opened, total, id, arrays: dataset.snapshot?.arrays.size ?? 0 });
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
      const failed = failures.filter((error) => error !== undefined).length;
      if (failed < MAX_FAILURES && slots[index] === undefined) await openOne(config, index);
    });
    const failed = [...options.failures, ...failures.filter((error) => error !== undefined)];
    const [failure] = failed;
    if (failure !== undefined)
      throw new ZpublishError(failure.code, failed.map(messageOf).join("\n"), {
        details: failure.details,
        cause: failure,
      });
  } catch (error) {
    const opened = slots.filter((slot) => slot !== undefined && --slot.owners === 0);
    await Promise.all(opened.map((slot) => slot?.dataset.close()));
    throw error;
  }
  return slots.filter((slot) => slot !== undefined);
}

/** Creates what opens the source of a dataset, and makes its handle. */
export function createOpener(
  options: Omit<OpenOptions, "takeOver" | "failures">,
): (config: GivenDataset) => Promise<DatasetHandle> {
  // By name, so that what is returned does not retain the others.
  const { cacheControl, log, maxChunkBytes, levelReaderOf, openSource } = options;
  return async (config) =>
    createDatasetHandle(config, config.source ?? (await openSource(config)), {
      cacheControl,
      log,
      maxChunkBytes,
      openLevelReader: levelReaderOf?.(config),
    });
}

/** Tells whether a configuration names arrays or dimensions, or offers the file, which can be checked only against the whole dataset. */
function namesParts({ encoding, encodings = {}, variables, file }: DatasetConfig): boolean {
  if (file === true) return true;
  const namesDimensions = ({ chunks }: DatasetConfig["encoding"]) =>
    chunks !== undefined && !Array.isArray(chunks);
  return Object.keys(variables).length > 0 || [encoding, ...Object.values(encodings)].some(namesDimensions);
}

function assertUniqueIds(configs: readonly DatasetConfig[]): void {
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
