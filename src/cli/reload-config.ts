import { isDeepStrictEqual } from "node:util";
import type { Config, DatasetConfig } from "../config/config.js";
import { flagOf } from "../config/options.js";
import { messageOf, ZpublishError } from "../errors.js";
import type { Log } from "../observe/log.js";
import type { RunningServer } from "../server/server.js";

/** Parts that a reload needs. */
export interface ReloadParts {
  readonly server: Pick<RunningServer, "reload">;
  readonly log: Log;
  /** Resolves flags, variables and file again. @throws ZpublishError `invalid-config` */
  readonly readConfig: () => Config;
  /** The configuration that is in use. */
  readonly current: Config;
}

/**
 * Reads the configuration again, and replaces the one in use as a whole or not at all. Logs the result. Never rejects.
 * @returns The configuration that is in use now.
 */
export async function reloadConfig({ server, log, readConfig, current }: ReloadParts): Promise<Config> {
  log.info("reloading the configuration");
  try {
    const next = readConfig();
    const ignored = await server.reload(next);
    if (ignored.length > 0) {
      log.warn(
        { options: ignored.map(flagOf) },
        "options that cannot change without a restart stay as they are",
      );
    }
    log.level = next.logLevel;
    const collections = next.collections.length === 0 ? {} : { collections: next.collections.length };
    log.info({ ...changesOf(current.datasets, next.datasets), ...collections }, "configuration reloaded");
    return next;
  } catch (error) {
    if (error instanceof ZpublishError && error.code === "draining") {
      log.info("the server is closing: the configuration stays as it is");
      return current;
    }
    // A ZpublishError is for the operator; any other error is a bug, and needs its stack.
    if (!(error instanceof ZpublishError))
      log.error({ err: error }, "the configuration could not be reloaded");
    for (const reason of messageOf(error).split("\n")) {
      log.error({ reason }, "the new configuration cannot be used; the present one stays");
    }
    return current;
  }
}

function changesOf(before: readonly DatasetConfig[], after: readonly DatasetConfig[]): object {
  const former = new Map(before.map((dataset) => [dataset.id, dataset]));
  const ids = new Set(after.map(({ id }) => id));
  const added = after.filter(({ id }) => !former.has(id)).length;
  const changed = after.filter((dataset) => {
    const other = former.get(dataset.id);
    return other !== undefined && !isDeepStrictEqual(dataset, other);
  }).length;
  const removed = before.filter(({ id }) => !ids.has(id)).length;
  return { datasets: after.length, added, removed, changed };
}
