import { setTimeout as delay } from "node:timers/promises";
import { type BoundedMap, createBoundedMap } from "../collections/bounded-map.js";
import { createSingleFlight } from "../collections/single-flight.js";
import type { DatasetSnapshot } from "../dataset/dataset.js";
import type { DatasetRegistry } from "../dataset/dataset-registry.js";
import { type ErrorData, errorToData, isDamage, messageOf, ZpublishError } from "../errors.js";
import { runCooperatively } from "../event-loop/cooperative-task.js";
import { joined } from "../event-loop/joined.js";
import { settlesWithin } from "../event-loop/settles-within.js";
import { workThrough } from "../event-loop/work-through.js";
import { FORMATS } from "../formats/formats.js";
import type { KeptIndexes } from "../formats/kept-indexes.js";
import type { Log } from "../observe/log.js";
import { packageVersion } from "../observe/versions.js";
import { readCoverage } from "../pages/coverage.js";
import { type DatasetSummary, summarySteps } from "../pages/dataset-summary.js";
import type { CoreContext } from "../plugins/plugin.js";
import type { Values } from "../values/values.js";
import { type AlikeFiles, findAlikeFiles } from "./alike.js";
import { type FileForm, readFileForm } from "./file-form.js";

/** What lists show of a dataset. Plain data, kept between runs. */
export type CatalogDescription =
  | { readonly summary: DatasetSummary; readonly location: string; readonly form: FileForm | undefined }
  /** A dataset that cannot be opened. The message may name files: it is for the log. */
  | { readonly problem: ErrorData };

/** Descriptions of datasets that need not be open. */
export type Catalog = ReturnType<typeof createCatalog>;

/** Parts that a catalog needs. */
export interface CatalogParts {
  readonly datasets: Pick<DatasetRegistry, "ids" | "opened" | "isDescribable" | "versionOf" | "lend">;
  readonly values: () => Pick<Values, "read">;
  /** Where descriptions are kept between runs. Default: they are read again. */
  readonly kept: KeptIndexes | undefined;
  /** Tells whether requests need the server more. */
  readonly isBusy: () => boolean;
  readonly log: Log;
}

/** A description, and what it was made of. */
interface Entry {
  /** Changes when the dataset does. */
  readonly version: string;
  readonly description: CatalogDescription;
  /** Milliseconds since process start: when the version was looked at last. */
  checkedAtMs: number;
  /** Milliseconds since process start from which on a failure that may pass is tried again. */
  readonly retryAtMs: number;
}

/** Datasets that are described without a page that shows them: the first ones. */
const MAX_READ_AHEAD = 1_000;
/** Descriptions in memory, about one kilobyte each. */
const MAX_ENTRIES = 4_000;
/** Datasets that are described at a time for pages. */
const CONCURRENCY = 4;
/** Milliseconds that summaries wait for descriptions of open datasets. */
const SUMMARIES_TIMEOUT_MS = 1_000;
/** Milliseconds that they wait for what was kept of others; what comes later is in the next answer. */
const RESTORE_TIMEOUT_MS = 20;
/** Milliseconds for which a description is shown without another look at its dataset. */
const FRESH_MS = 5_000;
/** Milliseconds after which a dataset that could not be read is tried again. */
const RETRY_MS = 60_000;
/** Milliseconds until the first dataset is read ahead: first requests come first. */
const BEGIN_AFTER_MS = 1_000;
/** Milliseconds between looks whether there are other datasets. */
const LOOK_MS = 5_000;
/** Milliseconds until the server is asked again whether it is busy. */
const BUSY_MS = 200;
/** Pause after each dataset that is read ahead, by the time it took: it takes at most a third of the time. */
const PAUSE_SHARE = 2;
const MAX_PAUSE_MS = 1_000;
/** Milliseconds that closing waits for a dataset that is being read. */
const CLOSE_TIMEOUT_MS = 5_000;

/** Raise the number if descriptions of the same datasets would be others. */
const STAMP = ["catalog 2", packageVersion, ...FORMATS.map(({ id, revision }) => `${id} ${revision}`)].join(
  "\n",
);

/**
 * Creates the catalog of datasets; nothing is read before its first call.
 * @param known Descriptions of a former catalog.
 */
