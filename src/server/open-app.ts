import { basename } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { type Catalog, createCatalog } from "../catalog/catalog.js";
import type { ChunkService } from "../chunk/chunk-service.js";
import type { CollectionConfig, Config, PluginConfig } from "../config/config.js";
import { configError, resolveRoot } from "../config/value-schemas.js";
import { createCollectionProvider } from "../dataset/collection/collection-provider.js";
import { datasetPathOf } from "../dataset/dataset.js";
import type { GivenDataset } from "../dataset/dataset-handle.js";
import type { DatasetProvider } from "../dataset/dataset-provider.js";
import { type DatasetRegistry, type OpenProgress, openDatasets } from "../dataset/dataset-registry.js";
import { createDataTree } from "../dataset/in-memory-tree.js";
import type { OverviewOptions } from "../dataset/overviews/overviews.js";
import type { ProviderSpec } from "../dataset/providers/provider-handle.js";
import type { RefreshScheduler } from "../dataset/refresh-scheduler.js";
import { messageOf, ZpublishError } from "../errors.js";
import type { MaybePromise } from "../event-loop/maybe-promise.js";
import { workThrough } from "../event-loop/work-through.js";
import { assertRoot, isCollectionRoot } from "../find/collection-root.js";
import { createKeptIndexes } from "../formats/kept-indexes.js";
import { createCredentials } from "../http/access/credentials.js";
import { currentGrant } from "../http/access/grants.js";
import { createIssuer, type Issuer } from "../http/access/issuer.js";
import { sessionRoute } from "../http/access/session-route.js";
import { readSigningKey, readTokenFile } from "../http/access/tokens.js";
import { createDocument } from "../http/create-document.js";
import { type HttpApp, prepareApp } from "../http/handle-request.js";
import { readTlsFiles } from "../http/listening/listener.js";
import type { Route } from "../http/router.js";
import { openJoin } from "../join/open-join.js";
import type { Maps } from "../maps/maps.js";
import type { Log } from "../observe/log.js";
import { packageVersions } from "../observe/versions.js";
import { type OpenSourceOptions, openSource } from "../open/open-source.js";
import { coreRoutes } from "../openapi/core-routes.js";
import type { PreviewService } from "../pages/preview-service.js";
import { createSnapshotMemo, type SnapshotMemo } from "../plugins/documents.js";
import { isGivenPlugin, loadPlugins } from "../plugins/load-plugins.js";
import { createPageReplies } from "../plugins/page-replies.js";
import type { CoreContext, DatasetPages, Plugin, PluginDatasets } from "../plugins/plugin.js";
import { createGivenProvider, createPluginProvider } from "../plugins/plugin-provider.js";
import type { StoreSettings } from "../stores/byte-store.js";
import type { Freshness } from "../stores/object-versions.js";
import type { Values } from "../values/values.js";
import type { Source } from "../zarr/stored-tree.js";
import { createErrorPage } from "./error-page.js";
import { readableDatasets } from "./readable-datasets.js";

/** The plugins of an app. Successive apps share plugins whose configuration is the same. */
interface AppPlugins {
  /** In the order configured. */
  readonly plugins: readonly Plugin[];
  /** Returns the plugin of a configuration; undefined if it has to be loaded. */
  pluginOf(config: PluginConfig | Plugin): Plugin | undefined;
  /** Closes the plugins that no other app uses. @throws The first error of a plugin, after all are closed. */
  close(): Promise<void>;
}

/**
 * Number of apps per plugin. It counts objects, because a module may return the same object each time it is loaded.
 */
const owners = new WeakMap<Plugin, number>();

/**
 * Loads the plugins of an app, in order.
 * @param former Plugins of the app to be replaced. Those whose configuration is the same are taken over with their state.
 * @throws ZpublishError `invalid-config`, as `loadPlugins`.
 */
async function loadAppPlugins(
  configs: readonly (PluginConfig | Plugin)[],
  former: AppPlugins | undefined,
): Promise<AppPlugins> {
  const plugins = await loadPlugins(takenOver(configs, former));
  for (const plugin of plugins) owners.set(plugin, (owners.get(plugin) ?? 0) + 1);

  async function release(plugin: Plugin): Promise<void> {
    const left = (owners.get(plugin) ?? 1) - 1;
    owners.set(plugin, left);
    if (left === 0) await plugin.close?.();
  }

  return {
    plugins,
    pluginOf(config) {
      return plugins[configs.findIndex((other) => isSamePlugin(config, other))];
    },
    async close() {
      const closed = await Promise.allSettled(plugins.map(release));
      for (const result of closed) if (result.status === "rejected") throw result.reason;
    },
  };
}

