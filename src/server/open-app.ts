import type { ChunkService } from "../chunk/chunk-service.js";
import type { GivenDataset } from "../dataset/dataset-handle.js";
import { datasetPathOf } from "../dataset/dataset-path.js";
import { type DatasetRegistry, type OpenProgress, openDatasets } from "../dataset/dataset-registry.js";
import type { OverviewOptions } from "../dataset/overviews/create-overviews.js";
import type { RefreshScheduler } from "../dataset/refresh-scheduler.js";
import { createKeptIndexes } from "../formats/kept-indexes.js";
import { readTokenFile } from "../http/access/tokens.js";
import { type HttpApp, prepareApp } from "../http/handle-request.js";
import { readTlsFiles } from "../http/listening/listener.js";
import type { Reply, RouteRequest } from "../http/reply.js";
import type { Route } from "../http/router.js";
import { openJoin } from "../join/open-join.js";
import type { Log } from "../observe/log.js";
import { packageVersions } from "../observe/versions.js";
import { type OpenSourceOptions, openSource } from "../open/open-source.js";
import { coreRoutes } from "../openapi/core-routes.js";
import type { PreviewService } from "../pages/preview/preview.js";
import type { Plugin } from "../plugins/plugin.js";
import { createPluginContext } from "../plugins/plugin-context.js";
import { createSnapshotMemo, type SnapshotMemo } from "../plugins/snapshot-memo.js";
import type { Freshness } from "../stores/object-versions.js";
import type { Source } from "../zarr/stored-tree.js";
import { type AppPlugins, loadAppPlugins } from "./app-plugins.js";
import { providersOf } from "./app-providers.js";
import { separateFolders } from "./separate-folders.js";
import type { ServerConfig } from "./server-config.js";
import { assertSingle, singleRoutes } from "./single-routes.js";

/** The datasets, plugins and routes of one configuration. A reload replaces the app as a whole while the server runs. */
export interface App {
  readonly config: ServerConfig;
  readonly http: HttpApp;
  /** The routes of `http`, but without waiting for a dataset to be ready. */
  readonly routes: readonly Route[];
  readonly datasets: DatasetRegistry;
  readonly plugins: AppPlugins;
  /** Values and documents of snapshots. */
  readonly memo: SnapshotMemo;
  /** Closes the datasets and plugins that no other app uses. */
  close(): Promise<void>;
}

/** Parts of the server that its apps use. */
export interface AppParts {
  readonly log: Log;
  /** Log of messages about datasets. */
  readonly datasetLog: Log;
  readonly scheduler: RefreshScheduler;
  /** Starts the service at the first call, as `previews` does. */
  readonly chunks: () => ChunkService;
  readonly previews: () => PreviewService;
  /** Called when a dataset has changed. */
  readonly onChange: () => void;
  readonly progress?: ((progress: OpenProgress) => void) | undefined;
}

/**
 * Opens datasets, loads plugins, and collects the routes.
 * @param former The app to be replaced. Datasets and plugins whose configuration is the same are taken over.
 * @throws ZpublishError `invalid-config`, `invalid-metadata` or `source-unreadable`. Nothing stays open then, and `former` is
 * unchanged.
 */