export function createCatalog(
  { datasets, values, kept, isBusy, log }: CatalogParts,
  known: BoundedMap<Entry> = createBoundedMap({ maxEntries: MAX_ENTRIES }),
) {
  const flights = createSingleFlight<void>();

  async function versionOf(id: string): Promise<string | undefined> {
    const version = await datasets.versionOf(id);
    if (version !== undefined) return version;
    const snapshot = datasets.opened(id);
    return snapshot && `${snapshot.identity} ${snapshot.revision}`;
  }

  /** Describes a dataset unless its description is that of its version. Never throws. @param mayOpen Whether it may be opened for that. */
  async function update(id: string, mayOpen: boolean): Promise<void> {
    const before = known.get(id);
    const nowMs = performance.now();
    if (before !== undefined && nowMs < before.checkedAtMs + FRESH_MS) return;
    try {
      const version = await versionOf(id);
      if (version === undefined) known.delete(id);
      else if (before?.version === version && nowMs < before.retryAtMs) before.checkedAtMs = nowMs;
      else await describeAgain(id, version, mayOpen);
    } catch (error) {
      log.debug({ dataset: id, reason: messageOf(error) }, "dataset cannot be described");
    }
  }

  async function describeAgain(id: string, version: string, mayOpen: boolean): Promise<void> {
    const isKept = datasets.isDescribable(id, true);
    const name = `catalog\n${id}`;
    const stamp = `${STAMP}\n${version}`;
    const restored = isKept ? await kept?.getItems(name, [stamp]) : undefined;
    const found = restored?.[0] as CatalogDescription | undefined;
    const description = found ?? (mayOpen ? await describe(id) : undefined);
    if (description === undefined) return;
    const isFinal = !("problem" in description) || isDamage(description.problem);
    const checkedAtMs = performance.now();
    const retryAtMs = isFinal ? Number.POSITIVE_INFINITY : checkedAtMs + RETRY_MS;
    known.set(id, { version, description, checkedAtMs, retryAtMs });
    if (isFinal && isKept && restored === undefined) await kept?.setItems(name, stamp, [description]);
  }

  /** Reads a dataset. Undefined if there is none of that id any more. */
  async function describe(id: string): Promise<CatalogDescription | undefined> {
    try {
      const open = datasets.isDescribable(id, true) ? undefined : datasets.opened(id);
      return await (open === undefined ? datasets.lend(id, read) : read(open));
    } catch (error) {
      if (!(error instanceof ZpublishError)) throw error;
      return { problem: errorToData(error) };
    }
  }

  async function read(snapshot: DatasetSnapshot): Promise<CatalogDescription> {
    const coverage = await readCoverage(snapshot, values());
    const summary = await runCooperatively(summarySteps(snapshot, coverage));
    const form = datasets.isDescribable(snapshot.id, false) ? await readFileForm(snapshot) : undefined;
    return { summary, location: snapshot.location, form };
  }

  const updateOnce = (id: string) => flights.run(id, () => update(id, true));
  const restoreOnce = (id: string) => flights.run(`kept\n${id}`, () => update(id, false));
  const ahead = createReadAhead({ datasets, isBusy, log, updateOnce, known });

  return {
    known,
    alike: ahead.alike,
    /**
     * Describes datasets, as far as that takes no longer than a page may wait; the others are described meanwhile. Those that are not
     * open and cannot be described without that are left out.
     */
    async descriptions(
      ids: readonly string[],
      timeoutMs: number,
    ): Promise<ReadonlyMap<string, CatalogDescription>> {
      const asked = ids.filter((id) => datasets.opened(id) !== undefined || datasets.isDescribable(id, true));
      await settlesWithin(workThrough(asked, CONCURRENCY, updateOnce), timeoutMs);
      return new Map(
        asked.flatMap((id) => {
          const entry = known.get(id);
          return entry === undefined ? [] : [[id, entry.description] as const];
        }),
      );
    },
    /** Returns what is known of datasets, or was kept, without opening any. Those that are open are described first. */
    async summaries(
      ids: readonly string[],
      timeoutMs = SUMMARIES_TIMEOUT_MS,
    ): Promise<ReadonlyMap<string, DatasetSummary>> {
      const open = ids.filter((id) => datasets.opened(id) !== undefined);
      const others = ids.filter((id) => known.get(id) === undefined && datasets.isDescribable(id, false));
      const restoring = workThrough(kept === undefined ? [] : others, CONCURRENCY, restoreOnce);
      await settlesWithin(workThrough(open, CONCURRENCY, updateOnce), timeoutMs);
      await settlesWithin(restoring, RESTORE_TIMEOUT_MS);
      return new Map(
        ids.flatMap((id) => {
          const found = known.get(id)?.description;
          return found === undefined || "problem" in found ? [] : [[id, found.summary] as const];
        }),
      );
    },
    /** Tells whether a dataset without a description will have one. */
    isAwaited: (id: string) => datasets.isDescribable(id, true),
    begin: ahead.begin,
    close: ahead.close,
  };
}

