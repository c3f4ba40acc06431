import { corrupt } from "../../codec/codec.js";
import { decodeSteps } from "../../codec/run-steps.js";
import { elementCount } from "../../model/data-tree.js";
import { parseDataType } from "../../model/data-type.js";
import type { CodecSpec } from "../../zarr/codec-step.js";
import { createSteps } from "../../zarr/plan/codec-steps.js";
import type { FileBlocks } from "../file-format.js";
import { createFindPlace, type FileArray } from "../file-index.js";
import { readHeapItems } from "./attributes.js";
import { Hdf5Input } from "./bytes.js";
import { GlobalHeap } from "./heaps.js";
import { readSuperblock } from "./objects.js";

/** How the chunks of variable-length strings are made: where the references to the strings are. */
export interface TextRecipe {
  /** Shape of the array. */
  readonly shape: readonly number[];
  readonly chunkShape: readonly number[];
  readonly places: FileArray["chunks"];
  /** Codecs of the references, by variant. */
  readonly codecs: readonly (readonly CodecSpec[])[];
  /** Text of strings that were never written. */
  readonly fill: string;
}

/** Bytes of a reference: number of bytes, address of a collection, index in it. */
const REFERENCE_BYTES = 16;
/** Strings that are read at a time. The event loop runs in between. */
const TEXTS_AT_ONCE = 4_096;
/** Maximum bytes of a chunk's strings. Many references may lead to one long string. */
const MAX_CHUNK_BYTES = 256 * 2 ** 20;
const TEXT_TYPE = { kind: "vlen-string", size: REFERENCE_BYTES, charset: "utf-8" } as const;

/**
 * Makes a chunk of variable-length strings, encoded as `vlen-utf8` does. Bytes that are no UTF-8 become U+FFFD.
 * @throws ZpublishError `corrupt-chunk`, `invalid-metadata` if the file is damaged; `source-unreadable`, `source-changed`
 */
export async function makeTextChunk(
  file: FileBlocks,
  recipe: TextRecipe,
  chunkCoords: readonly number[],
): Promise<Uint8Array<ArrayBuffer>> {
  const count = elementCount(recipe.chunkShape);
  const references = await readReferences(file, recipe, chunkCoords, count);
  const parts: Uint8Array[] = [uint32(count)];
  let byteLength = 4;
  const add = (text: string): void => {
    const bytes = Buffer.from(text);
    byteLength += 4 + bytes.length;
    if (byteLength > MAX_CHUNK_BYTES) {
      throw corrupt(`strings: expected at most ${MAX_CHUNK_BYTES} bytes in a chunk, received more`);
    }
    parts.push(uint32(bytes.length), bytes);
  };
  if (references === undefined) {
    for (let index = 0; index < count; index++) add(recipe.fill);
    return joined(parts, byteLength);
  }
  const heap = await openHeap(file);
  for (let from = 0; from < count; from += TEXTS_AT_ONCE) {
    const lot = references.subarray(from * REFERENCE_BYTES, (from + TEXTS_AT_ONCE) * REFERENCE_BYTES);
    for (const text of await readHeapTexts(heap, lot)) add(text);
    await heap.input.pause();
  }
  return joined(parts, byteLength);
}

/** Opens the heap of a file's strings. */
export async function openHeap(file: FileBlocks): Promise<GlobalHeap> {
  const { baseAddress } = await readSuperblock(file);
  return new GlobalHeap(new Hdf5Input(file, baseAddress));
}

/** Reads the strings that references lead to; null references are empty strings. */
export async function readHeapTexts(heap: GlobalHeap, references: Uint8Array): Promise<string[]> {
  const items = Math.floor(references.length / REFERENCE_BYTES);
  const texts = await readHeapItems(heap, TEXT_TYPE, references, items, { items, bytes: MAX_CHUNK_BYTES });
  return texts.map(String);
}

/** Reads the references of a chunk; undefined if it is absent. */
async function readReferences(
  file: FileBlocks,
  recipe: TextRecipe,
  chunkCoords: readonly number[],
  count: number,
): Promise<Uint8Array | undefined> {
  const { places, codecs } = recipe;
  const byteLength = count * REFERENCE_BYTES;
  if (places.kind === "made") throw corrupt("strings: expected places of references, received a recipe");
  if (places.kind === "inline") return places.bytes ?? undefined;
  const place = createFindPlace(recipe, places)(chunkCoords);
  if (place === undefined) return undefined;
  const stored = await file.readOnce(place.offset, place.byteLength);
  const chain = codecs[place.variant] ?? [];
  const items = { path: "references", dataType: parseDataType(`|V${REFERENCE_BYTES}`) };
  const steps = createSteps(items, chain, recipe.chunkShape, MAX_CHUNK_BYTES);
  const decoded = await decodeSteps(stored, steps.reverse(), "references");
  if (decoded.length > byteLength) {
    throw corrupt(`strings: expected ${byteLength} bytes of references, received ${decoded.length}`);
  }
  // The last piece of contiguous data ends with the array.
  const whole = new Uint8Array(byteLength);
  whole.set(decoded);
  return whole;
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function joined(parts: readonly Uint8Array[], byteLength: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(byteLength);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