/** Replaces configurations by plugins of `former`. Separate, so that the returned closures do not retain `former` and all before. */
function takenOver(
  configs: readonly (PluginConfig | Plugin)[],
  former: AppPlugins | undefined,
): readonly (PluginConfig | Plugin)[] {
  return configs.map((config) => former?.pluginOf(config) ?? config);
}

/** Compares plugins by identity, and configurations by value. */
function isSamePlugin(one: PluginConfig | Plugin, other: PluginConfig | Plugin): boolean {
  return one === other || (!isGivenPlugin(one) && !isGivenPlugin(other) && isDeepStrictEqual(one, other));
}

/** Returns the providers of a configuration: collections, then those of plugins, then given ones, each in order. */
function providersOf(config: ServerConfig, plugins: readonly Plugin[], log: Log): ProviderSpec[] {
  const context = { log, versions: packageVersions(), createDataTree };
  const names = new Set(plugins.map(({ name }) => name));
  const collections = config.collections.map((collection) => {
    const name = uniqueName(collection.name || basename(collection.root) || "collection", names);
    return {
      owner: createCollectionProvider,
      config: collection,
      create: () => openCollection(collection, name, config.skipInvalid ? log : undefined),
    };
  });
  const published = plugins
    .filter(({ datasets }) => datasets !== undefined)
    .map((plugin) => ({
      owner: plugin,
      config: config.datasetDefaults,
      create: () => createPluginProvider(plugin, context, config.datasetDefaults),
    }));
  const given = (config.providers ?? []).map(({ name, datasets }) => ({
    owner: datasets,
    config: [name, config.datasetDefaults],
    create: () => createGivenProvider(name, datasets, `provider '${name}'`, config.datasetDefaults),
  }));
  return [...collections, ...published, ...given];
}

function uniqueName(wanted: string, names: Set<string>): string {
  let name = wanted;
  for (let number = 2; names.has(name); number++) name = `${wanted}-${number}`;
  names.add(name);
  return name;
}

/**
 * @param log Takes why the root cannot be listed, so that the server starts nevertheless. Default: it does not.
 * @throws ZpublishError naming the collection
 */
async function openCollection(
  config: CollectionConfig,
  name: string,
  log: Log | undefined,
): Promise<DatasetProvider> {
  try {
    const provider = createCollectionProvider(config, name);
    await assertRoot(config, config.groups === true).catch((error: unknown) => {
      if (log === undefined) throw error;
      log.warn({ provider: name, reason: messageOf(error) }, "collection cannot be listed yet");
    });
    return provider;
  } catch (error) {
    if (!(error instanceof ZpublishError)) throw error;
    const problem = `collection ${config.root}: ${error.message}`;
    throw new ZpublishError(error.code, problem, { details: error.details, cause: error });
  }
}

/** Locations that are looked at at a time. */
const LOOKS_AT_ONCE = 8;

/**
 * Makes collections of those datasets of the command line whose location is a folder of files and stores. Only a look can tell them
 * from Zarr stores. One that cannot be looked at stays a dataset, whose opening then fails.
 * @param isFolder Tells if a location is such a folder.
 */
export async function separateFolders(
  config: ServerConfig,
  isFolder: (
    location: string,
    stores: readonly StoreSettings[] | undefined,
  ) => Promise<boolean> = isCollectionRoot,
): Promise<ServerConfig> {
  const folders = new Map<GivenDataset, CollectionConfig>();
  const asked = config.datasets.filter(({ asCollection }) => asCollection !== undefined);
  await workThrough(asked, LOOKS_AT_ONCE, async (dataset) => {
    const collection = collectionOf(dataset);
    if (collection === undefined) return;
    if (await isFolder(dataset.location, dataset.stores).catch(() => false)) folders.set(dataset, collection);
  });
  if (folders.size === 0) return config;
  return {
    ...config,
    datasets: config.datasets.filter((dataset) => !folders.has(dataset)),
    collections: [...config.collections, ...asked.flatMap((dataset) => folders.get(dataset) ?? [])],
  };
}

function collectionOf({
  id: _id,
  location,
  asCollection,
  ...served
}: GivenDataset): CollectionConfig | undefined {
  const root = resolveRoot(location, "/");
  return root === undefined || asCollection === undefined
    ? undefined
    : { ...served, name: asCollection, root };
}

/** Beginning of the templates of a dataset's routes. */
const DATASET = "/datasets/{dataset_id}";
/** Names in an error message; of more, there is a count. */
const MAX_NAMED = 5;
/** Route that lists the versions of a dataset. */
const VERSIONS = `${DATASET}/versions`;
/** Route that lists datasets; clients of the list would look for them below it. */
const LIST = "/datasets";

/**
 * Returns the routes of a server that publishes one dataset alone: those below `/datasets/{dataset_id}` are at the root, and their
 * handlers get the dataset's id as before. The dataset's page takes the place of the home page. Xpublish's `SingleDatasetRest` has
 * the same paths, and no list of datasets either.
 */
