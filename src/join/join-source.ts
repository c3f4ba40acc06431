import { createHash } from "node:crypto";
import { messageOf, ZpublishError } from "../errors.js";
import { type CooperativeTask, runCooperatively } from "../event-loop/cooperative-task.js";
import { createOneAtATime } from "../event-loop/joined.js";
import type { FileFinder } from "../find/file-finder.js";
import type { KeptIndexes } from "../formats/kept-indexes.js";
import type { ChunkReader, PartChunkReader, PartChunks, RangeChunks } from "../zarr/chunk-reader.js";
import { completeCodec, encodeProblem, isInternal } from "../zarr/plan/codec-rules.js";
import { writableChain } from "../zarr/plan/codec-steps.js";
import type { StoredArray } from "../zarr/stored-array.js";
import {
  type Source,
  type StoredGroup,
  type StoredJoin,
  type StoredTree,
  withinLocation,
} from "../zarr/stored-tree.js";
import { describePart, type KnownPart, sortedByName } from "./describe-part.js";
import type { JoinedArray, PartSpan } from "./join-arrays.js";
import { type JoinedTree, joinSteps } from "./join-parts.js";
import { createKeptDescriptions } from "./kept-descriptions.js";
import { createOpenParts, type OpenParts } from "./open-parts.js";
import { createPartList, type ListedParts } from "./part-list.js";
import { type createOpenPlaced, findPlaces } from "./part-places.js";
import { createJoinedReader } from "./pieces.js";

/** Files that are left out and named one by one; more are counted. */
const MAX_NAMED = 20;

/** Join of files into one dataset, as an operator asks for it. */
export interface Joining {
  /** `concat` along a dimension that they have; `stack` along a new one, with one step per file. */
  readonly kind: "concat" | "stack";
  readonly dimension: string;
  /**
   * Regular expression with one group, matched against the path of each file: its text is the coordinate in a stack, a number if all are.
   * Default: there is none, unless the files have a scalar of the dimension's name.
   */
  readonly coordinate?: string;
}

/** Options of {@link createJoinSource}. */
interface JoinSourceOptions {
  /** As the operator wrote it, for messages. */
  readonly location: string;
  /** Finds the files, and their versions. */
  readonly finder: FileFinder;
  /** Text that tells which files the finder finds, besides its root. */
  readonly patterns: string;
  readonly join: Joining;
  /** Opens a file. */
  readonly openPart: (location: string) => Promise<Source>;
  /** Opens the chunks of a part by their places. Default: the part is opened for them. */
  readonly openPlaced?: ReturnType<typeof createOpenPlaced>;
  /** Keeps descriptions of files between runs. Default: files are read again. */
  readonly kept?: KeptIndexes | undefined;
}

/**
 * Creates the source of several files that are one dataset. All files have to fit when they are first read. A file that cannot be opened is
 * left out with a warning; so is a file that comes later and does not fit.
 */
