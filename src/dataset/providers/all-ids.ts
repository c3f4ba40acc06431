import { runCooperatively } from "../../event-loop/cooperative-task.js";
import type { Log } from "../../observe/log.js";
import { createProblemLog } from "./problem-log.js";
import type { ProviderHandle } from "./provider-handle.js";
import { CONFIGURED, mergeIds } from "./update-ids.js";

/** All ids of a registry, merged again whenever a list has changed. */
export interface AllIds {
  /** Returns configured ids in order, then those of providers, sorted. The same array while nothing has changed. */
  ids(): readonly string[];
  /** Resolves when the ids are those of the last lists. */
  settled(): Promise<void>;
  close(): void;
}

/** Creates the merged ids of providers. @param onChange Called when a list has changed. */
export function createAllIds(
  configured: readonly string[],
  handles: readonly ProviderHandle[],
  log: Log,
  onChange: () => void,
): AllIds {
  const clashes = handles.map(({ provider }) =>
    createProblemLog(log, provider.name, "dataset left out: its id is used already"),
  );
  let ids: readonly string[] = configured;
  let merging: Promise<void> | undefined;
  /** True if a list has changed since the merge under way began. */
  let isBehind = false;

  async function mergeAll(): Promise<void> {
    while (isBehind) {
      isBehind = false;
      for (const clash of clashes) clash.begin();
      const lists = handles.map(({ list }) => list.ids);
      const steps = mergeIds(configured, lists, ids, (id, list, winner) =>
        clashes[list]?.add(id, `expected an id of one dataset; ${nameOf(winner)} has it, too`),
      );
      ids = await runCooperatively(steps);
      for (const clash of clashes) clash.end();
    }
    // Not in a later microtask: a list that changes before it would not be merged.
    merging = undefined;
  }

  function nameOf(winner: number): string {
    return winner === CONFIGURED ? "the configuration" : `provider '${handles[winner]?.provider.name}'`;
  }

  function merge(): void {
    isBehind = true;
    merging ??= mergeAll();
  }

  function onList(): void {
    onChange();
    merge();
  }
  for (const { listeners } of handles) listeners.add(onList);
  if (handles.length > 0) merge();

  return {
    ids: () => ids,
    settled: async () => merging,
    close() {
      for (const { listeners } of handles) listeners.delete(onList);
    },
  };
}
