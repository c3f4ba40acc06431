import { startZpublish } from "../start-zpublish.js";
import type { Subject } from "./subject.js";

/** `zpublish serve` with its defaults and a cache of its own, empty at the start. */
export const zpublishSubject: Subject = createZpublish("zpublish", {});

/**
 * The same for a dataset that is said never to change: a cached chunk is answered without a look at its file, as nginx
 * does for a minute.
 */
export const immutableZpublishSubject: Subject = createZpublish("zpublish, immutable", { immutable: true });

/** The same on `node:http`, as where uWebSockets.js cannot be loaded. */
export const nodeHttpZpublishSubject: Subject = createZpublish(
  "zpublish on node:http",
  {},
  { ZPUBLISH_HTTP: "node" },
);

function createZpublish(
  name: string,
  settings: Readonly<Record<string, unknown>>,
  env: Readonly<Record<string, string>> = {},
): Subject {
  return {
    name,
    isRestartable: true,
    hasChunkCache: true,
    start: ({ store, scratch, serving, withoutCache = false }) =>
      startZpublish({
        datasets: { [store.id]: { location: store.directory, ...settings, ...serving } },
        scratch,
        args: withoutCache ? ["--no-cache"] : [],
        env,
      }),
  };
}
