import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Config } from "../config/config.js";
import { keepRestartOnlyOptions, type OptionKey } from "../config/options.js";
import { datasetPathOf } from "../dataset/dataset.js";
import type { OpenProgress } from "../dataset/dataset-registry.js";
import { createRefreshScheduler } from "../dataset/refresh-scheduler.js";
import { ZpublishError } from "../errors.js";
import { settlesWithin } from "../event-loop/settles-within.js";
import type { Log } from "../observe/log.js";
import type { MetricFamily } from "../observe/metrics.js";
import { encodePath } from "../pages/page.js";
import { type App, type AppParts, openApp, type ServerConfig } from "./open-app.js";
import { createRuntime, type Runtime, type RuntimeParts, type SupervisorLink } from "./runtime.js";

/** Parts that a server gets besides its configuration. */
export interface ServerParts {
  readonly log: Log;
  readonly progress?: ((progress: OpenProgress) => void) | undefined;
  /** Undefined if this process is the only one. */
  readonly supervisor?: SupervisorLink;
  readonly createPool?: RuntimeParts["createPool"];
}

/** Milliseconds that closing waits for a reload that is not in use. */
const UNUSED_TIMEOUT_MS = 5_000;

/** Requests in flight beside which datasets are described in the background. */
const MAX_REQUESTS_BESIDE = 4;

/** The first datasets of a server, for those who start it. Plain data. */
export interface PublishedDatasets {
  /** Number of all datasets. */
  readonly count: number;
  readonly first: readonly {
    readonly id: string;
    /** Encoded path of its page below the server's URL, with a slash at its end. */
    readonly path: string;
    /** Encoded path of its first group with variables; empty for the root, and for datasets that are not open yet. */
    readonly group: string;
  }[];
}

/** Number of datasets in {@link PublishedDatasets}. */
const MAX_PUBLISHED = 10;

function publishedBy({ config, datasets }: App): PublishedDatasets {
  const ids = datasets.ids();
  const pathOf = datasetPathOf(config);
  const first = ids.slice(0, MAX_PUBLISHED).map((id) => {
    const groups = [...(datasets.opened(id)?.tree.groups.values() ?? [])];
    const group = groups.find(({ variables }) => variables.size > 0)?.path ?? "/";
    return { id, path: encodePath(pathOf(id)), group: encodePath(group.slice(1)) };
  });
  return { count: ids.length, first };
}

/** A server whose datasets are open. */
export interface ServerHandle {
  /**
   * Begins to accept connections.
   * @throws ZpublishError `invalid-config` if the server cannot listen on host and port.
   */
  listen(address?: { readonly host?: string; readonly port?: number }): Promise<{ readonly url: string }>;
  /** Reads new metadata of every dataset now. Never throws. */
  refresh(): Promise<void>;
  /**
   * Opens the app of another configuration beside the current one. The caller uses or discards it before it prepares another.
   * @throws ZpublishError The problem with the configuration, or `draining` if the server closes; nothing has changed then.
   */
  prepare(config: ServerConfig): Promise<PreparedReload>;
  /** Collects the metrics of this process. */
  metrics(): Promise<readonly MetricFamily[]>;
  readonly published: PublishedDatasets;
  /**
   * Makes the server not ready, and answers as before for the configured delay. Then stops accepting connections, finishes
   * requests in flight within the configured time, and closes datasets, pool and cache. Trees that a program gave stay open.
   */
  close(): Promise<void>;
}

/** The app of another configuration, ready to replace the current one. */
export interface PreparedReload {
  /** Changed options that stay as they are until a restart. */
  readonly ignored: readonly OptionKey[];
  /**
   * Replaces the app at once. Requests in flight finish with the former app, which closes after them.
   * @throws ZpublishError `draining` if the server closes.
   */
  use(): void;
  /** Closes the prepared app instead. */
  discard(): Promise<void>;
}

/**
 * Opens a server: a runtime that lives as long as the server, and an app that a reload replaces.
 * @throws ZpublishError `invalid-config`, `invalid-metadata` or `source-unreadable`.
 */
