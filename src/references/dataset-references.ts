import type { ChunkService } from "../chunk/chunk-service.js";
import { indexesIn } from "../collections/combinations.js";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import { createSlice } from "../event-loop/cooperative-task.js";
import { type MaybePromise, mapInLots, whenDone } from "../event-loop/maybe-promise.js";
import type { JsonObject, JsonValue } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import { elementCount } from "../model/data-tree.js";
import { openChunkReader } from "../open/chunk-reader.js";
import { type BytePlace, type ChunkReader, HIDDEN, versionsOf } from "../zarr/chunk-reader.js";
import { storedChunksOf } from "../zarr/plan/create-encoding-plan.js";

/** Rules by which references to the chunks of a dataset are made. */
export interface ReferenceRules {
  /** Chunks as served. */
  readonly chunks: Pick<ChunkService, "openReader">;
  /** Returns the path or URL of a file for clients; undefined if they cannot read it. */
  readonly urlOf: (place: BytePlace) => string | undefined;
  /** Returns the URL of a chunk that is served; undefined if there is no server. */
  readonly chunkUrl?: (path: string, key: string) => string;
  /** Arrays to leave out: why, by path. Default: none. */
  readonly leftOut?: ReadonlyMap<string, string>;
  readonly signal: AbortSignal;
}

/** A chunk in kerchunk's references: where it lies, or its bytes. */
export type ChunkReference = Partial<BytePlace> & { readonly bytes?: Uint8Array };

/** A chunk of an array; `reference` is undefined if it is absent. */
interface ReferredChunk {
  readonly key: string;
  /** Its number in the grid, counted in C order. */
  readonly number: number;
  readonly reference: ChunkReference | undefined;
}

/** A metadata document; or chunks of an array, in the order of the files that have them. Absent ones may be left out. */
export type ReferenceStep =
  | { readonly key: string; readonly document: JsonObject }
  | {
      readonly path: string;
      /** Number of all chunks of the array. */
      readonly count: number;
      readonly chunks: readonly ReferredChunk[];
    };

/** Decoded bytes up to which an array is written into the references, unless its chunks lie where clients can read them. */
const SMALL_ARRAY_BYTES = 64 * 1024;
/** Decoded bytes of such chunks of one array that are written into the references if there is no server to refer to. */
const MAX_INLINE_BYTES = 4 * 2 ** 20;
/** Bytes assumed for an item that has no fixed size. */
const OBJECT_BYTES = 16;
/** Chunks that are looked for at a time. */
const LOT = 64;
/** Length of a piece of text, in characters. */
const PIECE_CHARS = 64 * 1024;

/** A chunk, and where its stored bytes are if they are the served ones; undefined if it is absent. */
interface LocatedChunk {
  readonly key: string;
  readonly coords: readonly number[];
  readonly place: BytePlace | typeof HIDDEN | undefined;
}

/**
 * Finds the chunks of an array in lots, those of a file one after the other. Where files can be listed, those that are not there are left
 * out, and their chunks.
 * @throws ZpublishError `source-changed`, `source-unreadable`, `cancelled`
 */
async function* locatedChunks(
  { plan }: ServedArray,
  signal: AbortSignal,
): AsyncGenerator<readonly LocatedChunk[]> {
  const reader = openChunkReader(plan.source);
  const isPassed = plan.kind === "passthrough";
  const locate = isPassed ? reader.locate : undefined;
  const { gridShape } = plan.served;
  const { chunksPerFile = [], list } = (isPassed && reader.files) || {};
  const filesAlong = gridShape.map((count, axis) => Math.ceil(count / (chunksPerFile[axis] ?? 1)));
  const listed = plan.absentIsAbsent ? await list?.(filesAlong) : undefined;

  function placeOf(coords: readonly number[]): MaybePromise<LocatedChunk["place"]> {
    const located = locate === undefined ? HIDDEN : locate(coords, listed !== undefined);
    return whenDone(located, (place) => {
      // Clients take an absent chunk for fill values, unless the server fills it with others.
      if (!plan.absentIsAbsent) return place ?? HIDDEN;
      if (place !== HIDDEN) return place;
      return whenDone(versionsOf(reader, storedChunksOf(plan, coords)), (versions) =>
        versions.some(({ token }) => token !== undefined) ? HIDDEN : undefined,
      );
    });
  }

  function* chunkCoords(): Generator<readonly number[]> {
    for (const file of listed ?? indexesIn(filesAlong)) {
      const first = file.map((index, axis) => index * (chunksPerFile[axis] ?? 1));
      const counts = first.map((from, axis) => Math.min(chunksPerFile[axis] ?? 1, gridShape[axis]! - from));
      for (const inFile of indexesIn(counts)) yield inFile.map((index, axis) => first[axis]! + index);
    }
  }

  // Places in an index say nothing about another version of its file.
  if (reader.places !== undefined) await reader.version(gridShape.map(() => 0));
  const slice = createSlice();
  async function locateAll(lot: readonly (readonly number[])[]): Promise<readonly LocatedChunk[]> {
    if (signal.aborted) throw new ZpublishError("cancelled", "the client has gone");
    if (slice.isOver()) await slice.next();
    return mapInLots(lot, LOT, (coords) =>
      whenDone(placeOf(coords), (place) => ({ key: coords.join(".") || "0", coords, place })),
    );
  }

  let lot: (readonly number[])[] = [];
  for (const coords of chunkCoords()) {
    if (lot.push(coords) < LOT) continue;
    yield await locateAll(lot);
    lot = [];
  }
  if (lot.length > 0) yield await locateAll(lot);
}

