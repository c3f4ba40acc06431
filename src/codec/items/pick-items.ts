import { combinations } from "../../collections/combinations.js";
import { ZpublishError } from "../../errors.js";
import type { ChunkReader } from "../../zarr/chunk-reader.js";
import type { EncodingPlan } from "../../zarr/plan/encoding-plan.js";
import {
  forEachPlace,
  type ItemPick,
  itemStrides,
  type PickedPart,
  partsOfAxis,
  pickedCount,
  pickedLength,
} from "../../zarr/plan/item-pick.js";
import { corrupt } from "../codec.js";
import { copyPlaces } from "../copy-strided.js";
import { decodeStored } from "../decode-stored.js";
import { swapWords } from "../item-reader.js";
import { currentKernel } from "../kernel/kernel.js";
import { type ChunkOutcome, type MakeChunkOptions, placeFor } from "../make-chunk.js";
import type { ChunkInput } from "../run-steps.js";
import { decodeNumbers, wordSizeOf } from "./decode-numbers.js";

/** Options of {@link pickItems}. */
interface PickItemsOptions extends MakeChunkOptions {
  /** Asked before each stored chunk. */
  readonly isCancelled: () => boolean;
}

/** Picked items of one stored chunk: of a box, or of points, which follow each other in the result. */
type PickedChunk =
  | { readonly coords: readonly number[]; readonly parts: readonly PickedPart[] }
  | { readonly coords: readonly number[]; readonly places: Uint32Array; readonly first: number };

/** Copies the picked items of a chunk. @param source Undefined if the chunk is absent. */
type CopyItems = (chunk: PickedChunk, source: Uint8Array | undefined) => void;

/**
 * Gathers items of stored chunks, on the thread that calls, and decodes them as the pick says. Items of variable length come as vlen-utf8
 * and vlen-bytes write them.
 * @throws ZpublishError as `makeChunk`; `cancelled`
 */
export async function pickItems(
  plan: EncodingPlan,
  pick: ItemPick,
  reader: ChunkReader,
  { decoded, into, isCancelled }: PickItemsOptions,
): Promise<Extract<ChunkOutcome, { status: "encoded" }>> {
  const kernel = currentKernel();
  const memory = kernel.lease();
  const timings = { read: 0, decode: 0, encode: 0 };
  const input: ChunkInput = { plan, reader, memory, timings, decoded };
  const { itemSize } = plan;
  const { dataType, decoding } = pick;
  const chunks = chunksOf(plan, pick);
  const count = pickedCount(pick);
  const storedInPlace = decoding === undefined && itemSize > 0;
  const type = decoding === undefined ? dataType : ({ ...decoding.to, byteOrder: "<" } as const);
  const wordSize = type.byteOrder === pick.byteOrder ? 1 : wordSizeOf(type);
  // Whole chunks are swapped while the processor has them at hand.
  const swapsChunks =
    storedInPlace && wordSize > 1 && wordSize <= 8 && chunks.every((chunk) => takesAll(plan, chunk));
  const placed = storedInPlace ? placeFor(count * itemSize, into) : undefined;
  try {
    const raw = placed ?? memory.allocate(count * itemSize);
    const texts: Uint8Array[] = [];
    const copy =
      itemSize > 0 ? itemCopier(plan, pick, raw, swapsChunks ? wordSize : 1) : textCopier(plan, pick, texts);
    for (const chunk of chunks) {
      if (isCancelled()) throw new ZpublishError("cancelled", "nothing waits for these values any more");
      const mark = memory.mark();
      const found = await decodeStored(input, chunk.coords, !takesAll(plan, chunk));
      const began = performance.now();
      copy(chunk, swapsChunks && found ? kernel.swappedWords(found.bytes, wordSize, memory) : found?.bytes);
      memory.rewind(mark);
      timings.decode += performance.now() - began;
    }
    const began = performance.now();
    const bytes =
      itemSize > 0 ? (placed ?? decodedItems(raw, pick, count, into)) : joined(texts, count, into);
    if (!swapsChunks) swapWords(bytes, wordSize);
    timings.encode += performance.now() - began;
    return { status: "encoded", bytes, checksum: undefined, version: "", timings };
  } finally {
    memory.end();
  }
}

