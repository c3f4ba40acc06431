import { cfDecodingOf, type NumberDecoding } from "../cf/decoded-type.js";
import { missingMarkOf } from "../cf/image-data.js";
import { copyPlaces } from "../codec/copy-strided.js";
import { isNative, itemValues, variableTexts } from "../codec/items/item-values.js";
import type { ChunkOutcome } from "../codec/make-chunk.js";
import type { ArrayView, ServedArray } from "../dataset/dataset.js";
import { errorFromData, ZpublishError } from "../errors.js";
import { workThrough } from "../event-loop/work-through.js";
import { elementCount } from "../model/data-tree.js";
import { type DataType, GUESSED_ITEM_BYTES, parseDataType } from "../model/data-type.js";
import { encodeFillItem, NOT_A_TIME } from "../model/fill-value.js";
import {
  beginWork,
  type CallOutcome,
  type ChunkTask,
  type ModuleCall,
  type Work,
} from "../pool/chunk-task.js";
import {
  assertInside,
  type Block,
  countChunks,
  cutBox,
  groupPoints,
  type Slab,
  slabsOf,
} from "../zarr/plan/cut-selection.js";
import type { EncodingPlan } from "../zarr/plan/encoding-plan.js";
import {
  createItemPlan,
  firstChunkOf,
  forEachPlace,
  type ItemPick,
  itemStrides,
  pickedLength,
} from "../zarr/plan/item-pick.js";
import type { StoredArray } from "../zarr/stored-array.js";
import { findBestCut, type Touching, touchedByBox, touchedByPoints } from "./choose-cut.js";
import { createCoordinates } from "./coordinates.js";
import {
  type AxisSelection,
  type CoordinateValues,
  PIECE_BYTES,
  type ReadValuesOptions,
  type RunModuleOptions,
  type StreamValuesOptions,
  type ValueBlock,
  type Values,
} from "./values.js";

/** How the values of one array are read. */
interface ReadPlan {
  readonly encoding: EncodingPlan;
  /** Filter that makes bytes of variable-length items; undefined if items have a fixed size. */
  readonly filter: string | undefined;
  readonly stored: StoredArray;
  /** Undefined if numbers mean themselves. */
  readonly decoding: NumberDecoding | undefined;
  /** Elements per axis of the chunks that are decoded; of an array in memory, of which any part is at hand, those that are served. */
  readonly chunkShape: readonly number[];
  readonly chunkBytes: number;
}

const plans = new WeakMap<StoredArray, ReadPlan>();

/** Plans the reading of an array once. @throws ZpublishError `unsupported`, naming the array, if its chunks cannot be decoded */
function readPlanOf({ stored }: Pick<ServedArray, "stored">, maxChunkBytes: number | undefined): ReadPlan {
  const known = plans.get(stored);
  if (known !== undefined) return known;
  const { plan: encoding, filter } = createItemPlan(stored, maxChunkBytes);
  const isAtHand = encoding.source.kind === "memory" && encoding.decode.length === 0;
  const chunkShape = (isAtHand ? stored.servedChunks : undefined) ?? encoding.stored.chunkShape;
  const mark = missingMarkOf(stored, stored.fill.served) ?? null;
  const plan: ReadPlan = {
    ...{ encoding, filter, stored, chunkShape },
    decoding: cfDecodingOf(stored.dataType, stored.attrs, mark).numbers,
    chunkBytes: elementCount(chunkShape) * (encoding.itemSize || GUESSED_ITEM_BYTES),
  };
  plans.set(stored, plan);
  return plan;
}

/** Returns the type of values. */
function valueTypeOf(
  { stored: { dataType }, decoding }: Pick<ReadPlan, "stored" | "decoding">,
  { decode, byteOrder }: ReadValuesOptions,
): DataType {
  const order = ORDERS[byteOrder ?? "little"];
  if (decode && decoding !== undefined)
    return parseDataType(`${order}${decoding.to.kind}${decoding.to.itemSize}`);
  if (dataType.byteOrder === "|" || dataType.byteOrder === order) return dataType;
  return parseDataType(String(dataType.zarr).replace(/^[<>]/, order));
}

