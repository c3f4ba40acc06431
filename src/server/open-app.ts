import type { ChunkService } from "../chunk/chunk-service.js";
import type { GivenDataset } from "../dataset/dataset-handle.js";
import { type DatasetRegistry, type OpenProgress, openDatasets } from "../dataset/dataset-registry.js";
import type { RefreshScheduler } from "../dataset/refresh-scheduler.js";
import { readTokenFile } from "../http/access/tokens.js";
import { type HttpApp, prepareApp } from "../http/http-app.js";
import { readTlsFiles } from "../http/listening/tls-files.js";
import type { Route } from "../http/routing/route.js";
import type { Log } from "../observe/log.js";
import { packageVersions } from "../observe/versions.js";
import { coreRoutes } from "../openapi/core-routes.js";
import type { PreviewService } from "../pages/preview/preview.js";
import type { Plugin } from "../plugins/plugin.js";
import { createPluginContext } from "../plugins/plugin-context.js";
import { createSnapshotMemo, type SnapshotMemo } from "../plugins/snapshot-memo.js";
import { withReadyDataset } from "../plugins/with-ready-dataset.js";
import { openSource } from "../source/open-source.js";
import { type AppPlugins, loadAppPlugins } from "./app-plugins.js";
import type { ServerConfig } from "./server-config.js";

/** What one configuration publishes, and how: replaced whole while the server that answers with it goes on. */
export interface App {
  readonly config: ServerConfig;
  readonly http: HttpApp;
  /** Those of `http`, which wait for a dataset to be ready, without that. */
  readonly routes: readonly Route[];
  readonly datasets: DatasetRegistry;
  readonly plugins: AppPlugins;
  /** What is kept for snapshots. */
  readonly memo: SnapshotMemo;
  /** Closes the datasets and plugins that no other app has. */
  close(): Promise<void>;
}

/** What apps have of the server. */
export interface AppParts {
  readonly log: Log;
  /** What is said of datasets. */
  readonly datasetLog: Log;
  readonly scheduler: RefreshScheduler;
  /** Services start when one first asks for them. */
  readonly chunks: () => ChunkService;
  readonly previews: () => PreviewService;
  /** A dataset is no longer what it was. */
  readonly onChange: () => void;
  readonly progress?: ((progress: OpenProgress) => void) | undefined;
}

/**
 * Opens datasets, loads plugins, and puts the routes together.
 * @param former The app whose place it takes: what is configured the same is taken over as it is.
 * @throws ZpublishError `invalid-config`, `invalid-metadata` or `source-unreadable`; nothing is left open then, and `former` is as
 * it was.
 */
export async function openApp(config: ServerConfig, parts: AppParts, former?: App): Promise<App> {
  const { log, scheduler } = parts;
  const closers: (() => Promise<void>)[] = [];
  async function close(): Promise<void> {
    for (const closer of closers.splice(0).toReversed()) {
      await closer().catch((error: unknown) => log.error({ err: error }, "closing failed"));
    }
  }

  try {
    const { tokenFile } = config.access;
    // Of a reload: what is in use is looked at again when the app is.
    if (config.access.tls !== null) await readTlsFiles(config.access.tls);
    const tokens = tokenFile === null ? undefined : await readTokenFile(tokenFile);
    const plugins = await loadAppPlugins(config.plugins, former?.plugins);
    closers.push(plugins.close);
    const datasets = await openDatasets(config.datasets, {
      cacheControl: config.cacheControl,
      maxChunkBytes: config.limits.maxChunkBytes,
      skipInvalid: config.skipInvalid,
      log: parts.datasetLog,
      progress: parts.progress,
      onChange: parts.onChange,
      scheduler,
      former: former?.datasets,
      openSource: (dataset: GivenDataset) =>
        dataset.source === undefined ? openSource(dataset.location) : Promise.resolve(dataset.source),
    });
    closers.push(datasets.close);
    const memo = memoOf(config, plugins.plugins, former);
    const routes = await routesOf(config, parts, { datasets, plugins: plugins.plugins, memo });
    const { access, observe } = config;
    const http: HttpApp = {
      routes: routes.map((route) => withReadyDataset(route, datasets)),
      rootPath: config.rootPath,
      corsOrigin: config.corsOrigin,
      cacheControl: config.cacheControl,
      tokens,
      trustedProxies: access.trustedProxies,
      requestIdHeader: observe.requestIdHeader,
      accessLogShare: observe.accessLogShare,
    };
    // What is wrong with it is to be found before it takes another's place.
    prepareApp(http);
    return { config, http, routes, datasets, plugins, memo, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function routesOf(
  config: ServerConfig,
  { chunks, previews, log }: AppParts,
  own: {
    readonly datasets: DatasetRegistry;
    readonly plugins: readonly Plugin[];
    readonly memo: SnapshotMemo;
  },
): Promise<readonly Route[]> {
  const routes: Route[] = [];
  const context = createPluginContext({
    ...own,
    chunks,
    previews,
    routes: () => routes,
    versions: packageVersions(),
    title: config.title,
    rootPath: config.rootPath,
    log,
  });
  routes.push(...coreRoutes(context));
  for (const plugin of own.plugins) routes.push(...(await plugin.routes(context)));
  return routes;
}

/** Documents are made of snapshots, and of what their plugins are told: where that is the same, they are. */
function memoOf(config: ServerConfig, plugins: readonly Plugin[], former: App | undefined): SnapshotMemo {
  const isSame =
    former !== undefined &&
    former.config.title === config.title &&
    former.config.rootPath === config.rootPath &&
    former.plugins.plugins.length === plugins.length &&
    former.plugins.plugins.every((plugin, index) => plugin === plugins[index]);
  return isSame ? former.memo : createSnapshotMemo();
}
