import { createHash } from "node:crypto";
import { type ChunkCache, cacheKeyOf } from "../cache/chunk-cache.js";
import { cachedBody, type MadeChunk, madeBody, offerToCache } from "../chunk/chunk-body.js";
import { PNG_ZLIB_LEVEL, type ValueColours } from "../codec/compute/picture.js";
import { encoderRevision } from "../codec/encoder-revision.js";
import type { NumericArray } from "../codec/items/item-values.js";
import { type BoundedMap, createBoundedMap } from "../collections/bounded-map.js";
import { combinations } from "../collections/combinations.js";
import { createSingleFlight } from "../collections/single-flight.js";
import { COLOUR_REVISION } from "../colour/colour-scales.js";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import type { BodyClient, BodyReply } from "../http/reply.js";
import { packageVersion } from "../observe/versions.js";
import { openChunkReader } from "../open/chunk-reader.js";
import type { AxisSelection, Values } from "../values/values.js";
import { type ChunkReader, combineStored, type StoredVersion, versionsOf } from "../zarr/chunk-reader.js";
import { partsOfAxis } from "../zarr/plan/item-pick.js";
import { type MapTask, pixelValues, type SampledValues } from "./draw-map.js";
import { createLayers, type GriddedArray, indexesOf, isCheap } from "./layers.js";
import type { MapFrame, MapLayer, MapOptions, Maps } from "./maps.js";
import type { AxisTable, GridSample } from "./sample-grid.js";

/** Runs in the pool. */
const DRAW_MAP = new URL("./draw-map.js", import.meta.url);

/** Revision of the way maps are drawn: part of their ETags. */
const REVISION = `1 ${packageVersion} ${COLOUR_REVISION} ${encoderRevision({ id: "zlib", level: PNG_ZLIB_LEVEL })}`;

/** Parts that maps are made with. */
export interface MapsParts {
  readonly values: Values;
  /** Another cache takes its place when that is open. */
  readonly cache: { readonly current: ChunkCache };
}

/** Cells that a map shows, and where they are read. */
interface MapCells {
  readonly level: GriddedArray;
  readonly sample: GridSample;
  readonly selection: readonly AxisSelection[];
  /** Stored chunks that have these cells. */
  readonly chunks: readonly (readonly number[])[];
}

