import { cfDecodingOf, isDecoded } from "../cf/decoded-type.js";
import { missingMarkOf } from "../cf/image-data.js";
import { packingOf } from "../cf/packing.js";
import { fillBuffer } from "../codec/copy-strided.js";
import type { ChunkOutcome } from "../codec/make-chunk.js";
import type { ServedArray } from "../dataset/dataset.js";
import { errorFromData, ZpublishError } from "../errors.js";
import { elementCount } from "../model/data-tree.js";
import type { ChunkTask } from "../pool/chunk-task.js";
import {
  createEncodingPlan,
  type EncodingRequest,
  type PlannedArray,
} from "../zarr/plan/create-encoding-plan.js";
import type { EncodingPlan } from "../zarr/plan/encoding-plan.js";
import type { StoredArray } from "../zarr/stored-array.js";
import {
  formatDecoded,
  formatItems,
  formatVlenItems,
  isVlenFilter,
  readItemNumbers,
} from "./format-items.js";
import { shortened } from "./page.js";

/** Values shown from the beginning and from the end. */
const FIRST_COUNT = 6;
const LAST_COUNT = 3;

/** Maximum bytes of a chunk that is decoded for a preview. */
const MAX_CHUNK_BYTES = 64 * 2 ** 20;
/** Maximum of numbers that are read of a variable: of coordinates, few have more. */
const MAX_NUMBERS = 262_144;
/** Maximum length of a text. Longer texts are cut, because a preview is one line of a page. */
const MAX_TEXT_LENGTH = 200;

/** Makes a served chunk of a plan, in the pool or inline. */
type MakeChunk = (task: ChunkTask) => Promise<ChunkOutcome>;

/** Creates a preview service, whose plans serve a few items uncompressed: `makeChunk` does all reading and decoding. */
export function createPreviewService(makeChunk: MakeChunk): PreviewService {
  return {
    async values({ stored }) {
      try {
        const count = elementCount(stored.shape);
        const firstCount = Math.min(FIRST_COUNT, count);
        const lastCount = Math.min(LAST_COUNT, count - firstCount);
        const wanted = Array.from({ length: firstCount + lastCount }, (_, index) =>
          index < firstCount ? index : count - lastCount + index - firstCount,
        );
        const texts =
          stored.dataType.kind === "O"
            ? await readObjects(stored, wanted, makeChunk)
            : await readItems(stored, wanted, makeChunk);
        const parted = (all: readonly string[]) => {
          const short = all.map((text) => shortened(text, MAX_TEXT_LENGTH));
          return { first: short.slice(0, firstCount), last: short.slice(firstCount) };
        };
        if (texts === undefined) return undefined;
        const { values, asStored } = texts;
        return { ...parted(values), ...(asStored !== undefined && { stored: parted(asStored) }) };
      } catch {
        // Requests for the data report the error; a page is shown without the values.
        return undefined;
      }
    },
    numbers: ({ stored }) => readUnpacked(stored, makeChunk),
  };
}

/** Values as texts, and as they are stored if that is something else. */
interface ItemTexts {
  readonly values: readonly string[];
  readonly asStored?: readonly string[] | undefined;
}

/** Reads items of fixed size. @param wanted Positions in the flattened array (C order). */
async function readItems(
  stored: StoredArray,
  wanted: readonly number[],
  makeChunk: MakeChunk,
): Promise<ItemTexts | undefined> {
  const { shape, dataType } = stored;
  const rowLength = Math.min(FIRST_COUNT, shape.at(-1) ?? 1);
  const chunkShape = shape.map((_, axis) => (axis === shape.length - 1 ? Math.max(1, rowLength) : 1));
  const { plan } = planDecoded(stored, { chunkShape, compressor: null, filters: null });
  const { itemSize } = dataType;
  const items = new Uint8Array(wanted.length * itemSize);
  for (const chunk of chunksOf(plan, wanted)) {
    const bytes = await readChunk(plan, chunk.chunkCoords, makeChunk);
    for (const { index, offset } of chunk.items)
      items.set(bytes.subarray(offset * itemSize, (offset + 1) * itemSize), index * itemSize);
  }
  const asStored = formatItems(items, dataType);
  const numbers = readItemNumbers(items, dataType);
  const decoding = cfDecodingOf(dataType, stored.attrs, missingMarkOf(stored, stored.fill.served) ?? null);
  if (asStored === undefined || numbers === undefined || !isDecoded(decoding))
    return asStored && { values: asStored };
  return { values: formatDecoded(numbers, decoding, stored.attrs), asStored };
}

function planDecoded(stored: StoredArray, asked: EncodingRequest): PlannedArray {
  return createEncodingPlan(stored, asked, { maxChunkBytes: MAX_CHUNK_BYTES });
}

/** A chunk with wanted items: the index of each among all wanted ones, and its position in the chunk. */
interface WantedChunk {
  readonly chunkCoords: readonly number[];
  readonly items: { readonly index: number; readonly offset: number }[];
}

