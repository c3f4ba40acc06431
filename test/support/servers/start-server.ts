import type { Test } from "tap";
import { defaultValues, optionConfig } from "../../../src/config/options.js";
import type { ServerConfig } from "../../../src/server/open-app.js";
import { openServer, type ServerHandle, type ServerParts } from "../../../src/server/server.js";
import { createTestLog, type LogLine } from "./serve-routes.js";

export interface RunningServer {
  readonly server: ServerHandle;
  readonly url: string;
  /** Lines of the log so far. */
  readonly lines: LogLine[];
  /** Sends a GET without the headers of a browser. */
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  json(path: string): Promise<unknown>;
}

export const ALL_PLUGINS = [
  "dataset_info",
  "explore",
  "module_version",
  "plugin_info",
  "thumbnail",
  "zarr",
  "zarr3",
].map((name) => ({
  name,
}));

/**
 * Starts a complete server on a free port, which closes at the end of the test.
 * @param parts Another pool instead of the server's.
 */
export async function startServer(
  t: Pick<Test, "teardown">,
  config: Partial<ServerConfig>,
  parts: Pick<ServerParts, "createPool"> = {},
): Promise<RunningServer> {
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
    { log, ...parts },
  );
  t.teardown(() => server.close());
  const { url } = await server.listen();
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(url + path, { headers, redirect: "manual" });
  return { server, url, lines, get, json: async (path) => (await get(path)).json() };
}
