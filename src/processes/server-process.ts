import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Config } from "../config/config.js";
import type { OpenProgress } from "../dataset/dataset-registry.js";
import { type ErrorData, errorFromData, ZpublishError } from "../errors.js";
import { settlesWithin } from "../event-loop/settles-within.js";
import type { MetricFamily, ProcessMetrics } from "../observe/metrics.js";
import type { SupervisorLink } from "../server/runtime.js";
import type { RunningServer } from "../server/server.js";

/** Settings of a watchdog. */
interface WatchdogSettings {
  /** Between pings. Default one second. */
  readonly everyMs?: number;
  /** Pings without an answer after which a process hangs. Default 30. */
  readonly maxMissed?: number;
}

/**
 * Detects that the event loop of a process hangs. It counts its own ticks and not seconds, so that a suspended machine does not make all
 * processes look hung.
 * @param ping Resolves when the process has answered.
 * @param onHang Called once.
 * @returns A function that stops it.
 */
function startWatchdog(
  ping: () => Promise<unknown>,
  onHang: () => void,
  { everyMs = 1_000, maxMissed = 30 }: WatchdogSettings = {},
): () => void {
  let isAsked = false;
  let missed = 0;
  const timer = setInterval(() => {
    if (isAsked) {
      if (++missed < maxMissed) return;
      clearInterval(timer);
      onHang();
      return;
    }
    isAsked = true;
    ping().then(
      () => {
        isAsked = false;
        missed = 0;
      },
      () => clearInterval(timer),
    );
  }, everyMs).unref();
  return () => clearInterval(timer);
}

/** One server process as the supervisor sees it. Calls are rejected when the process ends. */
export type ServerProcess = ReturnType<typeof createServerProcess>;

/** Parts that a server process is started with. */
export interface ServerProcessOptions {
  readonly number: number;
  readonly onProgress: (progress: OpenProgress) => void;
  /** Called when it asks for the metrics of all processes. Never rejects. */
  readonly allMetrics: () => Promise<readonly ProcessMetrics[]>;
  /** Called when its event loop hangs, before it is killed. */
  readonly onHang: () => void;
  /** Settings of its watchdog; other ones only in tests. */
  readonly watch?: WatchdogSettings | undefined;
}

/** Time after draining: more than a server's own limits for its datasets (5 s) and its cache (10 s). */
const CLOSE_MARGIN_MS = 20_000;
/** Time to exit after it has closed; a call to a file system that hangs may keep it. */
const EXIT_TIMEOUT_MS = 2_000;
/** Time to end after SIGKILL. A process inside a call to a FUSE file system stays; the supervisor does not wait for it. */
const KILL_TIMEOUT_MS = 2_000;

const NOTHING = () => undefined;

/**
 * Time that a process has to return its metrics. The first time it loads what collects them, which takes seconds on a busy machine;
 * Prometheus waits for ten.
 */
const METRICS_TIMEOUT_MS = 5_000;

/** Collects the metrics of all processes that return them in time, and of the supervisor. Never rejects. */
export async function collectMetrics(
  processes: readonly ServerProcess[],
  own: () => readonly MetricFamily[],
): Promise<readonly ProcessMetrics[]> {
  const collected: ProcessMetrics[] = [];
  const asked = processes.map(async (process) => {
    const families = await process.metrics().catch(() => undefined);
    if (families !== undefined) collected.push({ process: String(process.number), families });
  });
  await settlesWithin(Promise.all(asked), METRICS_TIMEOUT_MS);
  // A copy: later ones are not part of this answer.
  const inTime = collected.toSorted((a, b) => Number(a.process) - Number(b.process));
  return [...inTime, { process: "supervisor", families: own() }];
}

interface Pending {
  readonly resolve: (answer: ProcessAnswer) => void;
  readonly reject: (error: unknown) => void;
}

/** Creates the calls of a process that wait for their replies. @param send Never throws. */
function createCalls(send: (message: ToProcess) => void) {
  const pending = new Map<number, Pending>();
  let lastId = 0;
  let failure: ZpublishError | undefined;
  return {
    call(what: ProcessCall): Promise<ProcessAnswer> {
      if (failure !== undefined) return Promise.reject(failure);
      return new Promise((resolve, reject) => {
        const id = ++lastId;
        pending.set(id, { resolve, reject });
        send({ kind: "call", id, call: what });
      });
    },
    settle(id: number, reply: ProcessReply): void {
      const found = pending.get(id);
      pending.delete(id);
      if (reply.status === "done") found?.resolve(reply.answer);
      else found?.reject(errorFromData(reply.error));
    },
    /** Rejects all calls, also later ones. */
    fail(error: ZpublishError): void {
      failure = error;
      for (const { reject } of pending.values()) reject(error);
      pending.clear();
    },
  };
}