function singleRoutes(routes: readonly Route[], id: string): Route[] {
  const moved = routes
    // The root has no form without its slash, from which this one redirects. Versions would be further datasets.
    .filter(({ path }) => isOfDataset(path) && path !== DATASET && path !== VERSIONS)
    .map((route) => atRoot(route, id));
  const hasPage = moved.some(({ path }) => path === "/");
  const kept = routes.filter(({ path }) => !isOfDataset(path) && path !== LIST && !(path === "/" && hasPage));
  return [...kept, ...moved];
}

function isOfDataset(path: string): boolean {
  return path === DATASET || path.startsWith(`${DATASET}/`);
}

function atRoot(route: Route, id: string): Route {
  const path = route.path.slice(DATASET.length);
  return { ...route, path, given: { ...route.given, dataset_id: id } };
}

/** Path of a store that has the name of its dataset with `.zarr`; the same if the dataset is published alone. */
const STORE_NAME = /^\/datasets\/([^/]+)\.zarr(\/.*)?$/;
const SINGLE_STORE_NAME = /^\/([^/]+)\.zarr(\/.*)?$/;

/**
 * Creates the alias `/datasets/{id}.zarr` of the path of a store, `/datasets/{id}/zarr`: from that ending, xarray knows the engine.
 * Datasets come first: if one has the id `a.zarr`, `/datasets/a.zarr` is that dataset, and `/datasets/a.zarr.zarr` its store.
 */
function storeAlias(
  datasets: Pick<DatasetRegistry, "has" | "findVersion" | "listAgain">,
  config: Pick<ServerConfig, "single">,
  mayRead: (id: string) => boolean = () => true,
): NonNullable<HttpApp["alias"]> {
  function find([, rawId = "", rest = ""]: readonly string[]): MaybePromise<string | undefined> {
    const path = `${datasetPathOf(config)(rawId)}zarr${rest}`;
    const id = decoded(rawId);
    // The router says what is wrong with it.
    if (id === undefined) return path;
    const named = `${id}.zarr`;
    if ((datasets.has(named) && mayRead(named)) || (config.single && !datasets.has(id))) return undefined;
    // Both may be newer than the last lists, which is of no interest to clients that may not read it.
    const isKnown = datasets.has(id) || datasets.findVersion(id) !== undefined || !mayRead(id);
    const listing = isKnown ? undefined : datasets.listAgain(id);
    return listing === undefined ? path : listing.then(() => (datasets.has(named) ? undefined : path));
  }
  return { pattern: config.single ? SINGLE_STORE_NAME : STORE_NAME, find };
}

/** Percent-decodes a segment of a path; undefined if it is no valid one. */
function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/**
 * Checks that a configuration has one dataset, and nothing that could publish others.
 * @throws ZpublishError `invalid-config`
 */
function assertSingle(
  { datasets, collections, providers = [] }: Pick<ServerConfig, "datasets" | "collections" | "providers">,
  plugins: readonly Plugin[],
): void {
  const published = plugins.filter((plugin) => plugin.datasets !== undefined);
  const received = [
    ...providers.map(({ name }) => `datasets of the provider '${name}'`),
    ...published.map(({ name }) => `datasets of the plugin '${name}'`),
    ...collections.map(({ name }) => (name === "" ? "a collection" : `the collection '${name}'`)),
    ...datasets.map(({ id }) => `'${id}'`),
  ];
  if (received.length === 1 && datasets.length === 1) return;
  const most = received.slice(0, MAX_NAMED).join(", ");
  const rest = received.length > MAX_NAMED ? ` and ${received.length - MAX_NAMED} more` : "";
  throw configError([`single: expected one dataset and nothing else, received ${most || "none"}${rest}`]);
}

