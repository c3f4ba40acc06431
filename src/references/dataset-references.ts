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

/** A metadata document; or chunks of an array that follow one another in C order, `reference` undefined for absent ones. */
export type ReferenceStep =
  | { readonly key: string; readonly document: JsonObject }
  | {
      readonly path: string;
      readonly chunks: readonly { readonly key: string; readonly reference: ChunkReference | undefined }[];
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

/** Finds the chunks of an array, in C order and in lots. @throws ZpublishError `source-changed`, `source-unreadable`, `cancelled` */
async function* locatedChunks(
  { plan }: ServedArray,
  signal: AbortSignal,
): AsyncGenerator<readonly LocatedChunk[]> {
  const reader = openChunkReader(plan.source);
  const locate = plan.kind === "passthrough" ? reader.locate : undefined;
  const { gridShape } = plan.served;

  function placeOf(coords: readonly number[]): MaybePromise<LocatedChunk["place"]> {
    return whenDone(locate === undefined ? HIDDEN : locate(coords), (place) => {
      // Clients take an absent chunk for fill values, unless the server fills it with others.
      if (!plan.absentIsAbsent) return place ?? HIDDEN;
      if (place !== HIDDEN) return place;
      return whenDone(versionsOf(reader, storedChunksOf(plan, coords)), (versions) =>
        versions.some(({ token }) => token !== undefined) ? HIDDEN : undefined,
      );
    });
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
  for (const coords of indexesIn(gridShape)) {
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
      for await (const lot of locatedChunks(array, rules.signal))
        yield {
          path,
          chunks: await mapInLots(lot, LOT, (chunk) =>
            whenDone(referenceOf(chunk), (reference) => ({ key: chunk.key, reference })),
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
