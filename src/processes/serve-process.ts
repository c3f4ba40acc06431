import type { Config } from "../config/config.js";
import { errorToData, messageOf, ZpublishError } from "../errors.js";
import { createLog, exitOnUncaught, type Log } from "../observe/log.js";
import type { ProcessMetrics } from "../observe/metrics.js";
import { openServer, type PreparedReload, type ServerHandle } from "../server/server.js";
import type { FromProcess, ProcessAnswer, ProcessCall, ProcessReply, ToProcess } from "./server-process.js";

/**
 * The program of a server process: a whole server that shares its port with others and obeys the supervisor. A terminal
 * sends its signals to all processes; the supervisor answers them for all.
 */

const PROGRESS_INTERVAL_MS = 50;

let log: Log | undefined;
let server: ServerHandle | undefined;
let prepared: { readonly reload: PreparedReload; readonly config: Config } | undefined;
let closing: Promise<void> | undefined;
/** Pending requests for the metrics of all processes. */
const asking = new Map<number, (all: readonly ProcessMetrics[]) => void>();
let lastQuestion = 0;
const NOTHING: ProcessAnswer = {};

// As in `main`: what a plugin prints may go to a reader that has seen enough.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});
process.on("SIGINT", () => {});
process.on("SIGHUP", () => {});
// A signal for this process alone: it finishes, and the supervisor replaces it.
process.on("SIGTERM", () => void close().then(() => process.exit(0)));
// Without the supervisor, nothing would end this process.
process.on("disconnect", () => process.exit(1));
process.on("message", (message) => receive(message as ToProcess));

function send(message: FromProcess): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

function receive(message: ToProcess): void {
  if (message.kind === "metrics") {
    asking.get(message.id)?.(message.all);
    asking.delete(message.id);
    return;
  }
  const { id, call } = message;
  obey(call)
    .then(
      (answer): ProcessReply => ({ status: "done", answer }),
      (error: unknown): ProcessReply => {
        // An error with a code is for the operator. Any other is a bug: its stack is needed.
        if (!(error instanceof ZpublishError)) log?.error({ err: error }, messageOf(error));
        return { status: "failed", error: errorToData(error) };
      },
    )
    .then((reply) => {
      if (call.name !== "close") send({ kind: "reply", id, reply });
      else process.send?.({ kind: "reply", id, reply }, undefined, undefined, () => process.exit(0));
    });
}

async function obey(call: ProcessCall): Promise<ProcessAnswer> {
  switch (call.name) {
    case "open":
      await open(call);
      return NOTHING;
    case "listen":
      return {
        listening: { ...(await opened().listen({ port: call.port })), published: opened().published },
      };
    case "refresh":
      await opened().refresh();
      return NOTHING;
    case "metrics":
      return { families: await opened().metrics() };
    case "prepare":
      prepared = { reload: await opened().prepare(call.config), config: call.config };
      return NOTHING;
    case "use":
      if (log !== undefined && prepared !== undefined) log.level = prepared.config.logLevel;
      prepared?.reload.use();
      prepared = undefined;
      return NOTHING;
    case "discard":
      await prepared?.reload.discard();
      prepared = undefined;
      return NOTHING;
    case "ping":
      return NOTHING;
    case "close":
      await close();
      return NOTHING;
  }
}

function opened(): ServerHandle {
  if (server === undefined) throw new Error("expected a server that is open, received none");
  return server;
}

async function open({ config, process: number, ...shared }: ProcessCall & { name: "open" }): Promise<void> {
  const own = createLog(config.logLevel).child({ process: number });
  log = own;
  exitOnUncaught(own);
  let toldAt = 0;
  server = await openServer(config, {
    log: own,
    progress(progress) {
      // The first process reports for all.
      if (number > 1 || performance.now() - toldAt < PROGRESS_INTERVAL_MS) return;
      toldAt = performance.now();
      send({ kind: "progress", progress });
    },
    supervisor: {
      process: number,
      ...shared,
      allMetrics: () =>
        new Promise((resolve) => {
          asking.set(++lastQuestion, resolve);
          send({ kind: "ask-metrics", id: lastQuestion });
        }),
    },
  });
}

function close(): Promise<void> {
  closing ??= server?.close() ?? Promise.resolve();
  return closing;
}
