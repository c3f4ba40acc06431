import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { ZpublishError } from "../errors.js";
import { mapInLots } from "../event-loop/map-in-lots.js";
import type { JsonObject } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import { elementCount } from "../model/data-tree.js";
import {
  type ChunkPiece,
  type ChunkReader,
  type PartChunkReader,
  type PartChunks,
  PIECED,
  type PieceLayout,
  presentOf,
  type RangeChunks,
  type VersionCheck,
  versionOfPassed,
  versionOfPieces,
  versionsOf,
} from "../zarr/chunk-reader.js";
import { completeCodec, encodeProblem, isInternal } from "../zarr/plan/codec-rules.js";
import { writableChain } from "../zarr/plan/codec-steps.js";
import type { StoredArray } from "../zarr/stored-array.js";
import type { StoredGroup, StoredJoin } from "../zarr/stored-tree.js";
import { type KnownPart, type StoredLayout, storedLayoutOf } from "./describe-part.js";
import type { PartStored } from "./item-forms.js";
import type { JoinedArray, PartSpan } from "./join-arrays.js";
import type { JoinedTree } from "./join-parts.js";
import type { OpenParts } from "./open-parts.js";

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

/** Parts that are looked up at a time. */
const CONCURRENCY = 16;
/** Stored chunks, or parts with an index, that are looked up while the event loop waits. */
const MAX_CHECKED_NOW = 8;

/** Creates the reader of a joined array's chunks. Parts are opened when one of their chunks is first asked for. */
export function createPartChunkReader(
  array: PartedArray & { readonly stored: Pick<StoredArray, "dataType"> },
  open: OpenParts,
): PartChunkReader {
  const find = createFindPieces(array);

  const readerOf = ({ owner, path }: PassedChunk) => open.reader(owner, path);
  const readerNow = ({ owner, path }: PassedChunk) => open.readerNow(owner, path);

  async function version(...[coords, allocate]: Parameters<ChunkReader["version"]>) {
    const passed = find.passed(coords);
    if (passed !== undefined) {
      const found = await (await readerOf(passed)).version(passed.coords, allocate);
      return found === undefined ? undefined : versionOfPassed(passed, found);
    }
    const pieces = find.pieces(coords);
    const versions = await mapInLots(byPart(pieces), CONCURRENCY, async (ofPart) =>
      versionsOf(await readerOf(ofPart[0] as ClosedPiece), coordsOf(ofPart)),
    );
    return versionOfPieces(pieces, versions.flat());
  }

  /** Checks the versions of pieces at once; undefined if one of them has to wait. */
  function checkPieces(pieces: readonly ClosedPiece[], wasChecked?: boolean): VersionCheck | undefined {
    const checks: VersionCheck[] = [];
    const versions: (string | undefined)[] = [];
    for (const ofPart of byPart(pieces)) {
      const reader = readerNow(ofPart[0] as ClosedPiece);
      if (reader?.versionNow === undefined) return undefined;
      const present = presentOf(reader, coordsOf(ofPart));
      const looked = present === undefined ? coordsOf(ofPart) : [present.first];
      if (checks.length + looked.length > MAX_CHECKED_NOW) return undefined;
      const first = checks.length;
      for (const coords of looked) {
        const check = reader.versionNow(coords, wasChecked);
        if (check === undefined) return undefined;
        checks.push(check);
      }
      const found = checks.slice(first).map(({ version }) => version);
      versions.push(...(present?.are.map((isPresent) => (isPresent ? found[0] : undefined)) ?? found));
    }
    const found = versionOfPieces(pieces, versions);
    return found === undefined
      ? undefined
      : { version: found, isUnchanged: () => checks.every((check) => check.isUnchanged()) };
  }

  return {
    variantOf: (coords) => (find.passed(coords) === undefined ? PIECED : 0),
    version,
    versionNow(coords, wasChecked) {
      const passed = find.passed(coords);
      if (passed === undefined) return checkPieces(find.pieces(coords), wasChecked);
      const check = readerNow(passed)?.versionNow?.(passed.coords, wasChecked);
      return check && checkOfPassed(passed, check);
    },
    readNow(coords, options) {
      const passed = find.passed(coords);
      if (passed === undefined) return undefined;
      try {
        const stored = readerNow(passed)?.readNow?.(passed.coords, options);
        return stored && { ...stored, version: versionOfPassed(passed, stored.version) };
      } catch (error) {
        throw errorOfPassed(passed, error);
      }
    },
    async read(coords, options) {
      const passed = find.passed(coords);
      if (passed === undefined)
        throw new Error("expected a chunk of one part, received one of several pieces");
      try {
        const stored = await (await readerOf(passed)).read(passed.coords, options);
        return stored && { ...stored, version: versionOfPassed(passed, stored.version) };
      } catch (error) {
        throw errorOfPassed(passed, error);
      }
    },
    async measure(coords) {
      const passed = find.passed(coords);
      if (passed !== undefined) {
        const size = await (await readerOf(passed)).measure(passed.coords);
        return size && { ...size, version: versionOfPassed(passed, size.version) };
      }
      const { chunkShape, dataType } = array.stored;
      const found = await version(coords);
      return found === undefined
        ? undefined
        : { byteLength: elementCount(chunkShape) * dataType.itemSize, version: found };
    },
    async piecesOf(coords) {
      const pieces = find.pieces(coords);
      const readers = await mapInLots(byPart(pieces), CONCURRENCY, async (ofPart) => {
        const reader = await readerOf(ofPart[0] as ClosedPiece);
        return ofPart.map(() => reader);
      });
      const flat = readers.flat();
      return pieces.map(({ owner: _owner, path: _path, ...piece }, index) => ({
        ...piece,
        reader: flat[index] as ChunkReader,
      }));
    },
  };
}

