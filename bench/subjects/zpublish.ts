import { type Build, THIS_BUILD } from "../harness/harness.js";
import { startZpublish } from "../start-zpublish.js";
import type { Subject } from "./subject.js";

/** `zpublish serve` with its defaults and a cache of its own, empty at the start. */
export const zpublishSubject: Subject = createZpublish("zpublish", THIS_BUILD);

/** Ways in which a build is measured. */
export function zpublishSubjects(build: Build): {
  readonly plain: Subject;
  /** A dataset that never changes: a cached chunk is answered without asking for its file, as nginx does for a minute. */
  readonly immutable: Subject;
  /** On `node:http`, as if uWebSockets.js cannot be loaded. */
  readonly nodeHttp: Subject;
} {
  return {
    plain: createZpublish("zpublish", build),
    immutable: createZpublish("zpublish, immutable", build, { immutable: true }),
    nodeHttp: createZpublish("zpublish on node:http", build, {}, { ZPUBLISH_HTTP: "node" }),
  };
}

function createZpublish(
  name: string,
  build: Build,
  settings: Readonly<Record<string, unknown>> = {},
  env: Readonly<Record<string, string>> = {},
): Subject {
  return {
    name,
    build,
    isRestartable: true,
    hasChunkCache: true,
    start: ({ store, scratch, serving, withoutCache = false }) =>
      startZpublish({
        build,
        datasets: { [store.id]: { location: store.directory, ...settings, ...serving } },
        scratch,
        args: withoutCache ? ["--no-cache"] : [],
        env,
      }),
  };
}