function bytesOf({ plan }: ServedArray, shape: readonly number[]): number {
  return elementCount(shape) * (plan.itemSize || OBJECT_BYTES);
}

/**
 * Finds the arrays that cannot be referred to without a server, because clients cannot read too many of their chunks.
 * @returns Why, by path.
 * @throws ZpublishError `source-changed`, `source-unreadable`, `cancelled`
 */
export async function findUnreferable(
  { arrays }: DatasetSnapshot,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (const [path, array] of arrays) {
    let hidden = 0;
    for await (const chunks of locatedChunks(array, signal)) {
      hidden += chunks.filter(({ place }) => place === HIDDEN).length;
      if (hidden * bytesOf(array, array.plan.served.chunkShape) <= MAX_INLINE_BYTES) continue;
      found.set(path, `more than ${MAX_INLINE_BYTES} bytes of its chunks are not stored as they are served`);
      break;
    }
  }
  return found;
}

/**
 * Lists all documents and chunks of a dataset in the order of kerchunk: a group, its arrays one after the other, then other groups.
 * @throws ZpublishError `source-changed`, `source-unreadable`, `cancelled`; what reading chunks throws
 */
export async function* referenceSteps(
  snapshot: DatasetSnapshot,
  rules: ReferenceRules,
): AsyncGenerator<ReferenceStep> {
  for (const { path: groupPath, attrs, variables } of snapshot.tree.groups.values()) {
    const prefix = groupPath === "/" ? "" : `${groupPath.slice(1)}/`;
    yield { key: `${prefix}.zgroup`, document: { zarr_format: 2 } };
    yield { key: `${prefix}.zattrs`, document: attrs };
    for (const { path } of variables.values()) {
      const array = snapshot.arrays.get(path);
      if (array === undefined || rules.leftOut?.has(path)) continue;
      yield { key: `${path}/.zarray`, document: { ...array.document } };
      yield { key: `${path}/.zattrs`, document: array.zattrs };
      const referenceOf = createReferenceOf(snapshot, array, rules);
      const { gridShape } = array.plan.served;
      const numberOf = (coords: readonly number[]) =>
        coords.reduce((number, index, axis) => number * gridShape[axis]! + index, 0);
      for await (const lot of locatedChunks(array, rules.signal))
        yield {
          path,
          count: elementCount(gridShape),
          chunks: await mapInLots(lot, LOT, (chunk) =>
            whenDone(referenceOf(chunk), (reference) => ({
              ...{ key: chunk.key, number: numberOf(chunk.coords), reference },
            })),
          ),
        };
    }
  }
}

/** Creates what refers to a chunk; undefined if it is absent. */
function createReferenceOf(
  snapshot: DatasetSnapshot,
  array: ServedArray,
  { chunks, urlOf, chunkUrl, signal }: ReferenceRules,
) {
  const { path, shape } = array.variable;
  const isSmall = bytesOf(array, shape) <= SMALL_ARRAY_BYTES;
  let served: ChunkReader | undefined;
  return ({ key, coords, place }: LocatedChunk): MaybePromise<ChunkReference | undefined> => {
    if (place === undefined) return undefined;
    const location = place === HIDDEN ? undefined : urlOf(place);
    if (place !== HIDDEN && location !== undefined) return { location, part: place.part };
    if (chunkUrl !== undefined && !isSmall) return { location: chunkUrl(path, key) };
    served ??= chunks.openReader(snapshot, array, "always");
    return whenDone(served.read(coords, { signal }), (stored) => stored && { bytes: stored.bytes });
  };
}

/** Writes the references of a dataset as JSON in kerchunk's version 1, in pieces. @throws as {@link referenceSteps} */
export async function* referencePieces(
  snapshot: DatasetSnapshot,
  rules: ReferenceRules,
): AsyncGenerator<Uint8Array> {
  let text = '{"version":1,"refs":{';
  let comma = "";
  const add = (key: string, value: JsonValue) => {
    text += `${comma}${stringifyJson(key)}:${stringifyJson(value)}`;
    comma = ",";
  };
  for await (const step of referenceSteps(snapshot, rules)) {
    if ("document" in step) add(step.key, stringifyJson(step.document));
    else
      for (const { key, reference } of step.chunks)
        if (reference !== undefined) add(`${step.path}/${key}`, jsonReference(reference));
    if (text.length < PIECE_CHARS) continue;
    yield Buffer.from(text);
    text = "";
  }
  yield Buffer.from(`${text}}}`);
}

function jsonReference({ location = "", part, bytes }: ChunkReference): JsonValue {
  if (bytes !== undefined) return `base64:${Buffer.from(bytes).toString("base64")}`;
  return part === undefined ? [location] : [location, part.offset, part.byteLength];
}
