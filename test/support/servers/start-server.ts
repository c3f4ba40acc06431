import type { Test } from "tap";
import { defaultValues, optionConfig } from "../../../src/config/options.js";
import { BUILT_IN_PLUGINS } from "../../../src/config/select-plugins.js";
import { createEncodePool, type EncodePool, type EncodePoolOptions } from "../../../src/pool/encode-pool.js";
import type { ServerConfig } from "../../../src/server/open-app.js";
import { openServer, type ServerParts } from "../../../src/server/server.js";
import { createTestLog } from "./serve-routes.js";

/** A complete server, ready. */
export type RunningServer = Awaited<ReturnType<typeof startServer>>;

export const ALL_PLUGINS = BUILT_IN_PLUGINS.map((name) => ({ name }));

/** Access rules with some that are not the defaults. */
export function accessOf(given: Partial<ServerConfig["access"]>): ServerConfig["access"] {
  return { ...optionConfig(defaultValues({})).access, ...given };
}

/**
 * Creates a pool whose threads start with the first chunk, not with the server: most servers of tests need none, and the start of one takes
 * a fifth of a second of the processor.
 */
function createIdlePool(options: EncodePoolOptions): EncodePool {
  const pool = createEncodePool(options);
  return {
    ...pool,
    makeChunk: (task, signal) =>
      task.plan.path === "probe" ? Promise.resolve({ status: "absent" }) : pool.makeChunk(task, signal),
  };
}

/**
 * Starts a complete server on a free port, which closes at the end of the test.
 * @param parts Another pool instead of the server's.
 */
export async function startServer(
  t: Pick<Test, "teardown">,
  config: Partial<ServerConfig>,
  parts: Pick<ServerParts, "createPool"> = {},
) {
  const { log, lines } = createTestLog();
  const server = await openServer(
    {
      ...optionConfig(defaultValues({})),
      host: "127.0.0.1",
      port: 0,
      workers: 1,
      cache: null,
      datasets: [],
      collections: [],
      plugins: ALL_PLUGINS,
      refreshSeconds: 0,
      title: "test",
      // Clients of tests keep connections, for which a server would wait.
      drain: { delayMs: 0, timeoutMs: 0 },
      ...config,
    },
    { log, createPool: createIdlePool, ...parts },
  );
  t.teardown(() => server.close());
  const { url } = await server.listen();
  /** Sends a GET without the headers of a browser. */
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(url + path, { headers, redirect: "manual" });
  const json = async (path: string): Promise<unknown> => (await get(path)).json();
  return { server, url, lines, get, json };
}