/** Creates what draws maps. */
export function createMaps({ values, cache }: MapsParts): Maps {
  const layers = createLayers(values);
  const replyWith = createPictures(values, cache);
  /** What was last shown of each sample, which is asked for again while it is new. */
  const recent = new WeakMap<GridSample, MapCells & { readonly place: readonly number[] }>();

  /** @throws ZpublishError `too-large` if the cells are in too many chunks */
  async function cellsOf(
    snapshot: DatasetSnapshot,
    array: ServedArray,
    frame: MapFrame,
    place: readonly number[],
    isLinear: boolean,
  ): Promise<MapCells> {
    const { level, sample } = await layers.sampled(snapshot, array, frame, isLinear);
    const known = recent.get(sample);
    if (known?.level.array === level.array && `${known.place}` === `${place}`) return known;
    const selection = place.map((index, axis): AxisSelection => {
      if (axis === level.y) return selectionOf(sample.y);
      return axis === level.x ? selectionOf(sample.x) : { begin: index, count: 1, step: 1 };
    });
    const cost = values.cost(level.array, selection, { decode: true });
    const isSmall = cost.byteLength <= MAX_VALUE_BYTES * Math.max(1, (frame.width * frame.height) / 512 ** 2);
    if (isCheap(cost, frame.width * frame.height) && isSmall) {
      const found = { level, sample, selection, chunks: chunksOf(level.array, selection), place };
      recent.set(sample, found);
      return found;
    }
    throw new ZpublishError(
      "too-large",
      `A map of '${array.variable.path}' of ${frame.width} × ${frame.height} pixels would be made of ${cost.chunks} chunks of ${cost.chunkBytes} bytes: zoom in, or configure "overviews" for dataset '${snapshot.id}'`,
    );
  }

  async function readCells(
    { level, sample, selection }: MapCells,
    frame: MapFrame,
    signal: AbortSignal,
  ): Promise<SampledValues> {
    const block = await values.read(level.snapshot, level.array, selection, { decode: true, signal });
    const isTurned = level.x < level.y;
    return {
      sample,
      cells: block.values as NumericArray,
      rowStride: isTurned ? 1 : sample.x.indexes.length,
      columnStride: isTurned ? sample.y.indexes.length : 1,
      ...{ width: frame.width, height: frame.height },
    };
  }

  return {
    place: (snapshot: DatasetSnapshot, array: ServedArray) => layers.place(snapshot, array),
    layer: (snapshot: DatasetSnapshot, array: ServedArray) => layers.layer(snapshot, array),
    async draw(
      snapshot: DatasetSnapshot,
      array: ServedArray,
      frame,
      steps,
      { isLinear = false, ...style } = {},
    ) {
      const layer = await layers.layer(snapshot, array);
      const place = indexesOf(layer, steps);
      const cells = await cellsOf(snapshot, array, frame, place, isLinear && layer.isContinuous);
      const colours = coloursOf(array, layer, style);
      const { id, revision, state } = snapshot;
      const version = snapshot.immutable ? "" : await versionOf(cells.level.array, cells.chunks);
      const { path } = cells.level.array.variable;
      const parts = [id, revision, state, path, place, frame, isLinear, colours, version];
      return replyWith(snapshot, parts, frame.width * frame.height, async (signal) => ({
        ...(await readCells(cells, frame, signal)),
        colours,
      }));
    },
    async valueAt(snapshot: DatasetSnapshot, array: ServedArray, frame, steps, signal) {
      const place = indexesOf(await layers.place(snapshot, array), steps);
      const middle = middlePixel(frame);
      const cells = await cellsOf(snapshot, array, middle, place, false);
      const [value = Number.NaN] = pixelValues(await readCells(cells, middle, signal));
      return Number.isNaN(value) ? undefined : value;
    },
    async legend(snapshot: DatasetSnapshot, array: ServedArray, size, style = {}) {
      const layer = await layers.layer(snapshot, array);
      const colours = coloursOf(array, layer, style);
      const parts = [snapshot.id, "legend", size, colours];
      return replyWith(snapshot, parts, size.width * size.height, async () => ({
        ...legendValues(colours, size),
        colours,
      }));
    },
  };
}

/** Creates what replies with pictures: from the cache, or drawn in the pool, once for all who ask at the same time. */
function createPictures(values: Values, cache: MapsParts["cache"]) {
  const flights = createSingleFlight<MadeChunk>();

  /** Replies with a picture. @param parts All that its bytes depend on. */
  return function replyWith(
    snapshot: DatasetSnapshot,
    parts: readonly unknown[],
    pixels: number,
    make: (signal: AbortSignal) => Promise<MapTask>,
  ): BodyReply {
    const digest = createHash("sha256")
      .update(JSON.stringify([REVISION, ...parts]))
      .digest("base64url")
      .slice(0, 22);
    const key = cacheKeyOf(`map\n${snapshot.identity}\n${digest}`);

    async function obtain(signal: AbortSignal): Promise<MadeChunk> {
      const began = performance.now();
      const task = await make(signal);
      const read = performance.now() - began;
      const bytes = await values.run<Uint8Array>(DRAW_MAP, task, { signal });
      const timings = { read, encode: performance.now() - began - read };
      const made: MadeChunk = { bytes, origin: "MISS", timings, readers: 0 };
      offerToCache(cache.current, key, made);
      return made;
    }

    async function openMade(client: BodyClient, lookupMs: number) {
      await client.reserve(PIXEL_BYTES * pixels);
      return madeBody(await flights.run(key.id, ({ signal }) => obtain(signal), client), lookupMs);
    }

    return {
      kind: "body",
      contentType: "image/png",
      etag: `"${digest}"`,
      cacheControl: snapshot.cacheControl,
      open(client) {
        const began = performance.now();
        const found = cache.current.get(key);
        const lookupMs = performance.now() - began;
        return found === undefined
          ? openMade(client, lookupMs)
          : cachedBody(cache.current, key, found, lookupMs);
      },
    };
  };
}