export function createJoinSource(options: JoinSourceOptions): Source {
  const { location, finder, join, openPart } = options;
  const identity = createHash("sha256")
    .update(JSON.stringify(["join", finder.root, options.patterns, join]))
    .digest("hex")
    .slice(0, 40);
  const pattern = join.coordinate === undefined ? undefined : new RegExp(join.coordinate, "u");
  const openFile = (name: string) => openPart(finder.locationOf(name));
  const open = createOpenParts({
    openPart: openFile,
    openPlaced: options.openPlaced,
    identity,
    onChanged: (name) => list.describeAgain(name),
  });
  const descriptions = createKeptDescriptions(options.kept, identity);
  const list = createPartList(finder, describe, descriptions);
  const oneAtATime = createOneAtATime();
  let latest: { readonly listed: ListedParts; readonly tree: StoredTree } | undefined;

  async function describe(name: string): Promise<Omit<KnownPart, "version">> {
    if (pattern !== undefined) coordinateOf(name, pattern);
    const source = await openFile(name);
    try {
      const tree = await source.readTree();
      const dimension = join.kind === "concat" ? join.dimension : undefined;
      const description = await describePart(name, tree, dimension);
      return { name, identity: tree.identity, description, places: findPlaces(tree, description) };
    } finally {
      await source.close();
    }
  }

  function joinOf(parts: readonly KnownPart[]) {
    return joinSteps(
      parts.map(({ description }) => description),
      {
        kind: join.kind,
        dimension: join.dimension,
        ...(pattern && { coordinate: numbersOrTexts(parts.map(({ name }) => coordinateOf(name, pattern))) }),
      },
    );
  }

  async function read(progress?: (arraysRead: number) => void): Promise<StoredTree> {
    let arraysRead = 0;
    const onPart = ({ description }: KnownPart): void => {
      arraysRead += description.arrays.length;
      progress?.(arraysRead);
    };
    const listed = await list.list(onPart);
    const { fingerprint } = listed;
    if (latest !== undefined && isSame(listed, latest.listed)) {
      latest = { listed, tree: Object.freeze({ ...latest.tree, fingerprint }) };
      return latest.tree;
    }
    if (listed.former.length + listed.others.length === 0) throw nothingToJoin(listed);
    const fitting = await fitParts(listed.former, listed.others, joinOf);
    const { parts, tree: joined } = fitting;
    list.use(parts);
    const tree: StoredTree = Object.freeze({
      groups: groupsOf(joined, parts, identity, open),
      refused: Object.freeze(joined.refused),
      warnings: Object.freeze([
        ...joined.warnings,
        ...some([...listed.left, ...fitting.left].map(leftOutText)),
        ...some(listed.gone.map((name) => `'${name}' is gone, and its steps with it`)),
      ]),
      identity,
      fingerprint,
      join: storedJoinOf(join, joined, parts),
    });
    latest = { listed, tree };
    return tree;
  }

  function nothingToJoin({ left }: ListedParts): ZpublishError {
    const [first] = left;
    if (first === undefined)
      return new ZpublishError("invalid-metadata", `expected files to join, found none in ${finder.root}`);
    const others = left.length > 1 ? `, nor ${left.length - 1} others` : "";
    const what = first.name === "" ? "files cannot be found" : `${first.name} cannot be opened${others}`;
    return new ZpublishError("invalid-metadata", `${what}: ${first.reason}`);
  }

  return {
    location,
    readTree: (progress) => oneAtATime(() => withinLocation(location, () => read(progress))),
    fingerprint: () => oneAtATime(() => withinLocation(location, () => list.fingerprint())),
    close: () => descriptions.close(),
  };
}

/** Names a file that is left out. A problem without a name is about several, or about the folder of all. */
function leftOutText({ name, reason }: ListedParts["left"][number]): string {
  return name === "" ? reason : `'${name}' is left out: ${reason}`;
}

/** Returns the first of some warnings, and the number of the others. */
function some(warnings: readonly string[]): string[] {
  const more = warnings.length - MAX_NAMED;
  return more > 0 ? [...warnings.slice(0, MAX_NAMED), `${more} more files like these`] : [...warnings];
}

/** Tells whether parts and files that are left out are the same. */
function isSame(one: ListedParts, other: ListedParts): boolean {
  const isSameList = <T>(a: readonly T[], b: readonly T[], same: (a: T, b: T) => boolean) =>
    a.length === b.length && a.every((item, index) => same(item, b[index]!));
  const partsOf = ({ former, others }: ListedParts) => sortedByName([...former, ...others]);
  return (
    isSameList(partsOf(one), partsOf(other), (a, b) => a === b) &&
    isSameList(one.gone, other.gone, (a, b) => a === b) &&
    isSameList(one.left, other.left, (a, b) => a.name === b.name && a.reason === b.reason)
  );
}

/** Returns the text that the path of a file has for its coordinate. @throws ZpublishError `unsupported` if the path does not match */
function coordinateOf(name: string, pattern: RegExp): string {
  const text = pattern.exec(name)?.[1];
  if (text !== undefined) return text;
  const expected = `expected a path that matches ${pattern.source} to have a coordinate`;
  throw new ZpublishError("unsupported", `${expected}, received '${name}'`);
}

function numbersOrTexts(texts: readonly string[]): readonly (string | number)[] {
  return texts.every((text) => /^-?\d+(\.\d+)?$/.test(text)) ? texts.map(Number) : texts;
}

/** Joins parts. @throws ZpublishError `invalid-metadata` if they cannot be one dataset */
type Join = (parts: readonly KnownPart[]) => CooperativeTask<JoinedTree>;

/** Parts that are one dataset, and those that do not fit to them. */
interface FittingParts {
  /** Sorted by name. */
  readonly parts: readonly KnownPart[];
  readonly tree: JoinedTree;
  readonly left: readonly { readonly name: string; readonly reason: string }[];
}

/**
 * Joins as many parts as possible. One file that comes later cannot take away an array that is served.
 * @throws ZpublishError `invalid-metadata` if the former ones, or all, cannot be one dataset
 */
