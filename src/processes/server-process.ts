import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Config } from "../config/config.js";
import type { OpenProgress } from "../dataset/dataset-registry.js";
import { errorFromData, ZpublishError } from "../errors.js";
import type { MetricFamily } from "../observe/metric-family.js";
import type { ProcessMetrics } from "../observe/metrics.js";
import { settlesWithin } from "../settles-within.js";
import type {
  FromProcess,
  ProcessAnswer,
  ProcessCall,
  ToProcess,
  TurnFromProcess,
  TurnToProcess,
} from "./process-message.js";
import { startWatchdog, type WatchdogOptions } from "./watchdog.js";

/** One server process as the supervisor sees it. What it is told to do fails with the process. */
export interface ServerProcess {
  /** 1 … the number of processes. */
  readonly number: number;
  /** Opens all datasets. @throws ZpublishError what kept it from that. */
  open(config: Config, processes: number): Promise<void>;
  /** Begins to accept connections. @returns The URL. @throws ZpublishError `invalid-config`. */
  listen(port: number): Promise<string>;
  /** Opens what another configuration publishes, to be used or discarded. @throws ZpublishError what is wrong with it. */
  prepare(config: Config): Promise<void>;
  /** Its metrics. @throws ZpublishError where it has ended. */
  metrics(): Promise<readonly MetricFamily[]>;
  /** Answers with what was prepared; does nothing where nothing was. */
  use(): Promise<void>;
  discard(): Promise<void>;
  /** Looks for new metadata; what goes wrong with that is in its log. A look under way is joined. */
  refresh(): Promise<void>;
  send(message: TurnToProcess): void;
  /**
   * Takes its leave, and ends; it is made to end where it takes too long.
   * @param drainMs What it has been told to take for that.
   * @returns Whether it ended by itself.
   */
  close(drainMs: number): Promise<boolean>;
  /** Ends it at once. */
  kill(): void;
  /** Resolves when it has ended, to how: `exit code 1`, `signal SIGSEGV`. Nothing comes from it afterwards. */
  readonly ended: Promise<string>;
  hasEnded(): boolean;
}

export interface ServerProcessOptions {
  readonly number: number;
  readonly onTurnMessage: (message: TurnFromProcess) => void;
  readonly onProgress: (progress: OpenProgress) => void;
  /** It asks for the metrics of all processes. Never rejects. */
  readonly allMetrics: () => Promise<readonly ProcessMetrics[]>;
  /** Its event loop turns no more; it is ended. */
  readonly onHang: () => void;
  /** When that is so; others than the default only in tests. */
  readonly watch?: Pick<WatchdogOptions, "everyMs" | "maxMissed"> | undefined;
}

/** Longer than a server takes by its own limits when it has drained: looks at datasets 5 s, its cache 10 s. */
const CLOSE_MARGIN_MS = 20_000;
/** From when it has closed all. A call to a file system that has no answer may keep it. */
const EXIT_TIMEOUT_MS = 2_000;
/** From SIGKILL on. Linux waits out what a FUSE program was asked: such a process stays, and nobody waits for it. */
const KILL_TIMEOUT_MS = 2_000;

const NOTHING = () => undefined;

interface Pending {
  readonly resolve: (answer: ProcessAnswer) => void;
  readonly reject: (error: unknown) => void;
}

/** Starts a process, which then waits for what to do. */
export function startServerProcess(options: ServerProcessOptions): ServerProcess {
  const { number, onTurnMessage, onProgress, onHang, allMetrics } = options;
  const child = fork(fileURLToPath(new URL("./serve-process.js", import.meta.url)), [String(number)], {
    // JSON would not do for bytes.
    serialization: "advanced",
    // Read by libuv when its first thread starts, which is before any code of ours in `main`.
    env: { UV_THREADPOOL_SIZE: "16", ...process.env },
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const pending = new Map<number, Pending>();
  let lastId = 0;
  let how: string | undefined;
  let refreshing: Promise<void> | undefined;

  let end: (reason: string) => void = NOTHING;
  const ended = new Promise<string>((resolve) => {
    end = (reason: string) => {
      if (how !== undefined) return;
      how = reason;
      stopWatching();
      for (const { reject } of pending.values()) reject(endedError());
      pending.clear();
      resolve(reason);
    };
    child.once("exit", (code, signal) => end(signal === null ? `exit code ${code}` : `signal ${signal}`));
    child.on("error", (error) => {
      // One that never ran does not exit.
      if (child.pid === undefined) end(error.message);
    });
  });

  function kill(): void {
    child.kill("SIGKILL");
    setTimeout(() => end("signal SIGKILL, but the system keeps it"), KILL_TIMEOUT_MS).unref();
  }

  function endedError(): ZpublishError {
    return new ZpublishError("internal", `server process ${number} has ended: ${how}`);
  }

  function send(message: ToProcess): void {
    // A channel that closes under it: that the process ends is told by `ended`.
    if (child.connected) child.send(message, () => {});
  }

  function call(what: ProcessCall): Promise<ProcessAnswer> {
    if (how !== undefined) return Promise.reject(endedError());
    return new Promise((resolve, reject) => {
      const id = ++lastId;
      pending.set(id, { resolve, reject });
      send({ kind: "call", id, call: what });
    });
  }

  const stopWatching = startWatchdog({
    ...options.watch,
    ping: async () => void (await call({ name: "ping" })),
    onHang() {
      onHang();
      kill();
    },
  });

  child.on("message", (message) => {
    if (how !== undefined) return;
    const received = message as FromProcess;
    if (received.kind === "progress") onProgress(received.progress);
    else if (received.kind === "ask-metrics") {
      void allMetrics().then((all) => send({ kind: "metrics", id: received.id, all }));
    } else if (received.kind !== "reply") onTurnMessage(received);
    else {
      const { id, reply } = received;
      const found = pending.get(id);
      pending.delete(id);
      if (reply.status === "done") found?.resolve(reply.answer);
      else found?.reject(errorFromData(reply.error));
    }
  });

  return {
    number,
    ended,
    send,
    async open(config, processes) {
      await call({ name: "open", config, process: number, processes });
    },
    async listen(port) {
      return (await call({ name: "listen", port })).url as string;
    },
    async prepare(config) {
      await call({ name: "prepare", config });
    },
    async metrics() {
      return (await call({ name: "metrics" })).families ?? [];
    },
    async use() {
      await call({ name: "use" });
    },
    async discard() {
      await call({ name: "discard" });
    },
    refresh() {
      // Joined while it is under way, so that nothing piles up before a process that hangs.
      refreshing ??= call({ name: "refresh" })
        .then(NOTHING, NOTHING)
        .finally(() => {
          refreshing = undefined;
        });
      return refreshing;
    },
    async close(drainMs) {
      const closing = call({ name: "close" }).catch(() => undefined);
      const isClosed = await settlesWithin(closing, drainMs + CLOSE_MARGIN_MS);
      const isInTime = isClosed && (await settlesWithin(ended, EXIT_TIMEOUT_MS));
      if (!isInTime) kill();
      await ended;
      return isInTime;
    },
    kill,
    hasEnded: () => how !== undefined,
  };
}
