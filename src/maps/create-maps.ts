import { createHash } from "node:crypto";
import { type ChunkCache, cacheKeyOf } from "../cache/chunk-cache.js";
import { cachedBody, type MadeChunk, madeBody, offerToCache } from "../chunk/chunk-body.js";
import { PNG_ZLIB_LEVEL, type ValueColours } from "../codec/compute/picture.js";
import { encoderRevision } from "../codec/encoder-revision.js";
import type { NumericArray } from "../codec/items/item-values.js";
import { combinations } from "../collections/combinations.js";
import { createSingleFlight } from "../collections/single-flight.js";
import { COLOUR_REVISION } from "../colour/colour-scales.js";
import { chooseRange } from "../colour/value-range.js";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import { memoPromise } from "../event-loop/joined.js";
import type { BodyClient, BodyReply } from "../http/reply.js";
import { packageVersion } from "../observe/versions.js";
import { openChunkReader } from "../open/chunk-reader.js";
import type { AxisSelection, ReadCost, Values } from "../values/values.js";
import { type ChunkReader, combineStored, type StoredVersion, versionsOf } from "../zarr/chunk-reader.js";
import { partsOfAxis } from "../zarr/plan/item-pick.js";
import { type MapTask, pixelValues, type SampledValues } from "./draw-map.js";
import { createLayers, type GriddedArray, type Layer, stepsPosition } from "./layers.js";
import type { MapFrame, MapOptions, MapPicture, Maps } from "./maps.js";
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

/** Chunks that one picture of 512 × 512 pixels is made of, at most; larger pictures may be made of more. */
const MAX_CHUNKS = 16;
const PIXELS = 512 * 512;
/** Decoded bytes of any number of chunks that may be read all the same. */
const MAX_SMALL_BYTES = 4 * 2 ** 20;
/** Bytes of the values that are read of these chunks, at most. */
const MAX_VALUE_BYTES = 64 * 2 ** 20;

/** Values of the first and the last colour. */
type Range = readonly [low: number, high: number];

/** The range of a variable without values. Each map chooses again, since they may be written later. */
const NO_VALUES: Range = [0, 1];

/** By array: a dataset that is opened again may have other values. */
const ranges = new WeakMap<ServedArray, ReturnType<typeof memoPromise<Range>>>();

/** Pixels along the sides of the map by which a range is chosen. */
const RANGE_SIZE = { width: 64, height: 64 };

/** Cells that a map shows, and where they are read. */
interface MapCells {
  readonly level: GriddedArray;
  readonly sample: GridSample;
  readonly selection: readonly AxisSelection[];
  /** Versions of the coordinates by which they were found. */
  readonly coordinates: readonly StoredVersion[];
  readonly cost: ReadCost;
  /** Whether their chunks are few or small enough for a map. */
  readonly isCheap: boolean;
}

/** @throws ZpublishError `too-large` if the cells of a map are in too many chunks */
function assertCheap(
  { isCheap, cost }: MapCells,
  { array, snapshot }: Layer,
  { width, height }: MapFrame,
): void {
  if (isCheap) return;
  throw new ZpublishError(
    "too-large",
    `A map of '${array.variable.path}' of ${width} × ${height} pixels would be made of ${cost.chunks} chunks of ${cost.chunkBytes} bytes: zoom in, or configure "overviews" for dataset '${snapshot.id}'`,
  );
}

