import type { ChunkService } from "../chunk/chunk-service.js";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import { createSlice } from "../event-loop/cooperative-task.js";
import type { JsonObject, JsonValue } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import { elementCount } from "../model/data-tree.js";
import { openChunkReader } from "../open/chunk-reader.js";
import { type BytePlace, type ChunkReader, HIDDEN, versionsOf } from "../zarr/chunk-reader.js";
import { storedChunksOf } from "../zarr/plan/create-encoding-plan.js";

/** The chunk of a Zarr v2 array in kerchunk's references: where it lies, or its bytes. */
export type ChunkReference =
  | { readonly url: string; readonly part: BytePlace["part"] }
  | { readonly bytes: Uint8Array };

/** Rules by which references to the chunks of a dataset are made. */
export interface ReferenceRules {
  /** Chunks as served. */
  readonly chunks: Pick<ChunkService, "openReader">;
  /** Returns the path or URL of a file or object for clients; undefined if they cannot read it. @param location As in {@link BytePlace}. */
  readonly urlOf: (location: string) => string | undefined;
  /** Returns the URL of a chunk that is served; undefined if there is no server. */
  readonly chunkUrl?: (path: string, key: string) => string;
  /** Paths of arrays that are left out. Default: none. */
  readonly leftOut?: ReadonlyMap<string, string>;
  readonly signal: AbortSignal;
}

/** Chunks of an array with at most so many bytes, decoded, are written into the references unless other programs can read them. */
const SMALL_ARRAY_BYTES = 64 * 1024;
/** The same for the chunks that other programs cannot read, of one array, if there is no server to refer to. */
const MAX_INLINE_BYTES = 4 * 2 ** 20;
/** Bytes assumed for an item that has no fixed size. */
const OBJECT_BYTES = 16;
/** Chunks whose references are made together. */
const LOT = 64;

/** Lists the coordinates of all chunks of a grid in C order, in lots. */
function* lotsOf(gridShape: readonly number[]): Generator<readonly (readonly number[])[]> {
  const count = elementCount(gridShape);
  const coords = gridShape.map(() => 0);
  for (let begin = 0; begin < count; begin += LOT) {
    yield Array.from({ length: Math.min(LOT, count - begin) }, () => {
      const chunk = [...coords];
      for (let axis = coords.length - 1; axis >= 0 && ++coords[axis]! === gridShape[axis]; axis--)
        coords[axis] = 0;
      return chunk;
    });
  }
}

/** Decoded bytes of so many items of an array. */
function bytesOf({ plan }: ServedArray, items: readonly number[]): number {
  return elementCount(items) * (plan.itemSize || OBJECT_BYTES);
}

/** Creates what finds the stored chunk behind a served one; see `ChunkReader.locate`. */
function createFindChunk({ plan }: ServedArray) {
  const reader = openChunkReader(plan.source);
  const locate = plan.kind === "passthrough" ? reader.locate : undefined;
  return {
    reader,
    async find(coords: readonly number[]): Promise<BytePlace | typeof HIDDEN | undefined> {
      const place = locate === undefined ? HIDDEN : await locate(coords);
      // Clients take an absent chunk for fill values, unless the server fills it with others.
      if (!plan.absentIsAbsent) return place ?? HIDDEN;
      if (place !== HIDDEN) return place;
      const versions = await versionsOf(reader, storedChunksOf(plan, coords));
      return versions.some(({ token }) => token !== undefined) ? HIDDEN : undefined;
    },
  };
}

/** A chunk of an array, and its reference; undefined if the chunk is absent. */
export interface ReferencedChunk {
  /** Key below the array, `12.0.3`; that of a scalar is `0`. */
  readonly key: string;
  readonly reference: ChunkReference | undefined;
}

/**
 * Lists the chunks of an array in C order, in lots.
 * @throws ZpublishError `source-changed`, `source-unreadable`, `cancelled`; what reading chunks throws
 */
async function* referencedChunks(
  snapshot: DatasetSnapshot,
  array: ServedArray,
  { chunks, urlOf, chunkUrl, signal }: ReferenceRules,
): AsyncGenerator<readonly ReferencedChunk[]> {
  const { variable, plan } = array;
  const { reader, find } = createFindChunk(array);
  const isSmall = bytesOf(array, variable.shape) <= SMALL_ARRAY_BYTES;
  let served: ChunkReader | undefined;

  async function referenceTo(key: string, coords: readonly number[]): Promise<ChunkReference | undefined> {
    const place = await find(coords);
    if (place === undefined) return undefined;
    const url = place === HIDDEN ? undefined : urlOf(place.location);
    if (url !== undefined && place !== HIDDEN) return { url, part: place.part };
    if (chunkUrl !== undefined && !isSmall) return { url: chunkUrl(variable.path, key), part: undefined };
    served ??= chunks.openReader(snapshot, array, "always");
    const stored = await served.read(coords, { signal });
    return stored && { bytes: stored.bytes };
  }

  const slice = createSlice();
  const { gridShape } = plan.served;
  // Places in an index say nothing about another version of its file.
  if (reader.places !== undefined) await reader.version(gridShape.map(() => 0));
  for (const lot of lotsOf(gridShape)) {
    if (signal.aborted) throw new ZpublishError("cancelled", "the client has gone");
    if (slice.isOver()) await slice.next();
    yield await Promise.all(
      lot.map(async (coords) => {
        const key = coords.length === 0 ? "0" : coords.join(".");
        return { key, reference: await referenceTo(key, coords) };
      }),
    );
  }
}

/**
 * Finds the arrays to which there can be no references without a server: too many of their chunks are not bytes that other programs
 * can read.
 * @returns The reason for each path.
 * @throws ZpublishError `source-unreadable`
 */
export async function findUnreferable(
  { arrays }: DatasetSnapshot,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const slice = createSlice();
  const found = new Map<string, string>();
  for (const [path, array] of arrays) {
    const { find } = createFindChunk(array);
    const chunkBytes = bytesOf(array, array.plan.served.chunkShape);
    let hidden = 0;
    for (const lot of lotsOf(array.plan.served.gridShape)) {
      if (signal.aborted || hidden > MAX_INLINE_BYTES) break;
      if (slice.isOver()) await slice.next();
      for (const place of await Promise.all(lot.map(find))) if (place === HIDDEN) hidden += chunkBytes;
    }
    if (hidden > MAX_INLINE_BYTES)
      found.set(path, `more than ${MAX_INLINE_BYTES} bytes of its chunks are not stored as they are served`);
  }
  return found;
}

/** A metadata document, or chunks of an array that follow one another in C order. */
export type ReferenceStep =
  | { readonly key: string; readonly document: JsonObject }
  | { readonly path: string; readonly chunks: readonly ReferencedChunk[] };

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
      for await (const chunks of referencedChunks(snapshot, array, rules)) yield { path, chunks };
    }
  }
}

/** Length of a piece of text, in characters. */
const PIECE_CHARS = 64 * 1024;

/**
 * Writes the references of a dataset as JSON in kerchunk's version 1, in pieces.
 * @throws as {@link referenceSteps}
 */
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

function jsonReference(reference: ChunkReference): JsonValue {
  if ("bytes" in reference) return `base64:${Buffer.from(reference.bytes).toString("base64")}`;
  const { url, part } = reference;
  return part === undefined ? [url] : [url, part.offset, part.byteLength];
}