/** Divides pieces into those of one array of one part each. */
function byPart(pieces: readonly ClosedPiece[]): ClosedPiece[][] {
  const parts: ClosedPiece[][] = [];
  for (const piece of pieces) {
    const last = parts.at(-1);
    if (last?.[0]?.layout === piece.layout) last.push(piece);
    else parts.push([piece]);
  }
  return parts;
}

function coordsOf(pieces: readonly ClosedPiece[]): (readonly number[])[] {
  return pieces.map(({ coords }) => coords);
}

/** A function of its own, so that what remembers the check does not retain the part. */
function checkOfPassed(passed: PassedChunk, check: VersionCheck): VersionCheck {
  return { version: versionOfPassed(passed, check.version), isUnchanged: () => check.isUnchanged() };
}

/** Gives the error of an overlong chunk the version that the chunk has here: it tells if the chunk was rewritten meanwhile. */
function errorOfPassed(passed: PassedChunk, error: unknown): unknown {
  if (!(error instanceof ZpublishError) || typeof error.details.version !== "string") return error;
  const version = versionOfPassed(passed, error.details.version);
  return new ZpublishError(error.code, error.message, {
    details: { ...error.details, version },
    cause: error.cause,
  });
}

/** A joined array, and the parts that it is made of. */
export interface PartedArray {
  /** As in `PartChunks`. */
  readonly store: string;
  readonly stored: Pick<StoredArray, "shape" | "chunkShape" | "fill">;
  /** The joined axis; -1 for the array of one part. */
  readonly axis: number;
  /** As in `JoinedArray`; of an array of one part, one that has all. */
  readonly spans: readonly PartSpan[];
  /** Parts by the index that spans have. */
  readonly parts: readonly KnownPart[];
}

/** A chunk of a part that is passed through. */
export interface PassedChunk extends Pick<ChunkPiece, "part" | "coords"> {
  readonly owner: KnownPart;
  /** Path of the array in the part. */
  readonly path: string;
}

/** A piece whose part need not be open. */
export type ClosedPiece = PassedChunk & Omit<ChunkPiece, "reader">;

/** Finds the chunks of parts behind chunks of a joined array. */
export interface FindPieces {
  /** Returns the chunk of a part that a chunk of the joined array is, with all its bytes; undefined if it is made of pieces. */
  passed(chunkCoords: readonly number[]): PassedChunk | undefined;
  /** Returns the pieces of a chunk, those of one part together, parts in order. */
  pieces(chunkCoords: readonly number[]): ClosedPiece[];
}

/** Properties that all chunks of a run of steps have in common. */
interface Detail extends PartLayout {
  readonly owner: KnownPart;
  readonly isStacked: boolean;
  readonly isPassed: boolean;
}

/** Places of the chunks of a part along one axis. */
interface AxisPlace {
  readonly index: number;
  readonly origin: number;
  readonly begin: number;
  readonly end: number;
}

