import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Config } from "../config/config.js";
import type { OpenProgress } from "../dataset/dataset-registry.js";
import { errorFromData, ZpublishError } from "../errors.js";
import { settlesWithin } from "../settles-within.js";
import type {
  FromProcess,
  ProcessCall,
  ToProcess,
  TurnFromProcess,
  TurnToProcess,
} from "./process-message.js";

/** One server process as the supervisor sees it. What it is told to do fails with the process. */
export interface ServerProcess {
  /** 1 … the number of processes. */
  readonly number: number;
  /** Opens all datasets. @throws ZpublishError what kept it from that. */
  open(config: Config, processes: number): Promise<void>;
  /** Begins to accept connections. @returns The URL. @throws ZpublishError `invalid-config`. */
  listen(port: number): Promise<string>;
  /** Looks for new metadata; what goes wrong with that is in its log. A look under way is joined. */
  refresh(): Promise<void>;
  send(message: TurnToProcess): void;
  /** Finishes what is in flight, and ends; it is made to end where it takes too long. @returns Whether it ended by itself. */
  close(): Promise<boolean>;
  /** Ends it at once. */
  kill(): void;
  /** Resolves when it has ended, to how: `exit code 1`, `signal SIGSEGV`. Nothing comes from it afterwards. */
  readonly ended: Promise<string>;
}

export interface ServerProcessOptions {
  readonly number: number;
  readonly onTurnMessage: (message: TurnFromProcess) => void;
  readonly onProgress: (progress: OpenProgress) => void;
}

/** Longer than a server takes by its own limits: answers under way 5 s, its cache 10 s. */
const CLOSE_TIMEOUT_MS = 20_000;

const NOTHING = () => undefined;

interface Pending {
  readonly resolve: (url: string | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** Starts a process, which then waits for what to do. */
export function startServerProcess(options: ServerProcessOptions): ServerProcess {
  const { number, onTurnMessage, onProgress } = options;
  const child = fork(fileURLToPath(new URL("./serve-process.js", import.meta.url)), [String(number)], {
    // JSON would not do for bytes.
    serialization: "advanced",
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const pending = new Map<number, Pending>();
  let lastId = 0;
  let how: string | undefined;
  let refreshing: Promise<void> | undefined;

  const ended = new Promise<string>((resolve) => {
    const end = (reason: string) => {
      if (how !== undefined) return;
      how = reason;
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

  function endedError(): ZpublishError {
    return new ZpublishError("internal", `server process ${number} has ended: ${how}`);
  }

  function send(message: ToProcess): void {
    // A channel that closes under it: that the process ends is told by `ended`.
    if (child.connected) child.send(message, () => {});
  }

  function call(what: ProcessCall): Promise<string | undefined> {
    if (how !== undefined) return Promise.reject(endedError());
    return new Promise((resolve, reject) => {
      const id = ++lastId;
      pending.set(id, { resolve, reject });
      send({ kind: "call", id, call: what });
    });
  }

  child.on("message", (message) => {
    if (how !== undefined) return;
    const received = message as FromProcess;
    if (received.kind === "progress") onProgress(received.progress);
    else if (received.kind !== "reply") onTurnMessage(received);
    else {
      const { id, reply } = received;
      const found = pending.get(id);
      pending.delete(id);
      if (reply.status === "done") found?.resolve(reply.url);
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
      return (await call({ name: "listen", port })) as string;
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
    async close() {
      const closing = call({ name: "close" }).catch(() => undefined);
      const isInTime = await settlesWithin(
        closing.then(() => ended),
        CLOSE_TIMEOUT_MS,
      );
      if (!isInTime) child.kill("SIGKILL");
      await ended;
      return isInTime;
    },
    kill() {
      child.kill("SIGKILL");
    },
  };
}