export async function openServer(first: ServerConfig, parts: ServerParts): Promise<ServerHandle> {
  const { log, supervisor } = parts;
  let config = first;
  let app: App | undefined;
  let reload: Promise<App> | undefined;
  let isListening = false;
  let closing: Promise<void> | undefined;
  /** Former apps, which close when their last requests are answered. */
  const leaving = new Set<Promise<void>>();
  const scheduler = createRefreshScheduler();
  const runtime = createRuntime(config, {
    log,
    supervisor,
    createPool: parts.createPool,
    app: () => app,
  });
  const { http } = runtime;
  // All processes learn the same about datasets, so only the first logs it.
  const datasetLog = supervisor === undefined || supervisor.process === 1 ? log : log.child({});
  const appParts: AppParts = {
    ...{ log, datasetLog, scheduler },
    ...{ chunks: runtime.chunks, previews: runtime.previews, values: runtime.values, maps: runtime.maps },
    isBusy: () => http.stats.requestsInFlight > MAX_REQUESTS_BESIDE,
    signingKey: supervisor?.signingKey ?? randomBytes(32).toString("hex"),
    progress: parts.progress,
  };

  function use(next: App): void {
    const former = app;
    const answered = http.use(next.http);
    app = next;
    // With `--processes`, the supervisor triggers refreshes.
    scheduler.every(next.config.refreshSeconds, supervisor === undefined);
    if (isListening) readAhead(next, supervisor);
    if (former === undefined) return;
    const left = answered.then(former.close);
    leaving.add(left);
    void left.finally(() => leaving.delete(left));
  }

  async function prepare(asked: ServerConfig): Promise<PreparedReload> {
    if (closing !== undefined) throw new ZpublishError("draining", "the server is shutting down");
    if (reload !== undefined) throw new Error("expected one reload at a time, received another");
    const { config: next, ignored } = keepRestartOnlyOptions(config, asked);
    reload = openStarted(next, appParts, runtime, app);
    const prepared = await reload.catch((error: unknown) => {
      reload = undefined;
      throw error;
    });
    return preparedReload(ignored, {
      use() {
        // `closeParts` closes the prepared app then.
        if (closing !== undefined) throw new ZpublishError("draining", "the server is shutting down");
        reload = undefined;
        config = next;
        datasetLog.level = log.level;
        use(prepared);
        runtime.limit(config.limits);
        void http.reloadTls();
      },
      async discard() {
        reload = undefined;
        await prepared.close();
      },
    });
  }

  async function closeParts(): Promise<void> {
    scheduler.close();
    // A prepared app that is not in use. Its source may hang.
    const unused = reload?.then(
      (opened) => opened.close(),
      () => undefined,
    );
    if (unused !== undefined) await settlesWithin(unused, UNUSED_TIMEOUT_MS);
    await app?.close();
    await Promise.all(leaving);
    await runtime.close();
  }

  async function closeNow(): Promise<void> {
    const { delayMs, timeoutMs } = config.drain;
    runtime.readiness.drain();
    // Balancers send requests until they notice that the server is not ready.
    if (isListening) await delay(delayMs);
    const cutOff = await http.close(timeoutMs);
    if (cutOff > 0) log.warn({ requests: cutOff }, "requests that were not finished in time are cut off");
    await closeParts();
  }

  try {
    await http.listenAdmin();
    use(await openStarted(first, appParts, runtime));
  } catch (error) {
    await http.close(0);
    await closeParts();
    throw error;
  }
  return {
    async listen({ host = config.host, port = config.port } = {}) {
      const address = await http.listen(host, port);
      isListening = true;
      if (app !== undefined) readAhead(app, supervisor);
      runtime.readiness.begin(app !== undefined && makesChunks(app) ? config.workers : 0);
      return address;
    },
    metrics: runtime.metrics,
    get published() {
      return publishedBy(app as App);
    },
    async refresh() {
      await app?.datasets.refresh();
    },
    prepare,
    close() {
      closing ??= closeNow();
      return closing;
    },
  };
}

/** Tells whether workers make chunks of an open dataset. */
function makesChunks({ datasets }: App): boolean {
  return datasets.ids().some((id) => {
    const arrays = datasets.opened(id)?.arrays.values() ?? [];
    return [...arrays].some(({ plan: { kind } }) => kind === "recompress" || kind === "rechunk");
  });
}

/** Describes datasets in the background. Of several processes one does, and the others use what it keeps. */
function readAhead({ catalog }: App, supervisor: SupervisorLink | undefined): void {
  if (supervisor === undefined || supervisor.process === 1) catalog.begin();
}

/** Opens an app, and waits for what its requests need. If another process logs what all find out about datasets, only errors are logged. */
async function openStarted(
  config: ServerConfig,
  parts: AppParts,
  runtime: Runtime,
  former?: App,
): Promise<App> {
  const { log, datasetLog } = parts;
  if (datasetLog !== log && log.isLevelEnabled("error")) datasetLog.level = "error";
  try {
    const opened = await openApp(config, parts, former);
    await runtime.started().catch(async (error: unknown) => {
      await opened.close();
      throw error;
    });
    return opened;
  } finally {
    datasetLog.level = log.level;
  }
}

/** Returns a prepared reload that is used or discarded once. What throws may be tried again. */
function preparedReload(
  ignored: PreparedReload["ignored"],
  { use, discard }: Pick<PreparedReload, "use" | "discard">,
): PreparedReload {
  let isSettled = false;
  return {
    ignored,
    use() {
      if (!isSettled) use();
      isSettled = true;
    },
    async discard() {
      if (isSettled) return;
      isSettled = true;
      await discard();
    },
  };
}

/** A server that listens, as the command line uses it. */
export interface RunningServer extends Pick<ServerHandle, "refresh" | "close"> {
  readonly url: string;
  /** Its datasets when it began to listen. */
  readonly published: PublishedDatasets;
  /**
   * Replaces the configuration as a whole or not at all. One reload at a time.
   * @returns Changed options that stay as they are until a restart.
   * @throws ZpublishError The problem with the configuration; the current one stays in use.
   */
  reload(config: Config): Promise<readonly OptionKey[]>;
}

/** Opens a server and listens on the configured address. */
export async function startServer(config: Config, parts: ServerParts): Promise<RunningServer> {
  const server = await openServer(config, parts);
  try {
    const { url } = await server.listen();
    return {
      url,
      published: server.published,
      refresh: server.refresh,
      async reload(next) {
        const prepared = await server.prepare(next);
        prepared.use();
        return prepared.ignored;
      },
      close: server.close,
    };
  } catch (error) {
    await server.close();
    throw error;
  }
}
