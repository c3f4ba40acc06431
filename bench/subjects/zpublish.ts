import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startChild, stopChild, waitForLine } from "../children.js";
import type { Subject } from "./subject.js";

const MAIN = fileURLToPath(new URL("../../src/main.js", import.meta.url));

/** `zpublish serve` with its defaults and a cache of its own, empty at the start. */
export const zpublishSubject: Subject = createZpublish("zpublish", {});

/**
 * The same for a dataset that is said never to change: a cached chunk is answered without a look at its file, as nginx
 * does for a minute.
 */
export const immutableZpublishSubject: Subject = createZpublish("zpublish, immutable", { immutable: true });

function createZpublish(name: string, settings: Readonly<Record<string, unknown>>): Subject {
  return {
    name,
    isRestartable: true,
    hasChunkCache: true,
    async start({ store, scratch, serving }) {
      const config = join(scratch, "zpublish.json");
      const dataset = { location: store.directory, ...settings, ...serving };
      writeFileSync(config, JSON.stringify({ datasets: { [store.id]: dataset } }));
      const cache = join(scratch, "cache");
      const args = [
        MAIN,
        "serve",
        "--config",
        config,
        "--port",
        "0",
        "--cache-dir",
        cache,
        "--log-level",
        "warn",
      ];
      const child = await startChild(process.execPath, args, { env: withoutSettings() });
      const [, baseUrl] = await waitForLine(child, /ready on (http:\/\/\S+)/);
      return { baseUrl: baseUrl!, pid: child.pid, stop: () => stopChild(child) };
    },
  };
}

/** The user's own `ZPUBLISH_…` settings are not what is measured. */
function withoutSettings(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("ZPUBLISH_")));
}