const ORDERS = { little: "<", big: ">" } as const;

/** Bytes of an item as they count for limits. */
function itemBytesOf({ itemSize }: DataType): number {
  return itemSize || GUESSED_ITEM_BYTES;
}

/** Parts that values are read with. */
export interface ValuesParts {
  readonly makeChunk: (task: ChunkTask, signal?: AbortSignal) => Promise<ChunkOutcome>;
  readonly callModule: (call: ModuleCall, signal: AbortSignal) => Promise<CallOutcome>;
  /** Takes back the memory of an outcome. */
  readonly recycle?: ((bytes: Uint8Array<ArrayBuffer>) => void) | undefined;
  readonly maxChunkBytes?: number | undefined;
}

/** Default bound of a result. */
const MAX_BYTES = 2 ** 30;
/** Tasks of one box in the queue of the pool. */
const TASKS_AT_ONCE = 16;
/** Pieces of a stream that are made ahead. */
const AHEAD_PIECES = 3;

/** Creates what reads values. */
export function createValues(parts: ValuesParts): Values {
  const { maxChunkBytes } = parts;
  // What plugins have a view of is such an array.
  const planOf = (array: ArrayView) => readPlanOf(array as ServedArray, maxChunkBytes);

  /** Returns the plan of another cut that suits a selection better than the stored one; undefined if there is none. */
  async function betterPlan(
    array: ArrayView,
    plan: ReadPlan,
    touching: Touching,
    signal: ReadValuesOptions["signal"],
  ) {
    const { cuts = [] } = array as ServedArray;
    const plans = cuts.map((stored) => readPlanOf({ stored }, maxChunkBytes));
    return plans.length === 0 ? undefined : findBestCut(plan, plans, touching, signal);
  }

  /**
   * Reads a result of a known size from the cut that suits best. If that fails, its chunks may lie over ones that nothing else needs: the
   * stored cut is read. @throws ZpublishError `too-large`
   */
  async function readBest(
    array: ArrayView,
    touching: Touching,
    shape: readonly number[],
    options: ReadValuesOptions,
    read: (reading: Reading) => Promise<ItemsMade>,
  ): Promise<ValueBlock> {
    const plan = planOf(array);
    const dataType = valueTypeOf(plan, options);
    const byteLength = elementCount(shape) * itemBytesOf(dataType);
    assertSize(plan, byteLength, options.maxBytes ?? MAX_BYTES);
    await options.reserve?.(byteLength);
    const readStored = () => readFrom(plan, parts, options, read);
    const better = await betterPlan(array, plan, touching, options.signal);
    const made =
      better === undefined ? readStored() : readFrom(better, parts, options, read).catch(readStored);
    return createBlock(shape, dataType, await made);
  }

  async function* streamBest(
    array: ArrayView,
    plan: ReadPlan,
    selection: readonly AxisSelection[],
    options: StreamValuesOptions,
  ): AsyncGenerator<ValueBlock> {
    const { firstItem = 0, itemCount = Number.POSITIVE_INFINITY } = options;
    const better = await betterPlan(array, plan, touchedByBox(selection), options.signal);
    await options.reserve?.(streamBytesOf(better ?? plan, selection, options));
    let sent = 0;
    try {
      const reading = openReading(better ?? plan, parts, options);
      for await (const block of streamBox(reading, selection, options)) {
        yield block;
        sent += block.shape[0]!;
      }
    } catch (error) {
      if (better === undefined || options.signal?.aborted) throw error;
      const left = { ...options, firstItem: firstItem + sent, itemCount: itemCount - sent };
      yield* streamBox(openReading(plan, parts, options), selection, left);
    }
  }

  const values: Omit<Values, keyof CoordinateValues> = {
    dataType: (array, decode) => valueTypeOf(planOf(array), { decode }),
    cost(array, selection, options = {}) {
      const plan = planOf(array);
      assertInside(plan.encoding, selection);
      const itemCount = elementCount(selection.map(pickedLength));
      const chunks = countChunks(plan, selection);
      const byteLength = itemCount * itemBytesOf(valueTypeOf(plan, options));
      const streamBytes = streamBytesOf(plan, selection, options);
      return { itemCount, byteLength, chunks, chunkBytes: chunks * plan.chunkBytes, streamBytes };
    },
    async read(_snapshot, array, selection, options = {}) {
      assertInside(planOf(array).encoding, selection);
      const shape = selection.map(pickedLength);
      return readBest(array, touchedByBox(selection), shape, options, (reading) =>
        readBox(reading, selection),
      );
    },
    stream(_snapshot, array, selection, options = {}) {
      const plan = planOf(array);
      assertInside(plan.encoding, selection);
      return { [Symbol.asyncIterator]: () => streamBest(array, plan, selection, options) };
    },
    async readPoints(_snapshot, array, points, options = {}) {
      const plan = planOf(array);
      const count = points.length / plan.stored.shape.length;
      if (!Number.isInteger(count)) {
        const expected = `expected points of ${plan.stored.shape.length} indexes`;
        throw new ZpublishError(
          "invalid-query",
          `'${plan.stored.path}': ${expected}, received ${points.length}`,
        );
      }
      return readBest(array, touchedByPoints(points), [count], options, (reading) =>
        readAtPoints(reading, points, count),
      );
    },
    async run<T>(module: URL | string, data: unknown, { signal }: RunModuleOptions = {}) {
      const work = beginWork(signal);
      const call = { module: String(module), data, cancelled: work.flag };
      const outcome = await new Promise<CallOutcome>((resolve, reject) => {
        work.signal.addEventListener("abort", () => reject(work.signal.reason), { once: true });
        parts.callModule(call, work.signal).then(resolve, reject).finally(work.end);
      });
      if (outcome.status === "failed") throw errorFromData(outcome.error);
      return outcome.value as T;
    },
  };
  return { ...values, ...createCoordinates(values.read) };
}