async function fitParts(
  former: readonly KnownPart[],
  others: readonly KnownPart[],
  join: Join,
): Promise<FittingParts> {
  const left: { name: string; reason: string }[] = [];
  let parts = former;
  let tree: JoinedTree | undefined;
  const isGrowing = former.length > 0 && others.length > 0;
  const before = isGrowing ? (await runCooperatively(join(former))).groups : [];
  const kept = new Set(before.flatMap(({ arrays }) => arrays.map(({ stored }) => stored.path)));

  /** Adds those of some parts that fit. If they do not fit together, each half is tried by itself. */
  async function add(some: readonly KnownPart[]): Promise<void> {
    const together = sortedByName([...parts, ...some]);
    try {
      const joined = await runCooperatively(join(together));
      const lost = joined.refused.find(({ path }) => kept.has(path));
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

/** Makes the groups and arrays of a joined tree. */
function groupsOf(
  tree: JoinedTree,
  parts: readonly KnownPart[],
  store: string,
  open: OpenParts,
): readonly StoredGroup[] {
  function partedArray(stored: JoinedArray["stored"], axis: number, spans: readonly PartSpan[]): StoredArray {
    let reader: PartChunkReader | undefined;
    const openReader = (): PartChunkReader => {
      reader ??= createJoinedReader({ store, stored, axis, spans, parts }, open);
      return reader;
    };
    const chunks: PartChunks = Object.freeze({ kind: "parts", store, path: stored.path, axis, openReader });
    const { variants: own = [], ...rest } = stored;
    // An array of one part has pieces if some of its chunks have other codecs. A joined one may have some later: its plan must not change.
    const hasPieces = axis < 0 ? own.length > 0 : canBeMade(stored) || !isPassed(stored, axis, spans);
    return Object.freeze({ ...rest, chunks, ...(hasPieces && { variants: [[]] }) });
  }

  function arrayOf(joined: JoinedArray): StoredArray {
    const { stored, kind } = joined;
    if (kind === "values")
      return Object.freeze({ ...stored, chunks: keptChunks(store, stored.path, joined.values) });
    if (kind === "joined") return partedArray(stored, joined.axis, joined.spans);
    const span = { part: joined.part, start: 0, length: 1, path: stored.path, isPassed: true };
    return partedArray(stored, -1, [span]);
  }

  return Object.freeze(
    tree.groups.map(({ path, attrs, arrays }) =>
      Object.freeze({ path, attrs, arrays: Object.freeze(arrays.map(arrayOf)) }),
    ),
  );
}

/** Tells whether chunks of an array can be put together and encoded. */
function canBeMade({ dataType, codecs }: JoinedArray["stored"]): boolean {
  const served = writableChain(codecs.filter((codec) => !isInternal(codec)));
  return dataType.kind !== "O" && served.every((codec) => encodeProblem(completeCodec(codec)) === undefined);
}

/** Tells whether every chunk of an array is one chunk of one part. */
function isPassed({ chunkShape }: JoinedArray["stored"], axis: number, spans: readonly PartSpan[]): boolean {
  const chunkLength = chunkShape[axis]!;
  return spans.every(({ isPassed, start }) => isPassed && start % chunkLength === 0);
}

/** Values as the one chunk of their array, with a version of their own: they change when a part does. */
function keptChunks(store: string, path: string, values: Uint8Array): RangeChunks {
  const version = createHash("sha256").update(values).digest().toString("hex", 0, 10);
  const found = Object.freeze({ token: version, isUnchanged: () => true });
  const reader: ChunkReader = {
    version: () => found,
    places: { has: () => true, variantOf: () => 0, placeOf: undefined },
    // Of its own, as callers write to it.
    read: () => ({ bytes: values.slice(), version }),
  };
  const name = { store, key: "", path, version };
  return Object.freeze({ kind: "ranges", ...name, form: "kept", differing: 0, openReader: () => reader });
}

/** Tells which part gives which steps. A part without steps is named, too. */
function storedJoinOf(
  { kind, dimension }: Pick<StoredJoin, "kind" | "dimension">,
  { order, steps }: JoinedTree,
  parts: readonly KnownPart[],
): StoredJoin {
  const nameOf = (part: number) => parts[part]!.name;
  const given = new Set(steps.map(({ part }) => part));
  const end = steps.at(-1);
  const start = end === undefined ? 0 : end.start + end.length;
  const without = order.filter((part) => !given.has(part));
  return Object.freeze({
    ...{ kind, dimension },
    parts: Object.freeze([
      ...steps.map(({ part, start, length }) => ({ name: nameOf(part), start, length })),
      ...without.map((part) => ({ name: nameOf(part), start, length: 0 })),
    ]),
  });
}