/** Bytes of values that a picture of 512 × 512 pixels is made of, at most. */
const MAX_VALUE_BYTES = 64 * 2 ** 20;
/** Memory of a pixel while it is drawn: cells, its value, its colour. */
const PIXEL_BYTES = 24;

function selectionOf({ indexes }: AxisTable): AxisSelection {
  const [begin = 0] = indexes;
  const isRange = indexes.length === 0 || indexes.at(-1)! - begin === indexes.length - 1;
  return isRange ? { begin, count: indexes.length, step: 1 } : { indexes };
}

/** Versions of chunks that are kept per array, to be looked up without waiting. */
const MAX_VERSIONS = 256;
const versions = new WeakMap<ServedArray["stored"], BoundedMap<StoredVersion>>();
const readers = new WeakMap<ServedArray["stored"], ChunkReader>();

/** Lists the stored chunks that have cells of a selection. */
function chunksOf({ stored }: ServedArray, selection: readonly AxisSelection[]): number[][] {
  const parts = selection.map((axis, at) =>
    Array.from(partsOfAxis(axis, stored.chunkShape[at]!), ({ chunk }) => chunk),
  );
  return [...combinations(parts)];
}

/** Returns what tells chunks from those before they were written over; empty if there are none. */
async function versionOf({ stored }: ServedArray, chunks: readonly (readonly number[])[]): Promise<string> {
  if (chunks.length === 0) return "";
  const reader = readers.get(stored) ?? openChunkReader(stored.chunks);
  readers.set(stored, reader);
  const key = chunks.join(" ");
  const ofArray = versions.get(stored) ?? createBoundedMap<StoredVersion>({ maxEntries: MAX_VERSIONS });
  versions.set(stored, ofArray);
  const known = ofArray.get(key);
  if (known?.isUnchanged?.()) return known.token!;
  const all = await versionsOf(reader, chunks, { wasChecked: known !== undefined });
  const found = combineStored(all, (tokens) => tokens.map((token) => token ?? "-").join());
  ofArray.set(key, found);
  return found.token!;
}

function coloursOf({ variable }: ServedArray, layer: MapLayer, style: MapOptions): ValueColours {
  const { categories } = layer;
  const colours = categories?.map(({ colour }) => [...Buffer.from(colour.slice(1), "hex")]);
  return {
    from: variable.dataType,
    range: style.range ?? layer.range,
    // Of a range that was asked for, the scale is chosen as for any picture.
    scale: style.scale ?? (style.range === undefined ? layer.scale : undefined),
    isReversed: style.isReversed ?? false,
    background: style.background,
    categories: categories?.map(({ value }) => value),
    categoryColours: colours && Uint8Array.from(colours.flat()),
  };
}

function middlePixel({ crs, bbox: [west, south, east, north], width, height }: MapFrame): MapFrame {
  const [x, y] = [(west + east) / 2, (south + north) / 2];
  const [across, down] = [(east - west) / width / 2, (north - south) / height / 2];
  return { crs, bbox: [x - across, y - down, x + across, y + down], width: 1, height: 1 };
}

/** Returns values that run from the first to the last colour. */
function legendValues(
  { range: [low, high] = [0, 1], categories }: ValueColours,
  { width, height }: Readonly<Record<"width" | "height", number>>,
): SampledValues {
  const at = Int32Array.from({ length: width }, (_, column) => column);
  const share = (column: number) => (column + 0.5) / width;
  const cells = Float64Array.from(at, (column) =>
    categories === undefined
      ? low + share(column) * (high - low)
      : categories[Math.floor(share(column) * categories.length)]!,
  );
  const table = { indexes: at, next: undefined, share: undefined };
  const y = { ...table, at: new Int32Array(height) };
  const sample: GridSample = { isSeparable: true, y, x: { ...table, at }, cellsPerPixel: 1 };
  return { sample, cells, rowStride: 0, columnStride: 1, width, height };
}