/** Returns the served chunks that hold items. @param wanted As for {@link readItems}. */
function chunksOf({ shape, served }: EncodingPlan, wanted: readonly number[]): Iterable<WantedChunk> {
  const chunks = new Map<string, WantedChunk>();
  for (const [index, position] of wanted.entries()) {
    const coords: number[] = [];
    let rest = position;
    for (const length of shape.toReversed()) {
      coords.unshift(rest % length);
      rest = Math.floor(rest / length);
    }
    const chunkCoords = coords.map((at, axis) => Math.floor(at / served.chunkShape[axis]!));
    const chunk = chunks.get(String(chunkCoords)) ?? { chunkCoords, items: [] };
    chunks.set(String(chunkCoords), chunk);
    const offset = served.axisOrder.reduce((sum, axis) => {
      const length = served.chunkShape[axis]!;
      return sum * length + (coords[axis]! % length);
    }, 0);
    chunk.items.push({ index, offset });
  }
  return chunks.values();
}

async function readUnpacked(
  stored: StoredArray,
  makeChunk: MakeChunk,
): Promise<readonly number[] | undefined> {
  const chunkShape = stored.shape.map((length, axis) => (axis < stored.shape.length - 2 ? 1 : length));
  const count = elementCount(chunkShape);
  if (count === 0 || count > MAX_NUMBERS) return undefined;
  if (readItemNumbers(new Uint8Array(), stored.dataType) === undefined) return undefined;
  let plan: EncodingPlan;
  try {
    ({ plan } = planDecoded(stored, { chunkShape, compressor: null, filters: null }));
  } catch (error) {
    if (error instanceof ZpublishError && error.code === "unsupported") return undefined;
    throw error;
  }
  const first = chunkShape.map(() => 0);
  const items = readItemNumbers(await readChunk(plan, first, makeChunk), stored.dataType);
  const { missing, scale, offset } = packingOf(stored.attrs, missingMarkOf(stored, stored.fill.served));
  return items?.map((item) => {
    const number = Number(item);
    return missing.includes(number) ? Number.NaN : number * scale + offset;
  });
}

/** Reads objects. They have no fixed size, so their chunks are read in the stored grid. */
async function readObjects(
  stored: StoredArray,
  wanted: readonly number[],
  makeChunk: MakeChunk,
): Promise<ItemTexts | undefined> {
  const { plan, document } = planDecoded(stored, { compressor: null });
  const id = document.filters?.[0]?.id;
  if (document.filters?.length !== 1 || !isVlenFilter(id)) return undefined;
  const texts: (string | undefined)[] = wanted.map(() => undefined);
  for (const { chunkCoords, items } of chunksOf(plan, wanted)) {
    const outcome = await makeChunk({ plan, chunkCoords });
    // A fill value has no bytes here.
    if (outcome.status !== "encoded") return undefined;
    const count = Math.max(...items.map(({ offset }) => offset)) + 1;
    const found = formatVlenItems(id, outcome.bytes, count);
    for (const { index, offset } of items) texts[index] = found?.[offset];
  }
  return texts.every((text) => text !== undefined) ? { values: texts } : undefined;
}

async function readChunk(
  plan: EncodingPlan,
  chunkCoords: readonly number[],
  makeChunk: MakeChunk,
): Promise<Uint8Array> {
  const outcome = await makeChunk({ plan, chunkCoords });
  if (outcome.status === "failed") throw errorFromData(outcome.error);
  const byteLength = elementCount(plan.served.chunkShape) * plan.itemSize;
  if (outcome.status === "encoded") {
    // Stored bytes that are passed through have not been checked.
    if (outcome.bytes.length === byteLength) return outcome.bytes;
    throw new Error(`expected a chunk of ${byteLength} bytes, received ${outcome.bytes.length}`);
  }
  const bytes = new Uint8Array(byteLength);
  fillBuffer(bytes, plan.fillItem);
  return bytes;
}

/** Decodes a few values for people. Chunks are never served this way. */
export interface PreviewService {
  /**
   * Returns the first and last values of a variable in C order, decoded as CF says, and formatted as numpy prints them (`1.5`, `nan`,
   * `2000-01-01T00:00:00`, `'abc'`). CF times (`units: "hours since …"`) and `M8` are ISO dates. Undefined if the type or codec
   * cannot be decoded or the source failed.
   */
  values(array: ServedArray): Promise<PreviewValues | undefined>;
  /**
   * Returns the values of a small variable in stored order, unpacked, NaN for missing ones; of the last two axes, at the first index of
   * others. Undefined if they are no numbers, cannot be decoded, or are more than 262,144.
   * @throws ZpublishError if the source or a codec failed.
   */
  numbers(array: ServedArray): Promise<readonly number[] | undefined>;
}

/** The first and last values of a variable. */
export interface PreviewValues extends FirstAndLast {
  /** The same values as they are stored: packed numbers, times as numbers. Undefined if they are stored as they are. */
  readonly stored?: FirstAndLast;
}

interface FirstAndLast {
  readonly first: readonly string[];
  /** Empty if `first` has all values. */
  readonly last: readonly string[];
}
