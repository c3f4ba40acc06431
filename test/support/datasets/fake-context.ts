import { createNullCache } from "../../../src/cache/chunk-cache.js";
import { type DatasetSnapshot, severalDatasets } from "../../../src/dataset/dataset.js";
import { ZpublishError } from "../../../src/errors.js";
import { createDocument } from "../../../src/http/create-document.js";
import type { Route } from "../../../src/http/router.js";
import { createMaps } from "../../../src/maps/create-maps.js";
import { createLog } from "../../../src/observe/log.js";
import type { PreviewService } from "../../../src/pages/preview-service.js";
import { createSnapshotMemo } from "../../../src/plugins/documents.js";
import { createPageReplies } from "../../../src/plugins/page-replies.js";
import type { CoreContext } from "../../../src/plugins/plugin.js";
import { inlineValues } from "../inline-values.js";

export interface FakeParts {
  readonly snapshots?: readonly DatasetSnapshot[];
  readonly previews?: PreviewService["values"];
  readonly plugins?: readonly string[];
  readonly routes?: readonly Route[];
  readonly title?: string;
  readonly rootPath?: string;
}

/** Creates the context of a plugin without a server: given datasets and previews, no chunks. */
export function fakeContext(parts: FakeParts): CoreContext {
  const {
    snapshots = [],
    previews,
    plugins = ["dataset_info", "zarr"],
    routes = [],
    title = "zpublish",
    rootPath = "",
  } = parts;
  const byId = new Map(snapshots.map((snapshot) => [snapshot.id, snapshot]));
  const ids = Object.freeze([...byId.keys()]);
  function get(id: string): DatasetSnapshot {
    const snapshot = byId.get(id);
    if (snapshot === undefined) throw new ZpublishError("not-found", `Dataset '${id}' not found`);
    return snapshot;
  }
  function noChunks(): never {
    throw new ZpublishError("internal", "no chunks in this test");
  }
  // Descriptions leave out coordinates that cannot be decoded.
  function noValues(): never {
    throw new ZpublishError("unsupported", "no values in this test");
  }
  const context: CoreContext = {
    datasets: {
      ids: () => ids,
      configuredCount: ids.length,
      offersFile: () => false,
      failures: () => new Map(),
      opened: (id) => byId.get(id),
      get,
      open: get,
      refreshBeforeNotFound: async (snapshot) => snapshot,
    },
    chunks: {
      ...{ serve: noChunks, unseen: noChunks, serveFile: noChunks, read: noChunks, openReader: noChunks },
      stats: {
        answered: { hit: 0, pass: 0, miss: 0 },
        bytes: { hit: 0, pass: 0, miss: 0 },
        reads: { waiting: 0 },
      },
    },
    values: inlineValues({ makeChunk: noValues }),
    maps: createMaps({
      values: inlineValues({ makeChunk: noValues }),
      cache: { current: createNullCache() },
    }),
    previews: { values: previews ?? (async () => undefined) },
    plugins: () => plugins.map((name) => ({ name, version: "0.1.0", path: `zpublish/plugins/${name}` })),
    summaries: async () => new Map(),
    versions: { zpublish: "0.1.0", node: "20.20.2", LANG: "C.UTF-8" },
    createDocument,
    ...createSnapshotMemo(),
    routes: () => routes,
    title,
    datasetPath: severalDatasets,
    maxSelectionBytes: 2 ** 30,
    rootPath,
    log: createLog("silent"),
    get pages() {
      return pages;
    },
  };
  const pages = createPageReplies(context);
  return context;
}