/** Creates what draws maps. */
export function createMaps({ values, cache }: MapsParts): Maps {
  const layers = createLayers(values);
  const replyWith = createPictures(values, cache);

  async function findCells(
    layer: Layer,
    frame: MapFrame,
    position: readonly number[],
    isLinear: boolean,
  ): Promise<MapCells> {
    const found = await layers.sampled(layer, frame, isLinear);
    const { level, sample } = found;
    const selection = position.map((index, axis): AxisSelection => {
      if (axis === level.y) return selectionOf(sample.y);
      return axis === level.x ? selectionOf(sample.x) : { begin: index, count: 1, step: 1 };
    });
    const cost = values.cost(level.array, selection, { decode: true });
    const pictures = Math.max(1, (frame.width * frame.height) / PIXELS);
    const isFew = cost.chunks <= MAX_CHUNKS * pictures || cost.chunkBytes <= MAX_SMALL_BYTES * pictures;
    return { ...found, selection, cost, isCheap: isFew && cost.byteLength <= MAX_VALUE_BYTES * pictures };
  }

  /** Chooses a range by a small map of all cells, or of as many around their middle as may be read. */
  async function chosenRange(layer: Layer): Promise<Range> {
    const { array, extent, position } = layer;
    if (array.variable.dataType.kind === "b" || extent === undefined) return [0, 1];
    const [west, south, east, north] = extent;
    const [x, y] = [(west + east) / 2, (south + north) / 2];
    for (let share = 1; ; share /= 2) {
      const [across, down] = [(share * (east - west)) / 2, (share * (north - south)) / 2];
      const bbox = [x - across, y - down, x + across, y + down] as const;
      const frame = { crs: "CRS:84", bbox, ...RANGE_SIZE } as const;
      const cells = await findCells(layer, frame, position, false);
      if (!cells.isCheap) continue;
      const finite = pixelValues(await readCells(values, cells, frame)).filter(Number.isFinite);
      if (finite.length === 0) return NO_VALUES;
      const { low, high } = chooseRange(finite);
      return [low, high];
    }
  }

  async function rangeOf(layer: Layer): Promise<Range> {
    const choose = ranges.get(layer.array) ?? memoPromise<Range>();
    ranges.set(layer.array, choose);
    const range = await choose(() => chosenRange(layer));
    if (range === NO_VALUES) ranges.delete(layer.array);
    return range;
  }

  async function coloursOf(layer: Layer, style: MapOptions): Promise<ValueColours> {
    const { categories, array } = layer;
    const common = { from: array.variable.dataType, background: style.background };
    if (categories === undefined) {
      const { range = await rangeOf(layer), scale, isReversed = false } = style;
      return { ...common, range, scale, isReversed };
    }
    const colours = Buffer.from(categories.map(({ colour }) => colour.slice(1)).join(""), "hex");
    const own = {
      categories: categories.map(({ value }) => value),
      categoryColours: Uint8Array.from(colours),
    };
    return { ...common, ...own, range: undefined, scale: undefined, isReversed: false };
  }

  return {
    place: (snapshot: DatasetSnapshot, path) => layers.place(snapshot, path),
    range: rangeOf,
    async draw(layer: Layer, frame, steps, options = {}): Promise<MapPicture> {
      const { snapshot } = layer;
      const position = stepsPosition(layer, steps);
      const isLinear = options.isLinear === true && layer.isContinuous;
      const cells = await findCells(layer, frame, position, isLinear);
      assertCheap(cells, layer, frame);
      const colours = await coloursOf(layer, options);
      const version = await versionOf(snapshot, cells);
      const { path } = cells.level.array.variable;
      const { id, revision, state } = snapshot;
      const parts = [id, revision, state, path, position, frame, isLinear, colours, version.token];
      // Samples may be large, and pictures are remembered: those that are not cached any more are sampled again.
      const found = new WeakRef(cells);
      const reply = replyWith(snapshot, parts, frame, async (signal) => {
        const shown = found.deref() ?? (await findCells(layer, frame, position, isLinear));
        return { ...(await readCells(values, shown, frame, signal)), colours };
      });
      return { ...reply, isCurrent: () => colours.range !== NO_VALUES && version.isUnchanged?.() === true };
    },
    async valueAt(layer: Layer, frame, steps, signal) {
      const pixel = { ...frame, width: 1, height: 1 };
      const cells = await findCells(layer, pixel, stepsPosition(layer, steps), false);
      assertCheap(cells, layer, pixel);
      const [value = Number.NaN] = pixelValues(await readCells(values, cells, pixel, signal));
      return Number.isNaN(value) ? undefined : value;
    },
    async legend(layer: Layer, size, style = {}) {
      const colours = await coloursOf(layer, style);
      const parts = [layer.snapshot.id, "legend", size, colours];
      return replyWith(layer.snapshot, parts, size, async () => ({
        ...size,
        pixels: legendValues(colours, size),
        colours,
      }));
    },
  };
}

type PictureSize = Readonly<Record<"width" | "height", number>>;

/** Memory of a pixel while it is drawn: cells, its value, its colour. */
const PIXEL_BYTES = 24;

/** Creates what replies with pictures: from the cache, or drawn in the pool, once for all who ask at the same time. */
function createPictures(values: Values, cache: MapsParts["cache"]) {
  const flights = createSingleFlight<MadeChunk>();

  /** Replies with a picture. @param parts All that its bytes depend on. */
  return function replyWith(
    snapshot: DatasetSnapshot,
    parts: readonly unknown[],
    { width, height }: PictureSize,
    make: (signal: AbortSignal) => Promise<MapTask>,
  ): BodyReply {
    const hash = createHash("sha256").update(JSON.stringify([REVISION, ...parts]));
    const digest = hash.digest("base64url").slice(0, 22);
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
      await client.reserve(PIXEL_BYTES * width * height);
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

async function readCells(
  values: Values,
  { level, sample, selection }: MapCells,
  { width, height }: MapFrame,
  signal?: AbortSignal,
): Promise<SampledValues> {
  const block = await values.read(level.snapshot, level.array, selection, { decode: true, signal });
  const isTurned = level.x < level.y;
  return {
    sample,
    cells: block.values as NumericArray,
    rowStride: isTurned ? 1 : sample.x.indexes.length,
    columnStride: isTurned ? sample.y.indexes.length : 1,
    width,
    height,
  };
}

function selectionOf({ indexes }: AxisTable): AxisSelection {
  const [begin = 0] = indexes;
  const isRange = indexes.length === 0 || indexes.at(-1)! - begin === indexes.length - 1;
  return isRange ? { begin, count: indexes.length, step: 1 } : { indexes };
}

const readers = new WeakMap<ServedArray["stored"], ChunkReader>();

/** Returns what tells coordinates and stored chunks from those before they were written over. */
async function versionOf(
  { immutable }: DatasetSnapshot,
  { level, selection, coordinates }: MapCells,
): Promise<StoredVersion> {
  const { stored } = level.array;
  const reader = readers.get(stored) ?? openChunkReader(stored.chunks);
  readers.set(stored, reader);
  const parts = selection.map((axis, at) =>
    Array.from(partsOfAxis(axis, stored.chunkShape[at]!), ({ chunk }) => chunk),
  );
  const versions = immutable ? [] : await versionsOf(reader, [...combinations(parts)]);
  return combineStored([...coordinates, combineStored(versions, String)], String);
}

/** Returns values that run from the first to the last colour. */
function legendValues({ range, categories }: ValueColours, { width, height }: PictureSize): Float64Array {
  const [low, high] = range ?? [0, 1];
  return Float64Array.from({ length: width * height }, (_, pixel) => {
    const share = ((pixel % width) + 0.5) / width;
    return categories?.[Math.floor(share * categories.length)] ?? low + share * (high - low);
  });
}
