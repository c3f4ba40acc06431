import { createHash } from "node:crypto";
import { isSameList } from "../collections/sorted-lists.js";
import { isDamage, messageOf, ZpublishError } from "../errors.js";
import { workThrough } from "../event-loop/work-through.js";
import type { FileFinder } from "../find/file-finder.js";
import { type BrokenPart, type KeptParts, type KnownPart, sortedByName } from "./describe-part.js";
import type { KeptDescriptions } from "./kept-descriptions.js";

/** Parts that are described at a time. */
const CONCURRENCY = 8;

/** Describes the file of a path. @throws ZpublishError if it cannot be opened */
type DescribeFile = (name: string) => Promise<Omit<KnownPart, "version">>;

/** Parts at one time, each list sorted by name as the finder does. */
export interface ListedParts {
  /** Parts that were in use before and have not changed. */
  readonly former: readonly KnownPart[];
  /** Parts that are new, have changed, or were not in use before. */
  readonly others: readonly KnownPart[];
  /** Files that are left out, with the reason. */
  readonly left: readonly { readonly name: string; readonly reason: string }[];
  /** Names of parts that were in use and are gone, since the last list. */
  readonly gone: readonly string[];
  /** Text that changes whenever the parts do. */
  readonly fingerprint: string;
}

/** Creates the list of a dataset's parts. Nothing is read before its first call. */
export function createPartList(finder: FileFinder, describe: DescribeFile, descriptions: KeptDescriptions) {
  /** All parts that were described, in use or not. */
  let known = new Map<string, KnownPart>();
  let used: ReadonlySet<string> = new Set();
  /** Files that could not be described. One without a version could not be read, which may be otherwise at the next look. */
  const unread = new Map<string, Omit<BrokenPart, "version"> & { readonly version?: string }>();
  /** Parts in use that have changed, although the finder saw no change. */
  const doubtful = new Set<string>();
  let isRestored = false;
  let written: KeptParts = { parts: [], broken: [] };
  /** The last look, until parts are listed from it. */
  let looked: Looked | undefined;

  async function look(): Promise<Looked> {
    const { files, problems } = await finder.look();
    const present = new Map(files.map(({ path, version = "" }) => [path, { path, version }]));
    return { present, problems };
  }

  function fingerprintAt(now: Looked): string {
    const isPending = doubtful.size > 0 || [...unread.values()].some(({ version }) => version === undefined);
    const text = fingerprintOf(now);
    return isPending ? `${text}, to be read again` : text;
  }

  function isKnown({ path, version }: FileVersion): boolean {
    const found = unread.get(path) ?? known.get(path);
    return !doubtful.has(path) && found?.version === version;
  }

  async function describeFile({ path: name, version }: FileVersion, onPart: (part: KnownPart) => void) {
    doubtful.delete(name);
    try {
      const part = descriptions.share({ ...(await describe(name)), version });
      known.set(name, part);
      unread.delete(name);
      onPart(part);
    } catch (error) {
      if (!(error instanceof ZpublishError)) throw error;
      unread.set(name, { name, reason: messageOf(error), ...(isDamage(error) && { version }) });
      known.delete(name);
    }
  }

  async function restore(): Promise<void> {
    if (isRestored) return;
    isRestored = true;
    const kept = await descriptions.read();
    if (kept === undefined) return;
    known = new Map(kept.parts.map((part) => [part.name, part]));
    used = new Set(known.keys());
    for (const part of kept.broken) unread.set(part.name, part);
    written = kept;
  }

  async function list(onPart: (part: KnownPart) => void): Promise<ListedParts> {
    await restore();
    const now = looked ?? (await look());
    looked = undefined;
    const before = new Map(known);
    const todo = [...now.present.values()].filter((file) => !isKnown(file));
    await workThrough(todo, CONCURRENCY, (file) => describeFile(file, onPart));
    for (const files of [known, unread])
      for (const name of files.keys()) if (!now.present.has(name)) files.delete(name);
    const sorted = sortedByName(known.values());
    const isFormer = (part: KnownPart) => used.has(part.name) && before.get(part.name) === part;
    const problems = now.problems.map(({ path, reason }) => ({ name: path, reason }));
    const left = [...unread.values()].map(({ name, reason }) => ({ name, reason }));
    return {
      former: sorted.filter(isFormer),
      others: sorted.filter((part) => !isFormer(part)),
      left: sortedByName([...left, ...problems]),
      gone: [...used].filter((name) => !known.has(name) && !now.present.has(name)).sort(),
      fingerprint: fingerprintAt(now),
    };
  }

  return {
    /** Looks at the files once, and returns the fingerprint that {@link list} would have. @throws as `FileFinder.look` */
    async fingerprint() {
      await restore();
      looked = await look();
      return fingerprintAt(looked);
    },
    /** Describes new and changed parts. Looks at the files, unless `fingerprint` has since the last call. @throws as `FileFinder.look` */
    list,
    /** Takes over which parts are in use. */
    use(parts: readonly KnownPart[]) {
      used = new Set(parts.map(({ name }) => name));
      const broken = [...unread.values()].filter((file): file is BrokenPart => file.version !== undefined);
      if (isSameList(parts, written.parts) && isSameList(broken, written.broken)) return;
      written = { parts, broken };
      // Off the way of requests: nothing waits until it is written.
      void descriptions.write(written);
    },
    /** Describes a part again at the next call of `list`, even if the finder sees no change. */
    describeAgain: (name: string) => void doubtful.add(name),
  };
}

interface FileVersion {
  readonly path: string;
  readonly version: string;
}

/** The files at one look, by path. */
interface Looked {
  readonly present: ReadonlyMap<string, FileVersion>;
  readonly problems: readonly { readonly path: string; readonly reason: string }[];
}

function fingerprintOf({ present, problems }: Looked): string {
  const lines = Array.from(present.values(), (file) => `${file.path}\n${file.version}`);
  lines.push(...problems.map(({ path, reason }) => `${path}: ${reason}`));
  return createHash("sha256").update(lines.join("\n")).digest("hex").slice(0, 40);
}
