import { createBoundedMap } from "../collections/bounded-map.js";
import type { Datasets } from "../dataset/dataset.js";
import type { DatasetRegistry } from "../dataset/dataset-registry.js";
import { ZpublishError } from "../errors.js";
import { currentGrant, type Grant } from "../http/access/grants.js";

/** Bounds of the lists that are kept for clients that may not read all datasets: of one list, each entry is a pointer. */
const KEPT_LISTS = { maxEntries: 1_000, maxBytes: 32 * 2 ** 20 };
const POINTER_BYTES = 8;

/** The part of a list of ids that some clients may read. */
interface ReadableIds {
  readonly all: readonly string[];
  readonly ids: readonly string[];
  readonly configuredCount: number;
}

/** Datasets as the request sees them that is answered now. */
interface ReadableDatasets extends Datasets {
  /** Tells whether that request may read a dataset or version, whether or not there is one of that id. */
  mayRead(id: string): boolean;
}

/**
 * Limits datasets to those that the request may read that is answered now, so that no plugin can list or open others. Outside of requests,
 * all can be read.
 */
export function readableDatasets(datasets: DatasetRegistry): ReadableDatasets {
  const lists = createBoundedMap<ReadableIds>({
    ...KEPT_LISTS,
    byteLengthOf: ({ ids }) => ids.length * POINTER_BYTES,
  });

  function mayRead(id: string): boolean {
    const grant = currentGrant();
    return grant === undefined || grant.allows(datasets.findVersion(id)?.dataset ?? id);
  }

  function check(id: string): void {
    if (!mayRead(id)) throw forbidden(id);
  }

  /** The same list as long as that of all datasets is the same: documents are kept by it. */
  function readable(grant: Grant): ReadableIds {
    const all = datasets.ids();
    const known = lists.get(grant.key);
    if (known?.all === all) return known;
    const configured = all.slice(0, datasets.configuredCount).filter(grant.allows);
    const others = all.slice(datasets.configuredCount).filter(grant.allows);
    const made = { all, ids: [...configured, ...others], configuredCount: configured.length };
    lists.set(grant.key, made);
    return made;
  }

  return {
    mayRead,
    ids() {
      const grant = currentGrant();
      return grant === undefined ? datasets.ids() : readable(grant).ids;
    },
    get configuredCount() {
      const grant = currentGrant();
      return grant === undefined ? datasets.configuredCount : readable(grant).configuredCount;
    },
    offersFile: (id) => mayRead(id) && datasets.offersFile(id),
    failures() {
      const failures = datasets.failures();
      return currentGrant() === undefined ? failures : new Map([...failures].filter(([id]) => mayRead(id)));
    },
    opened: (id) => (mayRead(id) ? datasets.opened(id) : undefined),
    get(id) {
      check(id);
      return datasets.get(id);
    },
    open(id) {
      check(id);
      return datasets.open(id);
    },
    refreshBeforeNotFound: (snapshot) => datasets.refreshBeforeNotFound(snapshot),
  };
}

/** Creates the error of a dataset that a credential is not for. */
function forbidden(id: string): ZpublishError {
  return new ZpublishError("forbidden", `The token is not for dataset '${id}'`);
}