function chunksOf({ stored: { chunkShape } }: EncodingPlan, { items }: ItemPick): PickedChunk[] {
  if ("points" in items) {
    let first = 0;
    return items.points.map(({ coords, places }) => {
      first += places.length;
      return { coords, places, first: first - places.length };
    });
  }
  const axes = items.map((axis, at) => [...partsOfAxis(axis, chunkShape[at]!)]);
  return Array.from(combinations(axes), (parts) => ({ coords: parts.map(({ chunk }) => chunk), parts }));
}

/** Tells whether a task uses all items of a chunk, so that no other will. */
function takesAll({ shape, stored: { chunkShape } }: EncodingPlan, chunk: PickedChunk): boolean {
  if ("places" in chunk) return false;
  return chunk.parts.every(({ length, chunk: index }, axis) => {
    const chunkLength = chunkShape[axis]!;
    return length >= Math.min(chunkLength, shape[axis]! - index * chunkLength);
  });
}

/** Puts items of a fixed size to their places in `raw`. @param wordSize Bytes that are turned round in chunks, but not in fill values. */
function itemCopier(plan: EncodingPlan, { items }: ItemPick, raw: Uint8Array, wordSize: number): CopyItems {
  const { itemSize } = plan;
  const strides = itemStrides(plan.stored);
  const absent = strides.map(() => 0);
  const fill = plan.fillItem?.slice() ?? new Uint8Array(itemSize);
  swapWords(fill, wordSize);
  const targetStrides = "points" in items ? [1] : itemStrides({ chunkShape: items.map(pickedLength) });
  return (chunk, source) => {
    if ("parts" in chunk) {
      const [from, own] = source === undefined ? [fill, absent] : [source, strides];
      copyPlaces(from, own, raw, targetStrides, chunk.parts, itemSize);
      return;
    }
    const { places, first } = chunk;
    const parts = [{ length: places.length, from: places, to: { first, step: 1 } }];
    copyPlaces(source ?? fill, [source === undefined ? 0 : 1], raw, targetStrides, parts, itemSize);
  };
}

/** Puts texts to their places, each after its length as vlen-utf8 writes it. */
function textCopier(plan: EncodingPlan, { items }: ItemPick, texts: Uint8Array[]): CopyItems {
  const strides = itemStrides(plan.stored);
  const targetStrides = "points" in items ? [1] : itemStrides({ chunkShape: items.map(pickedLength) });
  const fill = plan.fillItem ?? new Uint8Array(4);
  return (chunk, source) => {
    const all = source === undefined ? undefined : separateTexts(source);
    const place = (at: number, to: number) => {
      const text = all === undefined ? fill : all[at];
      if (text === undefined) throw corrupt(`array '${plan.path}': expected more items in a chunk`);
      texts[to] = text;
    };
    if ("places" in chunk) {
      for (const [i, at] of chunk.places.entries()) place(at, chunk.first + i);
      return;
    }
    forEachPlace(chunk.parts, strides, targetStrides, place);
  };
}

/** Separates the items of a chunk, each with its length before it. They are copies. @throws ZpublishError `corrupt-chunk` */
function separateTexts(bytes: Uint8Array): Uint8Array[] {
  const own = bytes.slice();
  const view = new DataView(own.buffer);
  const texts: Uint8Array[] = [];
  const count = own.length < 4 ? 0 : view.getUint32(0, true);
  for (let at = 4; texts.length < count; ) {
    const end = at + 4 + (at + 4 <= own.length ? view.getUint32(at, true) : 0);
    if (end > own.length || end < at + 4 || at + 4 > own.length)
      throw corrupt(`expected ${count} items, received ${texts.length} and bytes that are no item`);
    texts.push(own.subarray(at, end));
    at = end;
  }
  return texts;
}

/** Joins texts as vlen-utf8 does: their number, then each after its length. */
function joined(
  texts: readonly Uint8Array[],
  count: number,
  into: ArrayBuffer | undefined,
): Uint8Array<ArrayBuffer> {
  const bytes = placeFor(
    texts.reduce((sum, text) => sum + text.length, 4),
    into,
  );
  new DataView(bytes.buffer, bytes.byteOffset).setUint32(0, count, true);
  let at = 4;
  for (const text of texts) {
    bytes.set(text, at);
    at += text.length;
  }
  return bytes;
}

function decodedItems(
  raw: Uint8Array,
  { dataType, decoding }: ItemPick,
  count: number,
  into: ArrayBuffer | undefined,
): Uint8Array<ArrayBuffer> {
  if (decoding === undefined) throw new Error("expected a decoding");
  const target = placeFor(count * decoding.to.itemSize, into);
  decodeNumbers(raw, dataType, decoding, target);
  return target;
}