/** Starts the program of a server process. */
function forkServer(number: number): ChildProcess {
  return fork(fileURLToPath(new URL("./serve-process.js", import.meta.url)), [String(number)], {
    // JSON would lose undefined and NaN.
    serialization: "advanced",
    // libuv reads it when its first thread starts, before any code of `main`.
    env: { UV_THREADPOOL_SIZE: "16", ...process.env },
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
}

/** Creates a process, which then waits for calls. */
export function createServerProcess(options: ServerProcessOptions) {
  const { number, onProgress, onHang, allMetrics } = options;
  const child = forkServer(number);
  const { call, settle, fail } = createCalls(send);
  let hasEnded = false;
  let refreshing: Promise<void> | undefined;

  let end: (reason: string) => void = NOTHING;
  const ended = new Promise<string>((resolve) => {
    end = (reason: string) => {
      if (hasEnded) return;
      hasEnded = true;
      stopWatching();
      fail(new ZpublishError("internal", `server process ${number} has ended: ${reason}`));
      resolve(reason);
    };
  });
  child.once("exit", (code, signal) => end(signal === null ? `exit code ${code}` : `signal ${signal}`));
  child.on("error", (error) => {
    // A process that never ran emits no `exit`.
    if (child.pid === undefined) end(error.message);
  });
  child.on("message", (message) => {
    if (hasEnded) return;
    const received = message as FromProcess;
    if (received.kind === "progress") onProgress(received.progress);
    else if (received.kind === "reply") settle(received.id, received.reply);
    else void allMetrics().then((all) => send({ kind: "metrics", id: received.id, all }));
  });

  function send(message: ToProcess): void {
    // Errors of the channel are ignored: `ended` says that the process has ended.
    if (child.connected) child.send(message, () => {});
  }

  function kill(): void {
    child.kill("SIGKILL");
    setTimeout(() => end("signal SIGKILL, but the system keeps it"), KILL_TIMEOUT_MS).unref();
  }

  const onHung = () => {
    onHang();
    kill();
  };
  const stopWatching = startWatchdog(() => call({ name: "ping" }), onHung, options.watch);

  return {
    /** From 1 to the number of processes. */
    number,
    /** Resolves when it has ended, to the reason: `exit code 1`, `signal SIGSEGV`. No message comes from it afterwards. */
    ended,
    /** Opens all datasets. @throws ZpublishError If that fails. */
    open: (config: Config, shared: Pick<SupervisorLink, "processes" | "signingKey">) =>
      call({ name: "open", config, process: number, ...shared }),
    /** Starts to accept connections. @throws ZpublishError `invalid-config`. */
    listen: async (port: number) => (await call({ name: "listen", port })).listening as Listening,
    /** Opens the datasets of another configuration, to be used or discarded. @throws ZpublishError The problem with it. */
    prepare: (config: Config) => call({ name: "prepare", config }),
    /** Collects its metrics. @throws ZpublishError If it has ended. */
    metrics: async () => (await call({ name: "metrics" })).families ?? [],
    /** Serves what was prepared; does nothing if nothing was. */
    use: () => call({ name: "use" }),
    discard: () => call({ name: "discard" }),
    /** Refreshes its datasets, or joins a refresh under way. Never rejects: failures are in its log. */
    refresh(): Promise<void> {
      // Calls do not pile up if the process hangs.
      refreshing ??= call({ name: "refresh" })
        .then(NOTHING, NOTHING)
        .finally(() => {
          refreshing = undefined;
        });
      return refreshing;
    },
    /** Drains and ends it; kills it if that takes too long. @returns Whether it ended without being killed. */
    async close(drainMs: number): Promise<boolean> {
      const closing = call({ name: "close" }).catch(() => undefined);
      const isClosed = await settlesWithin(closing, drainMs + CLOSE_MARGIN_MS);
      const isInTime = isClosed && (await settlesWithin(ended, EXIT_TIMEOUT_MS));
      if (!isInTime) kill();
      await ended;
      return isInTime;
    },
    /** Kills it at once. */
    kill,
    hasEnded: () => hasEnded,
  };
}

/** A message of the supervisor to a server process. */
export type ToProcess =
  | { readonly kind: "call"; readonly id: number; readonly call: ProcessCall }
  /** The answer to `ask-metrics`. */
  | { readonly kind: "metrics"; readonly id: number; readonly all: readonly ProcessMetrics[] };

/** A message of a server process to the supervisor. */
export type FromProcess =
  | { readonly kind: "reply"; readonly id: number; readonly reply: ProcessReply }
  | { readonly kind: "progress"; readonly progress: OpenProgress }
  /** Asks for the metrics of all processes. */
  | { readonly kind: "ask-metrics"; readonly id: number };

/** A call to a server process, which replies when it is done. */
export type ProcessCall =
  | ({
      readonly name: "open";
      /** With this process's share of the workers. */
      readonly config: Config;
    } & Pick<SupervisorLink, "process" | "processes" | "signingKey">)
  | { readonly name: "listen"; readonly port: number }
  | { readonly name: "refresh" }
  /** Opens the datasets of another configuration; `use` or `discard` follows. */
  | { readonly name: "prepare"; readonly config: Config }
  | { readonly name: "use" }
  | { readonly name: "discard" }
  /** Collects its metrics. */
  | { readonly name: "metrics" }
  /** Replies at once, to show that the event loop runs. */
  | { readonly name: "ping" }
  /** Closes the server as `ServerHandle.close` does; the process ends after its reply. */
  | { readonly name: "close" };

/** The reply to a call. Errors are data, because they lose class and fields between processes. */
export type ProcessReply =
  | { readonly status: "done"; readonly answer: ProcessAnswer }
  | { readonly status: "failed"; readonly error: ErrorData };

/** Where a process listens, and what it publishes. */
export type Listening = Pick<RunningServer, "url" | "published">;

/** The answer of `listen` and `metrics`; empty for other calls. */
export interface ProcessAnswer {
  readonly listening?: Listening;
  readonly families?: readonly MetricFamily[];
}
