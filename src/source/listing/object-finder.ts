import { messageOf, ZpublishError } from "../../errors.js";
import { type CooperativeTask, runCooperatively } from "../../event-loop/cooperative-task.js";
import { workThrough } from "../../event-loop/work-through.js";
import { openByteStore } from "../bytes/open-byte-store.js";
import { withSlash } from "../bytes/store-settings.js";
import type { FileFinder, FileFinderOptions, Findings, FoundFile, Problem } from "./file-finder.js";
import { assembleFindings } from "./findings.js";
import { createPrefix, lookAtPrefix, type Prefix } from "./object-prefix.js";
import { createPathFilter } from "./path-filter.js";

/** Prefixes that are looked at at a time. */
const PREFIXES_AT_ONCE = 8;
/**
 * Prefixes that a look after the first asks for at most: the root, new ones, and those that were not asked for for the longest time. A
 * bucket has no times of its prefixes, and every listing is paid for: 256 a minute are two dollars a day.
 */
const PREFIXES_PER_LOOK = 256;

/**
 * Creates the finder of a prefix of a bucket. A prefix that ends in `.zarr` is a store, and no request is made for it unless versions
 * are asked for. Another one is listed, and is a store if it has a root document. Objects count at once, since they are written as a
 * whole.
 * @throws ZpublishError `invalid-config`
 */
export function createObjectFinder(options: FileFinderOptions): FileFinder {
  const { include, exclude, withVersions = false, stores = [] } = options;
  const root = withSlash(options.root);
  const context = {
    ...{ store: openByteStore(root, stores), withVersions },
    filter: createPathFilter(include, exclude),
  };
  const top = createPrefix("");
  let findings: Findings | undefined;
  /** True if something has changed since the findings were made, also in a look that failed. */
  let hasChanged = true;
  let looks = 0;

  async function look(signal?: AbortSignal): Promise<Findings> {
    looks++;
    await visit(top, signal);
    if (top.failure !== undefined)
      throw new ZpublishError("source-unreadable", `the prefix cannot be listed: ${top.failure}`);
    let left = findings === undefined ? Number.POSITIVE_INFINITY : PREFIXES_PER_LOOK - 1;
    const due = await runCooperatively(dueBelow(top, looks, withVersions));
    await workThrough(due.slice(0, left), PREFIXES_AT_ONCE, async (prefix, add) => {
      if (prefix.lookedAtIn === looks || left-- <= 0) return;
      await visit(prefix, signal);
      add(prefix.content.prefixes.filter((below) => below.lookedAtIn === 0));
    });
    if (findings === undefined || hasChanged) {
      findings = await runCooperatively(gather(top, findings));
      hasChanged = false;
    }
    return findings;
  }

  async function visit(prefix: Prefix, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    prefix.lookedAtIn = looks;
    const { content, failure } = prefix;
    try {
      prefix.content = await lookAtPrefix(context, prefix, signal);
      prefix.failure = undefined;
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof ZpublishError && error.code === "invalid-config") throw error;
      prefix.failure = messageOf(error);
    }
    if (prefix.content !== content || prefix.failure !== failure) hasChanged = true;
  }

  return { root, look, locationOf: (path) => root + path };
}

/** Returns the prefixes that were not asked for in this look, new ones first, then those of the oldest looks. */
function* dueBelow(top: Prefix, look: number, withVersions: boolean): CooperativeTask<readonly Prefix[]> {
  const byLook = new Map<number, Prefix[]>();
  const all = [...top.content.prefixes];
  for (let prefix = all.pop(); prefix !== undefined; prefix = all.pop()) {
    yield;
    const { isStore, lookedAtIn, content } = prefix;
    for (const below of content.prefixes) all.push(below);
    if (lookedAtIn === look || (isStore && !withVersions)) continue;
    const group = byLook.get(lookedAtIn);
    if (group === undefined) byLook.set(lookedAtIn, [prefix]);
    else group.push(prefix);
  }
  return [...byLook].sort(([a], [b]) => a - b).flatMap(([, group]) => group);
}

/** Gathers what is below all prefixes. */
function* gather(top: Prefix, before: Findings | undefined): CooperativeTask<Findings> {
  const files: FoundFile[] = [];
  const problems: Problem[] = [];
  const all = [top];
  for (let prefix = all.pop(); prefix !== undefined; prefix = all.pop()) {
    yield;
    const { path, content, failure } = prefix;
    if (failure !== undefined) problems.push({ path, reason: `it cannot be listed: ${failure}` });
    for (const file of content.files) {
      files.push(file);
      if (files.length % 512 === 0) yield;
    }
    for (const problem of content.problems) problems.push(problem);
    for (const below of content.prefixes) all.push(below);
  }
  return yield* assembleFindings(files, problems, before);
}