/** Creates what finds the chunks of an array's parts. */
export function createFindPieces({ store, stored, axis, spans, parts }: PartedArray): FindPieces {
  const { shape, chunkShape } = stored;
  // An array of one part is one step.
  const chunkLength = chunkShape[axis] ?? 1;
  const extent = shape[axis] ?? 1;
  const starts = Float64Array.from(spans, ({ start }) => start);
  const details: Detail[] = [];

  /** Returns the number of the run of steps that has a step. */
  function spanAt(step: number): number {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((starts[middle] as number) <= step) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  function detailOf(number: number): Detail {
    const known = details[number];
    if (known !== undefined) return known;
    const span = spans[number] as PartSpan;
    const owner = parts[span.part] as KnownPart;
    const own = owner.description.arrays.find((array) => array.stored.path === span.path)?.stored;
    if (own === undefined) throw new Error(`expected '${span.path}' in ${owner.name}`);
    const detail = {
      ...createPartLayout(store, owner.name, own, span, stored, axis),
      owner,
      isStacked: own.shape.length < shape.length,
      // Which chunks have other codecs is only known once the part is open.
      isPassed: span.isPassed && (own.variants ?? []).length === 0,
    };
    details[number] = detail;
    return detail;
  }

  function ownCoords({ isStacked }: Detail, coords: readonly number[]): readonly number[] {
    return isStacked ? coords.toSpliced(axis, 1) : coords;
  }

  function passed(coords: readonly number[]): PassedChunk | undefined {
    const begin = (coords[axis] ?? 0) * chunkLength;
    const number = spanAt(begin);
    const { start, length, from, path } = spans[number] as PartSpan;
    // At the end of the array, what lies behind it in the chunk belongs to no part.
    const end = Math.min(begin + chunkLength, extent);
    const place = begin - start + from;
    if (end > start + length || place % chunkLength !== 0) return undefined;
    const detail = detailOf(number);
    if (!detail.isPassed) return undefined;
    const own = axis < 0 ? coords : ownCoords(detail, coords.with(axis, place / chunkLength));
    return { owner: detail.owner, path, part: detail.id, coords: own };
  }

  /** Lists the chunks of a part along an axis that have items between two places of the joined array. */
  function placesAlong(length: number, begin: number, end: number, { start, stop, from }: Run): AxisPlace[] {
    const places: AxisPlace[] = [];
    const first = Math.max(begin, start) - start + from;
    const last = Math.min(end, stop) - start + from;
    for (let index = Math.floor(first / length); index * length < last; index++) {
      const origin = start - from + index * length;
      places.push({ index, origin, begin: Math.max(start, origin), end: Math.min(stop, origin + length) });
    }
    return places;
  }

  function piecesOfSpan(number: number, coords: readonly number[]): ClosedPiece[] {
    const { start, length, from, path } = spans[number] as PartSpan;
    const detail = detailOf(number);
    const { layout, id, owner } = detail;
    let found: AxisPlace[][] = [[]];
    for (const [at, stop] of shape.entries()) {
      const own = layout.chunkShape[at] as number;
      const begin = (coords[at] as number) * (chunkShape[at] as number);
      const end = begin + (chunkShape[at] as number);
      const run = at === axis ? { start, stop: start + length, from } : { start: 0, stop, from: 0 };
      const places = placesAlong(own, begin, end, run);
      found = found.flatMap((before) => places.map((place) => [...before, place]));
    }
    return found.map((places) => ({
      ...{ owner, path, layout, part: id },
      coords: ownCoords(
        detail,
        places.map(({ index }) => index),
      ),
      origin: places.map(({ origin }) => origin),
      begin: places.map(({ begin }) => begin),
      end: places.map(({ end }) => end),
    }));
  }

  return {
    passed,
    pieces(coords) {
      const begin = (coords[axis] ?? 0) * chunkLength;
      const end = Math.min(begin + chunkLength, extent);
      const found: ClosedPiece[] = [];
      for (let number = spanAt(begin); number < spans.length && (starts[number] as number) < end; number++)
        found.push(...piecesOfSpan(number, coords));
      return found;
    },
  };
}

/** Steps of the joined array that a part has along an axis, and the first of its own. */
interface Run {
  readonly start: number;
  readonly stop: number;
  readonly from: number;
}

/** A part's array as pieces of a joined one need it. */
export interface PartLayout {
  readonly layout: PieceLayout;
  /** As `ChunkPiece.part`. */
  readonly id: string;
}

/**
 * Creates the layout of a part's array in terms of the joined array.
 * @param store Name of the joined dataset, as in `PartChunks`.
 * @param part Name of the part.
 * @param own The part's array. If it has no joined axis, its chunks have length 1 along that.
 * @param joined The joined array, whose absent chunks may mean something else.
 */
export function createPartLayout(
  store: string,
  part: string,
  own: PartStored,
  { path, conversion }: Pick<PartSpan, "path" | "conversion">,
  joined: Pick<StoredArray, "fill" | "shape">,
  axis: number,
): PartLayout {
  const stored = storedLayoutOf(own);
  const isStacked = own.shape.length < joined.shape.length;
  const form = isStacked ? withAxis(stored, axis) : stored;
  const { fillItem, maxStoredByteLength: _bound, ...rest } = form;
  const content = {
    ...rest,
    conversion: conversion ?? null,
    fill: fillItem && Buffer.from(fillItem).toString("hex"),
  };
  const text = stringifyJson([part, path, content as unknown as JsonObject]);
  const id = createHash("sha256").update(text).digest().toString("hex", 0, 8);
  const title = `part '${part}', array '${path}'`;
  const hasOwnFill = conversion !== undefined || !isSameItem(fillItem, joined.fill.item);
  return { layout: Object.freeze({ ...form, name: `${store}\n${id}`, title, conversion, hasOwnFill }), id };
}

/** Returns a layout with another axis, along which chunks have length 1. */
function withAxis(layout: StoredLayout, axis: number): StoredLayout {
  const axisOrder = layout.axisOrder.map((each) => (each < axis ? each : each + 1));
  return { ...layout, chunkShape: layout.chunkShape.toSpliced(axis, 0, 1), axisOrder: [axis, ...axisOrder] };
}

function isSameItem(one: Uint8Array | null, other: Uint8Array | null): boolean {
  const longer = one ?? other ?? [];
  return longer.every((_, index) => (one?.[index] ?? 0) === (other?.[index] ?? 0));
}