export async function openApp(asked: ServerConfig, parts: AppParts, former?: App): Promise<App> {
  const config = await separateFolders(asked);
  const { log, scheduler } = parts;
  const closers: (() => Promise<void>)[] = [];
  async function close(): Promise<void> {
    for (const closer of closers.splice(0).toReversed()) {
      await closer().catch((error: unknown) => log.error({ err: error }, "closing failed"));
    }
  }

  try {
    const { tokenFile } = config.access;
    // Only checked here: the server reads them again when the app is used.
    if (config.access.tls !== null) await readTlsFiles(config.access.tls);
    const tokens = tokenFile === null ? undefined : await readTokenFile(tokenFile);
    const plugins = await loadAppPlugins(config.plugins, former?.plugins);
    closers.push(plugins.close);
    const kept = config.cache === null ? undefined : createKeptIndexes(config.cache.directory);
    if (config.single) assertSingle(config, plugins.plugins);
    const datasets = await openDatasets(config.datasets, {
      cacheControl: config.cacheControl,
      maxChunkBytes: config.limits.maxChunkBytes,
      levelReaderOf: (dataset) => levelReader(freshnessOf(dataset, config.refreshSeconds), parts.chunks),
      skipInvalid: config.skipInvalid,
      log: parts.datasetLog,
      progress: parts.progress,
      onChange: parts.onChange,
      scheduler,
      providers: providersOf(config, plugins.plugins, parts.datasetLog),
      maxOpenDatasets: config.limits.maxOpenDatasets,
      former: former?.datasets,
      openSource: async (dataset: GivenDataset) =>
        dataset.source ?? openLocation(dataset, { ...sourceOptions(dataset, config), kept }),
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
    // Finds errors before the app replaces another.
    prepareApp(http);
    return { config, http, routes, datasets, plugins, memo, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function openLocation({ location, join }: GivenDataset, options: OpenSourceOptions): Promise<Source> {
  return join === undefined ? openSource(location, options) : openJoin(location, join, options);
}

function sourceOptions(dataset: GivenDataset, { refreshSeconds }: ServerConfig): OpenSourceOptions {
  const { stores, references, variables } = dataset;
  return {
    stores,
    allow: references?.allow,
    names: Object.keys(variables),
    freshness: freshnessOf(dataset, refreshSeconds),
  };
}

function freshnessOf({ freshness, immutable }: GivenDataset, refreshSeconds: number): Freshness {
  const believed = freshness ?? (immutable ? "immutable" : refreshSeconds);
  return typeof believed === "number" ? { seconds: believed } : believed;
}

/** A separate function: datasets that another app takes over retain it, and nothing else of this one. */
function levelReader(
  freshness: Freshness,
  chunks: AppParts["chunks"],
): NonNullable<OverviewOptions["openLevelReader"]> {
  return (snapshot, array) => chunks().openReader(snapshot, array, freshness);
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
    datasetPath: datasetPathOf(config),
    title: config.title,
    rootPath: config.rootPath,
    log,
  });
  const added = [coreRoutes(context)];
  for (const plugin of own.plugins) added.push([...((await plugin.routes?.(context)) ?? [])]);
  const [single] = config.single ? config.datasets : [];
  routes.push(...(single === undefined ? added.flat() : singleRoutes(added.flat(), single.id)));
  return routes;
}

/**
 * Wraps a route so that its handler finds the dataset of `dataset_id` open and refreshed, and is called later if that takes time.
 * The handler answers for a dataset that does not exist. A dataset whose source has changed since is refreshed before it answers
 * again: the index of a file that was replaced finds nothing in the new one.
 */
function withReadyDataset(route: Route, datasets: DatasetRegistry): Route {
  if (!route.path.includes("{dataset_id}") && route.given?.dataset_id === undefined) return route;
  const { handler } = route;

  async function refreshStale(request: RouteRequest, pending: Promise<void> | undefined): Promise<Reply> {
    await pending;
    const snapshot = datasets.get(request.params.dataset_id as string);
    if (snapshot.identity === request.staleIdentity) await datasets.refreshBeforeNotFound(snapshot);
    return handler(request);
  }

  return {
    ...route,
    handler(request) {
      const id = request.params.dataset_id as string;
      const pending = datasets.ready(id);
      if (request.staleIdentity !== undefined) return refreshStale(request, pending);
      return pending === undefined ? handler(request) : pending.then(() => handler(request));
    },
  };
}

/** Takes over the former memo if title, paths and plugins are the same: documents depend on nothing else but snapshots. */
function memoOf(config: ServerConfig, plugins: readonly Plugin[], former: App | undefined): SnapshotMemo {
  const isSame =
    former !== undefined &&
    former.config.title === config.title &&
    former.config.rootPath === config.rootPath &&
    former.config.single === config.single &&
    former.plugins.plugins.length === plugins.length &&
    former.plugins.plugins.every((plugin, index) => plugin === plugins[index]);
  return isSame ? former.memo : createSnapshotMemo();
}
