import type { ChunkService } from "../chunk/chunk-service.js";
import type { DatasetPath, Datasets } from "../dataset/dataset.js";
import { createDocument } from "../http/create-document.js";
import type { Route } from "../http/router.js";
import type { Log } from "../observe/log.js";
import type { PreviewService } from "../pages/preview-service.js";
import type { Plugin, PluginContext } from "./plugin.js";
import type { SnapshotMemo } from "./snapshot-memo.js";

/** Parts of the server that a plugin's context offers. */
export interface PluginParts {
  readonly datasets: Datasets;
  readonly chunks: () => ChunkService;
  readonly previews: () => PreviewService;
  readonly plugins: readonly Plugin[];
  readonly routes: () => readonly Route[];
  readonly memo: SnapshotMemo;
  readonly versions: Readonly<Record<string, string>>;
  readonly title: string;
  readonly datasetPath: DatasetPath;
  readonly rootPath: string;
  readonly log: Log;
}

/** Creates the context of plugins. Chunks and previews start at first use. */
export function createPluginContext(parts: PluginParts): PluginContext {
  const { memo, document } = parts.memo;
  return {
    datasets: parts.datasets,
    get chunks() {
      return parts.chunks();
    },
    get previews() {
      return parts.previews();
    },
    plugins: () => parts.plugins.map(({ name, version, path }) => ({ name, version, path })),
    versions: parts.versions,
    createDocument,
    document,
    memo,
    routes: parts.routes,
    title: parts.title,
    datasetPath: parts.datasetPath,
    rootPath: parts.rootPath,
    log: parts.log,
  };
}