/** One reading of an array. */
interface Reading {
  readonly plan: ReadPlan;
  /** Type of the values. */
  readonly dataType: DataType;
  /** Whether values are changed by decoding. */
  readonly isDecoded: boolean;
  readonly work: Work;
  /** Has a worker gather items. */
  pick(items: ItemPick["items"]): Promise<ItemsMade>;
  /** Takes back the memory of items. */
  recycle(made: ItemsMade): void;
}

function openReading(
  plan: ReadPlan,
  { makeChunk, recycle = () => undefined }: ValuesParts,
  options: ReadValuesOptions,
): Reading {
  const decoding = options.decode ? plan.decoding : undefined;
  const byteOrder = ORDERS[options.byteOrder ?? "little"];
  const form = { dataType: plan.stored.dataType, decoding, byteOrder };
  const work = beginWork(options.signal);

  async function pick(items: ItemPick["items"]): Promise<ItemsMade> {
    try {
      work.signal.throwIfAborted();
      const chunkCoords = firstChunkOf({ items }, plan.encoding.stored.chunkShape);
      const task = { plan: plan.encoding, chunkCoords, pick: { ...form, items }, cancelled: work.flag };
      const outcome = await makeChunk(task, work.signal);
      if (outcome.status === "failed") throw errorFromData(outcome.error);
      if (outcome.status === "absent") throw new ZpublishError("internal", "expected items, received none");
      const { bytes } = outcome;
      if (plan.filter === undefined) return { bytes, texts: undefined };
      const texts = variableTexts(bytes, plan.filter === "vlen-utf8" ? "utf8" : "latin1");
      recycle(bytes);
      return { bytes: NO_BYTES, texts };
    } catch (error) {
      throw work.fail(error);
    }
  }

  const recycleItems = ({ bytes, texts }: ItemsMade) => {
    // Texts have no memory of the pool any more.
    if (texts === undefined) recycle(bytes);
  };
  const dataType = valueTypeOf(plan, options);
  return { plan, dataType, isDecoded: decoding !== undefined, work, pick, recycle: recycleItems };
}

