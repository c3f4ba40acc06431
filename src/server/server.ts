import { setTimeout as delay } from "node:timers/promises";
import type { Config } from "../config/config.js";
import type { OptionKey } from "../config/options.js";
import type { OpenProgress } from "../dataset/dataset-registry.js";
import { createRefreshScheduler } from "../dataset/refresh-scheduler.js";
import { ZpublishError } from "../errors.js";
import { settlesWithin } from "../event-loop/settles-within.js";
import type { Log } from "../observe/log.js";
import type { MetricFamily } from "../observe/metric-family.js";
import { createRuntime, type RuntimeParts } from "./create-runtime.js";
import { type App, type AppParts, openApp } from "./open-app.js";
import { keepRestartOnlyOptions } from "./restart-only-options.js";
import type { ServerConfig } from "./server-config.js";
import type { SupervisorLink } from "./supervisor-link.js";

export interface ServerParts {
  readonly log: Log;
  readonly progress?: ((progress: OpenProgress) => void) | undefined;
  /** Undefined if this process is the only one. */
  readonly supervisor?: SupervisorLink;
  readonly createPool?: RuntimeParts["createPool"];
}

/** How long closing waits for a reload under way to be given up. */
const UNUSED_TIMEOUT_MS = 5_000;

/** A server whose datasets are open. */
export interface ServerHandle {
  /**
   * Begins to accept connections.
   * @throws ZpublishError `invalid-config` where host and port cannot be listened on.
   */
  listen(address?: { readonly host?: string; readonly port?: number }): Promise<{ readonly url: string }>;
  /** Looks for new metadata of every dataset now. Never throws. */
  refresh(): Promise<void>;
  /**
   * Opens what another configuration publishes, besides what is published now: to be used or discarded, before another.
   * @throws ZpublishError what is wrong with it: nothing has changed then; `draining` where the server closes.
   */
  prepare(config: ServerConfig): Promise<PreparedReload>;
  /** Metrics of this process. */
  metrics(): Promise<readonly MetricFamily[]>;
  /**
   * Takes its leave: not ready from now on, it goes on as before for the configured delay, then stops accepting connections,
   * finishes what is in flight within the configured time, and closes datasets, pool and cache.
   */
  close(): Promise<void>;
}

/** Another configuration, ready to take the place of the present one. */
export interface PreparedReload {
  /** Options that were to be changed and stay as they are until a restart. */
  readonly ignored: readonly OptionKey[];
  /**
   * Takes its place at once. Requests in flight are answered as they began; what is left of it is closed after them.
   * @throws ZpublishError `draining` where the server closes.
   */
  use(): void;
  discard(): Promise<void>;
}

/**
 * The composition root: a runtime that lives as long as the server, and an app that can be replaced.
 * @throws ZpublishError `invalid-config`, `invalid-metadata` or `source-unreadable`.
 */
export async function openServer(first: ServerConfig, parts: ServerParts): Promise<ServerHandle> {
  const { log, supervisor } = parts;
  let config = first;
  let app: App | undefined;
  let reload: Promise<App> | undefined;
  let isListening = false;
  let closing: Promise<void> | undefined;
  /** Apps whose last requests are being answered. */
  const leaving = new Set<Promise<void>>();
  const scheduler = createRefreshScheduler();
  const runtime = createRuntime(config, {
    log,
    supervisor,
    createPool: parts.createPool,
    app: () => app,
  });
  const { http } = runtime;
  // All processes find out the same about what they open: the first says it.
  const datasetLog = supervisor === undefined || supervisor.process === 1 ? log : log.child({});
  const appParts: AppParts = {
    log,
    datasetLog,
    scheduler,
    chunks: runtime.chunks,
    previews: runtime.previews,
    onChange: () => runtime.forgetChunks(),
    progress: parts.progress,
  };

  async function open(next: ServerConfig, former?: App): Promise<App> {
    if (datasetLog !== log && log.isLevelEnabled("error")) datasetLog.level = "error";
    try {
      const opened = await openApp(next, appParts, former);
      await runtime.started().catch(async (error: unknown) => {
        await opened.close();
        throw error;
      });
      return opened;
    } finally {
      datasetLog.level = log.level;
    }
  }

  function use(next: App): void {
    const former = app;
    const answered = http.use(next.http);
    app = next;
    next.datasets.begin();
    // With `--processes`, the supervisor triggers refreshes.
    scheduler.every(next.config.refreshSeconds, supervisor === undefined);
    if (former === undefined) return;
    const left = answered.then(former.close);
    leaving.add(left);
    void left.finally(() => leaving.delete(left));
  }

  async function prepare(asked: ServerConfig): Promise<PreparedReload> {
    if (closing !== undefined) throw new ZpublishError("draining", "the server is shutting down");
    if (reload !== undefined) throw new Error("expected one reload at a time, received another");
    const { config: next, ignored } = keepRestartOnlyOptions(config, asked);
    reload = open(next, app);
    const prepared = await reload.catch((error: unknown) => {
      reload = undefined;
      throw error;
    });
    let isSettled = false;
    const settle = (): boolean => {
      const wasSettled = isSettled;
      isSettled = true;
      if (!wasSettled) reload = undefined;
      return !wasSettled;
    };
    return {
      ignored,
      use() {
        // It is closed with all else then.
        if (closing !== undefined) throw new ZpublishError("draining", "the server is shutting down");
        if (!settle()) return;
        config = next;
        datasetLog.level = log.level;
        use(prepared);
        runtime.limit(config.limits);
        void http.reloadTls();
      },
      async discard() {
        if (settle()) await prepared.close();
      },
    };
  }

  async function closeParts(): Promise<void> {
    scheduler.close();
    // One that is being opened, or was and is not in use; a source may hang.
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
    // For those who still send requests here.
    if (isListening) await delay(delayMs);
    const cutOff = await http.close(timeoutMs);
    if (cutOff > 0) log.warn({ requests: cutOff }, "requests that were not finished in time are cut off");
    await closeParts();
  }

  try {
    await http.listenAdmin();
    use(await open(first));
  } catch (error) {
    await http.close(0);
    await closeParts();
    throw error;
  }
  return {
    async listen({ host = config.host, port = config.port } = {}) {
      const address = await http.listen(host, port);
      isListening = true;
      runtime.readiness.begin();
      return address;
    },
    metrics: runtime.metrics,
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

/** A server that listens, as the program has it. */
export interface RunningServer {
  readonly url: string;
  /** As {@link ServerHandle.refresh}. */
  refresh(): Promise<void>;
  /**
   * Takes another configuration, whole or not at all; not while another is being taken.
   * @returns Options that were to be changed and stay as they are until a restart.
   * @throws ZpublishError what is wrong with it: the present one goes on.
   */
  reload(config: Config): Promise<readonly OptionKey[]>;
  /** As {@link ServerHandle.close}. */
  close(): Promise<void>;
}

/** Opens a server and listens where the configuration says. */
export async function startServer(config: Config, parts: ServerParts): Promise<RunningServer> {
  const server = await openServer(config, parts);
  try {
    const { url } = await server.listen();
    return {
      url,
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
