/**
 * Runs `serve` with a fake server, which behaves as the first argument says. For tests of signals and failures that a real
 * server cannot be made to show.
 */
import { exitCodeOf, reportError } from "../../../src/cli/output.js";
import { type RunningServer, runServe, type StartServer } from "../../../src/cli/serve.js";
import { resolveConfig } from "../../../src/config/resolve-config.js";

const keepAlive = setInterval(() => {}, 1_000);

const server: RunningServer = {
  url: "http://invented",
  published: { count: 0, first: [] },
  async refresh() {
    process.stderr.write("refreshed\n");
  },
  async reload() {
    process.stderr.write("reloaded\n");
    return [];
  },
  async close() {
    process.stderr.write("closed\n");
    clearInterval(keepAlive);
  },
};

const starts: Readonly<Record<string, StartServer>> = {
  well: async () => server,
  "slow to close": async () => ({
    ...server,
    close: () => {
      process.stderr.write("closing for long\n");
      return new Promise(() => {});
    },
  }),
  "failing to close": async () => ({
    ...server,
    close: () => Promise.reject(new Error("the disk is gone")),
  }),
  "failing to refresh": async () => ({
    ...server,
    refresh: () => Promise.reject(new Error("the disk is gone")),
  }),
  "opening for ever": () => {
    process.stderr.write("opening\n");
    return new Promise(() => {});
  },
  "with a mistake of ours": async () => {
    throw new TypeError("x is not a function");
  },
  "with an error later": async () => {
    setTimeout(() => {
      throw new Error("out of the blue");
    }, 50);
    return server;
  },
  "with a rejection later": async () => {
    setTimeout(() => void Promise.reject(new Error("out of the blue")), 50);
    return server;
  },
};

const [how = "", ...argv] = process.argv.slice(2);
try {
  await runServe(() => resolveConfig({ argv: ["a=b", ...argv], env: {}, cwd: "/" }), starts[how]);
} catch (error) {
  reportError(error);
  process.exit(exitCodeOf(error));
}