const NO_BYTES = new Uint8Array(0);

async function readFrom(
  plan: ReadPlan,
  parts: ValuesParts,
  options: ReadValuesOptions,
  read: (reading: Reading) => Promise<ItemsMade>,
): Promise<ItemsMade> {
  const reading = openReading(plan, parts, options);
  try {
    return await read(reading);
  } finally {
    reading.work.end();
  }
}

function assertSize({ stored: { path } }: ReadPlan, byteLength: number, maxBytes: number): void {
  if (byteLength <= maxBytes) return;
  throw new ZpublishError(
    "too-large",
    `'${path}': expected at most ${maxBytes} bytes of values, received ${byteLength}`,
  );
}

async function readBox(reading: Reading, box: readonly AxisSelection[]): Promise<ItemsMade> {
  const { plan, dataType } = reading;
  const shape = box.map(pickedLength);
  const count = elementCount(shape);
  if (count === 0) return allocateItems(plan, 0, dataType);
  const blocks = cutBox(plan, box, itemBytesOf(dataType));
  if (blocks.length === 1) return reading.pick(box);
  const result = allocateItems(plan, count, dataType);
  await workThrough(blocks, TASKS_AT_ONCE, async (block) => {
    const made = await reading.pick(block.map(({ axis }) => axis));
    placeBlock(made, block, result, shape, dataType.itemSize);
    reading.recycle(made);
  });
  return result;
}

async function readAtPoints(reading: Reading, points: ArrayLike<number>, count: number): Promise<ItemsMade> {
  const { plan, dataType } = reading;
  const { groups, missing } = await groupPoints(points, plan.encoding, plan);
  const result = allocateItems(plan, count, dataType);
  if (missing.length > 0) placeMissing(reading, result, missing);
  await workThrough(groups, TASKS_AT_ONCE, async ({ chunks, positions }) => {
    const made = await reading.pick({ points: chunks });
    placeBlock(made, [{ axis: { indexes: positions }, to: positions }], result, [count], dataType.itemSize);
    reading.recycle(made);
  });
  return result;
}

/** Returns the memory of a stream: of what is made ahead, which is at least a slab. The first two slabs stand for all. */
function streamBytesOf(
  plan: ReadPlan,
  selection: readonly AxisSelection[],
  { pieceBytes = PIECE_BYTES, ...options }: StreamValuesOptions,
): number {
  const itemBytes = itemBytesOf(valueTypeOf(plan, options));
  const end = elementCount(selection.map(pickedLength));
  const slabs = slabsOf(plan, selection, itemBytes, pieceBytes, { begin: 0, end });
  const largest = Math.max(...[slabs.next(), slabs.next()].map(({ value }) => value?.itemCount ?? 0));
  return Math.min(end * itemBytes, AHEAD_PIECES * pieceBytes + largest * itemBytes);
}

async function* streamBox(
  reading: Reading,
  selection: readonly AxisSelection[],
  {
    firstItem = 0,
    itemCount = Number.POSITIVE_INFINITY,
    pieceBytes = PIECE_BYTES,
    ...options
  }: StreamValuesOptions,
): AsyncGenerator<ValueBlock> {
  const { plan, dataType, work } = reading;
  const itemBytes = itemBytesOf(dataType);
  const all = elementCount(selection.map(pickedLength));
  const range = { begin: firstItem, end: Math.min(all, firstItem + itemCount) };
  const slabs = slabsOf(plan, selection, itemBytes, pieceBytes, range);
  const ahead: { readonly slab: Slab; readonly made: Promise<ItemsMade> }[] = [];
  let bytesAhead = 0;
  try {
    assertSize(plan, (range.end - range.begin) * itemBytes, options.maxBytes ?? Number.POSITIVE_INFINITY);
    for (;;) {
      while (bytesAhead < AHEAD_PIECES * pieceBytes) {
        const { value: slab, done } = slabs.next();
        if (done) break;
        const made = readBox(reading, slab.box);
        // It is awaited later.
        made.catch(() => undefined);
        ahead.push({ slab, made });
        bytesAhead += slab.itemCount * itemBytes;
      }
      const next = ahead.shift();
      if (next === undefined) return;
      const { first, itemCount: ofSlab } = next.slab;
      const made = await next.made;
      const end = Math.min(ofSlab, range.end - first);
      const most = Math.max(1, Math.floor(pieceBytes / itemBytes));
      for (let at = Math.max(0, range.begin - first); at < end; at += most) {
        const count = Math.min(most, end - at);
        yield createBlock([count], dataType, partOf(made, at, count, dataType.itemSize));
      }
      if (options.reusesMemory) reading.recycle(made);
      bytesAhead -= ofSlab * itemBytes;
    }
  } finally {
    work.end();
  }
}