/** What {@link createReadAhead} uses of a catalog. */
interface ReadAheadParts extends Pick<CatalogParts, "datasets" | "isBusy" | "log"> {
  readonly updateOnce: (id: string) => Promise<void>;
  readonly known: BoundedMap<Entry>;
}

/** Creates what describes the first datasets while the server has nothing else to do, and compares them. */
function createReadAhead({ datasets, isBusy, log, updateOnce, known }: ReadAheadParts) {
  const closing = new AbortController();
  let alike: readonly AlikeFiles[] = [];
  /** Commands that the log has. */
  const named = new Set<string>();
  /** Descriptions that were compared last. */
  let compared: ReadonlyMap<string, CatalogDescription> = new Map();

  async function pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: closing.signal, ref: false });
  }

  async function readFirst(ids: readonly string[]): Promise<void> {
    let count = 0;
    for (const id of ids) {
      if (count === MAX_READ_AHEAD) break;
      if (!datasets.isDescribable(id, false)) continue;
      count++;
      while (isBusy()) await pause(BUSY_MS);
      const beganMs = performance.now();
      await updateOnce(id);
      await pause(Math.min(MAX_PAUSE_MS, PAUSE_SHARE * (performance.now() - beganMs)));
    }
  }

  async function compare(): Promise<void> {
    const entries = [...known.entries()].map(([id, { description }]) => [id, description] as const);
    if (entries.length === compared.size && entries.every(([id, each]) => compared.get(id) === each)) return;
    compared = new Map(entries);
    alike = await findAlikeFiles(
      new Map(entries.flatMap(([id, each]) => ("problem" in each ? [] : [[id, each] as const]))),
    );
    for (const { ids, files, option, command } of alike) {
      if (named.has(command)) continue;
      named.add(command);
      const compared = ids.size < files ? ` (${ids.size} of them were compared)` : "";
      const message = `${files} files look like one dataset${compared}: serve them with ${option}`;
      log.info({ files, command: `zpublish serve ${command}` }, message);
    }
  }

  const readAlways = joined(async () => {
    await pause(BEGIN_AFTER_MS);
    for (let before: readonly string[] | undefined; ; await pause(LOOK_MS)) {
      const ids = datasets.ids();
      if (ids !== before) await readFirst(ids);
      before = ids;
      await compare();
    }
  });

  return {
    /** Files that look like one dataset, those of the largest dataset first. */
    alike: () => alike,
    /** Begins to describe datasets in the background. */
    begin() {
      readAlways().catch((error: unknown) => {
        if (!closing.signal.aborted) log.error({ err: error }, "datasets are not described any more");
      });
    },
    /** Ends it. What is read for pages ends by itself. */
    async close() {
      closing.abort();
      await settlesWithin(readAlways.running?.catch(() => undefined) ?? Promise.resolve(), CLOSE_TIMEOUT_MS);
    },
  };
}

/** Creates a catalog of those datasets that are open. */
export function catalogOfOpen({
  datasets,
  values,
  log,
}: Pick<CoreContext, "datasets" | "values" | "log">): Catalog {
  const none = { isDescribable: () => false, versionOf: async () => undefined, lend: async () => undefined };
  return createCatalog({
    ...{ datasets: { ids: datasets.ids, opened: datasets.opened, ...none }, log },
    ...{ values: () => values, kept: undefined, isBusy: () => false },
  });
}