/** The datasets, plugins and routes of one configuration. A reload replaces the app as a whole while the server runs. */
export interface App {
  readonly config: ServerConfig;
  readonly http: HttpApp;
  readonly datasets: DatasetRegistry;
  /** Descriptions of datasets. */
  readonly catalog: Catalog;
  readonly plugins: AppPlugins;
  /** Undefined unless JWTs let clients read. */
  readonly issuer: Issuer | undefined;
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
  readonly values: () => Values;
  readonly maps: () => Maps;
  /** Tells whether requests need the server more than what it does in the background. */
  readonly isBusy: () => boolean;
  /** Signs tickets unless the configuration names a key. */
  readonly signingKey: string;
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
    // Only checked here: the server reads them again when the app is used.
    if (config.access.tls !== null) await readTlsFiles(config.access.tls);
    const { issuer, credentials } = await openCredentials(config, parts, former);
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
      scheduler,
      providers: providersOf(config, plugins.plugins, parts.datasetLog),
      maxOpenDatasets: config.limits.maxOpenDatasets,
      former: former?.datasets,
      openSource: async (dataset: GivenDataset) =>
        dataset.source ?? openLocation(dataset, { ...sourceOptions(dataset, config), kept }),
    });
    closers.push(datasets.close);
    const catalog = createCatalog(
      { datasets, values: parts.values, kept, isBusy: parts.isBusy, log: parts.datasetLog },
      former?.catalog.known,
    );
    closers.push(catalog.close);
    const memo = memoOf(config, plugins.plugins, former);
    const readable = credentials && readableDatasets(datasets);
    const { access, observe } = config;
    const http: HttpApp = {
      routes: await routesOf(config, parts, {
        ...{ datasets: readable ?? datasets, catalog, plugins: plugins.plugins, memo, credentials },
        mayRead: readable?.mayRead,
      }),
      datasets: { ready: datasets.ready, mayRead: readable?.mayRead },
      alias: storeAlias(datasets, config, readable?.mayRead),
      rootPath: config.rootPath,
      corsOrigin: config.corsOrigin,
      cacheControl: config.cacheControl,
      credentials,
      trustedProxies: access.trustedProxies,
      requestIdHeader: observe.requestIdHeader,
      accessLogShare: observe.accessLogShare,
      errorPage: createErrorPage(
        config.title,
        datasetPathOf(config),
        (id) => (readable ?? datasets).opened(id) !== undefined,
      ),
    };
    // Finds errors before the app replaces another.
    prepareApp(http);
    return { config, http, datasets, catalog, plugins, issuer, memo, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Opens what lets clients read; undefined if everybody may read everything. Of a former issuer, the keys are kept. */
async function openCredentials(
  { access: { tokenFile, jwt, signingKeyFile } }: ServerConfig,
  { log, signingKey }: AppParts,
  former: App | undefined,
): Promise<Pick<App, "issuer"> & Pick<HttpApp, "credentials">> {
  if (tokenFile === null && jwt === null) return { issuer: undefined, credentials: undefined };
  const kept = isDeepStrictEqual(former?.issuer?.options, jwt) ? former?.issuer : undefined;
  const issuer = kept ?? (jwt === null ? undefined : createIssuer(jwt, log));
  const credentials = createCredentials({
    tokens: tokenFile === null ? [] : await readTokenFile(tokenFile),
    issuer,
    signingKey: signingKeyFile === null ? signingKey : await readSigningKey(signingKeyFile),
  });
  return { issuer, credentials };
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
  { chunks, previews, values, maps, log }: AppParts,
  own: {
    readonly datasets: CoreContext["datasets"];
    readonly catalog: Catalog;
    readonly plugins: readonly Plugin[];
    readonly memo: SnapshotMemo;
    readonly credentials: HttpApp["credentials"];
    readonly mayRead: ((id: string) => boolean) | undefined;
  },
): Promise<readonly Route[]> {
  const { mayRead = () => true } = own;
  const routes: Route[] = [];
  let pages: DatasetPages | undefined;
  const context: CoreContext = {
    ...own.memo,
    datasets: own.datasets,
    // All start at first use.
    get chunks() {
      return chunks();
    },
    get previews() {
      return previews();
    },
    get values() {
      return values();
    },
    get maps() {
      return maps();
    },
    get pages() {
      pages ??= createPageReplies(context);
      return pages;
    },
    summaries: (ids, timeoutMs) => own.catalog.summaries(ids.filter(mayRead), timeoutMs),
    plugins: () => own.plugins.map(({ name, version, path }) => ({ name, version, path })),
    versions: packageVersions(),
    createDocument,
    routes: () => routes,
    datasetPath: datasetPathOf(config),
    maxSelectionBytes: config.limits.maxSelectionBytes,
    title: config.title,
    rootPath: config.rootPath,
    log,
  };
  const { catalog, credentials } = own;
  // A hint to the operator, which names files.
  const alike = () => (currentGrant() === undefined ? catalog.alike() : []);
  const added = [
    coreRoutes(context, { catalog: { ...catalog, alike }, needsToken: credentials !== undefined }),
    credentials === undefined ? [] : [sessionRoute(credentials)],
  ];
  for (const plugin of own.plugins) added.push([...((await plugin.routes?.(context)) ?? [])]);
  const [single] = config.single ? config.datasets : [];
  routes.push(...(single === undefined ? added.flat() : singleRoutes(added.flat(), single.id)));
  return routes;
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

/** A configuration in which datasets and plugins may be objects already, as the library's users have them. */
export interface ServerConfig extends Omit<Config, "datasets" | "plugins" | "processes"> {
  readonly datasets: readonly GivenDataset[];
  readonly plugins: readonly (PluginConfig | Plugin)[];
  /** Further datasets that come and go. Their ids begin with the name and `~`. Default: none. */
  readonly providers?: readonly { readonly name: string; readonly datasets: PluginDatasets }[];
}