/** Returns part of items, over the same memory. */
function partOf({ bytes, texts }: ItemsMade, first: number, count: number, itemSize: number): ItemsMade {
  return {
    bytes: bytes.subarray(first * itemSize, (first + count) * itemSize),
    texts: texts?.slice(first, first + count),
  };
}

/** Items of a result that are written block by block. */
interface ResultItems extends ItemsMade {
  readonly texts: string[] | undefined;
}

function allocateItems({ filter }: ReadPlan, count: number, { itemSize }: DataType): ResultItems {
  if (filter !== undefined) return { bytes: NO_BYTES, texts: new Array<string>(count) };
  // All of it is written.
  const bytes = Buffer.allocUnsafeSlow(count * itemSize);
  return { bytes: new Uint8Array(bytes.buffer as ArrayBuffer, 0, count * itemSize), texts: undefined };
}

/** Puts the items of a block to their places. */
function placeBlock(
  { bytes, texts }: ItemsMade,
  block: Block,
  result: ResultItems,
  shape: readonly number[],
  itemSize: number,
): void {
  const parts = block.map(({ axis, to }) => ({
    length: pickedLength(axis),
    from: { first: 0, step: 1 },
    to,
  }));
  const from = itemStrides({ chunkShape: parts.map(({ length }) => length) });
  const to = itemStrides({ chunkShape: shape });
  if (texts === undefined) copyPlaces(bytes, from, result.bytes, to, parts, itemSize);
  else
    forEachPlace(parts, from, to, (source, target) => {
      result.texts![target] = texts[source]!;
    });
}

/** Writes NaN for points outside if values are decoded floats, NaT for dates and durations, else the fill value; no text if items are texts. */
function placeMissing(
  { plan, dataType, isDecoded }: Reading,
  { bytes, texts }: ResultItems,
  missing: readonly number[],
): void {
  // What absent chunks hold may be something else.
  const { served } = plan.stored.fill;
  const { kind } = dataType;
  const isNan = kind === "f" && (isDecoded || served === null);
  const isTime = kind === "M" || kind === "m";
  const mark = isNan ? "NaN" : isTime ? NOT_A_TIME : kind === "b" && isDecoded ? null : served;
  const hasItem = mark !== null && texts === undefined;
  const item = hasItem ? encodeFillItem(mark, dataType) : new Uint8Array(dataType.itemSize);
  for (const at of missing) {
    if (texts === undefined) bytes.set(item.subarray(0, dataType.itemSize), at * dataType.itemSize);
    else texts[at] = "";
  }
}

/** Values of one piece of a result: bytes, or texts if items have no fixed size. */
interface ItemsMade {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly texts: readonly string[] | undefined;
}

/** Creates a block, whose values are made at the first look. */
function createBlock(shape: readonly number[], dataType: DataType, { bytes, texts }: ItemsMade): ValueBlock {
  let values: ValueBlock["values"];
  return {
    ...{ shape, dataType, bytes },
    get values() {
      values ??= texts ?? (isNative(dataType) ? itemValues(bytes, dataType) : undefined);
      return values;
    },
  };
}
