import { messageOf, ZpublishError } from "../errors.js";
import { type CooperativeTask, runCooperatively } from "../event-loop/cooperative-task.js";
import { type KnownPart, sortedByName } from "./description-records.js";
import type { JoinedTree } from "./joined-tree.js";

/** Joins parts. @throws ZpublishError `invalid-metadata` if they cannot be one dataset */
export type Join = (parts: readonly KnownPart[]) => CooperativeTask<JoinedTree>;

/** Parts that are one dataset, and those that do not fit to them. */
export interface FittingParts {
  /** Sorted by name. */
  readonly parts: readonly KnownPart[];
  readonly tree: JoinedTree;
  readonly left: readonly { readonly name: string; readonly reason: string }[];
}

/**
 * Joins as many parts as possible. One file that comes later cannot take away an array that is served.
 * @param former Parts that were one dataset before. If there are none, all parts have to fit.
 * @param others Parts that are left out if they do not fit to those.
 * @param served Paths of the arrays that are served; undefined after a restart.
 * @throws ZpublishError `invalid-metadata` if the former ones, or all, cannot be one dataset
 */
export async function fitParts(
  former: readonly KnownPart[],
  others: readonly KnownPart[],
  join: Join,
  served: ReadonlySet<string> | undefined,
): Promise<FittingParts> {
  const left: { name: string; reason: string }[] = [];
  let parts = former;
  let tree: JoinedTree | undefined;
  const isGrowing = former.length > 0 && others.length > 0;
  const kept = served ?? (isGrowing ? pathsOf(await runCooperatively(join(former))) : new Set());

  /** Adds those of some parts that fit. If they do not fit together, each half is tried by itself. */
  async function add(some: readonly KnownPart[]): Promise<void> {
    const together = sortedByName([...parts, ...some]);
    try {
      const joined = await runCooperatively(join(together));
      const lost = joined.refused.find(({ path }) => isGrowing && kept.has(path));
      if (lost !== undefined)
        throw new ZpublishError("invalid-metadata", `'${lost.path}' cannot be joined: ${lost.reason}`);
      tree = joined;
      parts = together;
    } catch (error) {
      if (!(error instanceof ZpublishError) || former.length === 0) throw error;
      const [only] = some;
      if (only === undefined) throw error;
      if (some.length === 1) left.push({ name: only.name, reason: messageOf(error) });
      else {
        const half = some.length >>> 1;
        await add(some.slice(0, half));
        await add(some.slice(half));
      }
    }
  }

  await add(others);
  tree ??= await runCooperatively(join(parts));
  return { parts, tree, left };
}

function pathsOf({ groups }: JoinedTree): ReadonlySet<string> {
  return new Set(groups.flatMap(({ arrays }) => arrays.map(({ stored }) => stored.path)));
}
