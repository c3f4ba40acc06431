import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { ChunkReader, PartChunkReader, PartChunks, RangeChunks } from "../zarr/chunk-reader.js";
import { completeCodec, encodeProblem, isInternal } from "../zarr/plan/codec-rules.js";
import { writableChain } from "../zarr/plan/codec-steps.js";
import type { StoredArray } from "../zarr/stored-array.js";
import type { StoredGroup, StoredJoin } from "../zarr/stored-tree.js";
import type { KnownPart } from "./description-records.js";
import type { JoinedArray, JoinedTree, PartSpan } from "./joined-tree.js";
import type { OpenParts } from "./open-parts.js";
import { createPartChunkReader } from "./part-chunk-reader.js";

/** An array of the last tree, and what it was made of. */
interface MadeArray {
  readonly from: unknown;
  readonly array: StoredArray;
}

/** Makes the arrays of joined trees. Those that have not changed since the last call are the same objects. */
export interface StoredJoins {
  /** @param parts In the order of the descriptions that were joined. */
  groupsOf(tree: JoinedTree, parts: readonly KnownPart[]): readonly StoredGroup[];
}

/**
 * Creates what makes the arrays of a joined dataset.
 * @param store Name of the dataset, as in `PartChunks`.
 */
export function createStoredJoins(store: string, open: OpenParts): StoredJoins {
  let made = new Map<string, MadeArray>();

  function arrayOf(joined: JoinedArray, parts: readonly KnownPart[]): MadeArray {
    const before = made.get(joined.stored.path);
    const [from, make] = recipeOf(joined, parts);
    return before !== undefined && isDeepStrictEqual(before.from, from) ? before : { from, array: make() };
  }

  /** Returns what an array is made of, without what grows, and what makes it. */
  function recipeOf(joined: JoinedArray, parts: readonly KnownPart[]): readonly [unknown, () => StoredArray] {
    const { stored, kind } = joined;
    if (kind === "values") {
      const chunks = keptChunks(store, stored.path, joined.values);
      return [{ ...stored, version: chunks.version }, () => Object.freeze({ ...stored, chunks })];
    }
    if (kind === "part") {
      const { name, identity } = parts[joined.part] as KnownPart;
      const span = { part: joined.part, start: 0, length: 1, from: 0, path: stored.path, isPassed: true };
      return [{ ...stored, name, identity }, () => partedArray(stored, -1, [span], parts)];
    }
    return [Symbol("grows"), () => partedArray(stored, joined.axis, joined.spans, parts)];
  }

  function partedArray(
    stored: JoinedArray["stored"],
    axis: number,
    spans: readonly PartSpan[],
    parts: readonly KnownPart[],
  ): StoredArray {
    let reader: PartChunkReader | undefined;
    const openReader = (): PartChunkReader => {
      reader ??= createPartChunkReader({ store, stored, axis, spans, parts }, open);
      return reader;
    };
    const chunks: PartChunks = Object.freeze({ kind: "parts", store, path: stored.path, axis, openReader });
    const { variants: own = [], ...rest } = stored;
    // An array of one part has pieces if some of its chunks have other codecs. A joined one may have some later: its plan must not change.
    const hasPieces = axis < 0 ? own.length > 0 : canBeMade(stored) || !isPassed(stored, axis, spans);
    return Object.freeze({ ...rest, chunks, ...(hasPieces && { variants: [[]] }) });
  }

  return {
    groupsOf(tree, parts) {
      const now = new Map<string, MadeArray>();
      const groups = tree.groups.map(({ path, attrs, arrays }) => {
        const stored = arrays.map((joined) => {
          const array = arrayOf(joined, parts);
          now.set(joined.stored.path, array);
          return array.array;
        });
        return Object.freeze({ path, attrs, arrays: Object.freeze(stored) });
      });
      made = now;
      return Object.freeze(groups);
    },
  };
}

/** Tells whether chunks of an array can be put together and encoded. */
function canBeMade({ dataType, codecs }: JoinedArray["stored"]): boolean {
  const served = writableChain(codecs.filter((codec) => !isInternal(codec)));
  return dataType.kind !== "O" && served.every((codec) => encodeProblem(completeCodec(codec)) === undefined);
}

/** Tells whether every chunk of an array is one chunk of one part. */
function isPassed({ chunkShape }: JoinedArray["stored"], axis: number, spans: readonly PartSpan[]): boolean {
  const chunkLength = chunkShape[axis] as number;
  return spans.every(
    ({ isPassed, start, from }) => isPassed && start % chunkLength === 0 && from % chunkLength === 0,
  );
}

/** Values as the one chunk of their array, with a version of their own: they change when a part does. */
function keptChunks(store: string, path: string, values: Uint8Array): RangeChunks {
  const version = createHash("sha256").update(values).digest().toString("hex", 0, 10);
  const check = Object.freeze({ version, isUnchanged: () => true });
  const reader: ChunkReader = {
    version: async () => version,
    versionNow: () => check,
    has: () => true,
    // Of its own, as callers write to it.
    read: async () => ({ bytes: values.slice(), version }),
    measure: async () => ({ byteLength: values.length, version }),
  };
  const name = { store, key: "", path, version };
  return Object.freeze({ kind: "ranges", ...name, form: "kept", differing: 0, openReader: () => reader });
}

/** Tells which part gives which steps. A part without steps is named, too. */
export function storedJoinOf(
  { kind, dimension }: Pick<StoredJoin, "kind" | "dimension">,
  { order, steps }: JoinedTree,
  parts: readonly KnownPart[],
): StoredJoin {
  const nameOf = (part: number) => (parts[part] as KnownPart).name;
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
