import { pickItems } from "../codec/items/pick-items.js";
import { ZpublishError } from "../errors.js";
import { runNow } from "../event-loop/cooperative-task.js";
import { workThrough } from "../event-loop/work-through.js";
import type { ChunkIndex } from "../formats/table-chunk-reader.js";
import type { JsonObject } from "../json/json-value.js";
import { nameDimensions } from "../model/data-tree.js";
import { openChunkReader } from "../open/chunk-reader.js";
import type { ObjectStat } from "../stores/byte-store.js";
import type { FileChunks, ShardChunks } from "../zarr/chunk-reader.js";
import { completeCodec, decodeProblem } from "../zarr/plan/codec-rules.js";
import { createItemPlan } from "../zarr/plan/item-pick.js";
import type { StoredArray } from "../zarr/stored-array.js";
import type { StoredTree } from "../zarr/stored-tree.js";
import type { PartStored } from "./item-forms.js";

/**
 * One file of several that are one dataset, as far as the others have to be compared with it: plain data, which is kept between runs,
 * so that the file need not be opened for it.
 */
export interface PartDescription {
  /** Path below the folder that all parts have in common, for messages and chunk versions: `2024/sst-01.nc`. */
  readonly name: string;
  /** Every group, root (`path` "/") first, parents before children. Attributes of the first part are served. */
  readonly groups: readonly { readonly path: string; readonly attrs: JsonObject }[];
  readonly arrays: readonly PartArray[];
  /** Arrays and groups of the part that cannot be served. */
  readonly refused: readonly { readonly path: string; readonly reason: string }[];
}

/** An array of a part. */
export interface PartArray {
  readonly stored: PartStored;
  /** Names of its axes. */
  readonly dims: readonly string[];
  /**
   * Items in C order, in the stored type and byte order, of scalars and coordinates; variable-length ones as vlen-utf8 writes one chunk.
   * Undefined for other arrays, whose values are not compared.
   */
  readonly values?: Uint8Array;
}

/** A part as it was described last. */
export interface KnownPart {
  /** As in `PartDescription`. */
  readonly name: string;
  /** Version that the finder gave when the part was described. */
  readonly version: string;
  /** `identity` of its tree when it was described: with another one it is another file by now. */
  readonly identity: string;
  readonly description: PartDescription;
  /** Where its chunks lie. Undefined if it is opened for them. */
  readonly places?: PartPlaces | undefined;
}

/** Where the chunks of a part lie: plain data, kept with its description, so that they are read without opening the part. */
export type PartPlaces = FilePlaces | StorePlaces;

/** Places in a file. */
export interface FilePlaces {
  readonly kind: "file";
  /** Name of the file's store, and its key there. */
  readonly store: string;
  readonly key: string;
  readonly file: ObjectStat;
  readonly format: ChunkIndex["format"];
  /** One per array of the description; null for one whose chunks take the index of the file. */
  readonly tables: readonly (ChunkIndex["chunks"] | null)[];
}

/** Places in a local Zarr store. */
export interface StorePlaces {
  readonly kind: "store";
  readonly layout: StoreLayout;
  /** Records of the documents of each array. */
  readonly records: readonly string[];
}

/** What the places in most stores have in common. */
export interface StoreLayout {
  /** As in {@link FilePlaces.tables}, with paths from the root of the store. */
  readonly chunks: readonly (FileChunks | ShardChunks | null)[];
}

/** A file that is no dataset, until its version changes. */
export interface BrokenPart {
  readonly name: string;
  readonly version: string;
  readonly reason: string;
}

/** State of the parts of one dataset. */
export interface KeptParts {
  readonly parts: readonly KnownPart[];
  readonly broken: readonly BrokenPart[];
}

/** Sorts parts, or files, by their names. */
export function sortedByName<T extends { readonly name: string }>(items: Iterable<T>): T[] {
  return [...items].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * Describes a part, and reads the values of its coordinates. A coordinate that is too long, or that cannot be decoded, has no values,
 * unless it is that of the joined dimension, which has to be read.
 * @throws ZpublishError `unsupported` if that of the joined dimension cannot be read; the error of a failed read
 */
export async function describePart(
  name: string,
  tree: Pick<StoredTree, "groups" | "refused">,
  dimension: string | undefined,
): Promise<PartDescription> {
  const arrays: PartArray[] = [];
  for (const group of tree.groups) {
    const dims = runNow(nameDimensions(group.arrays));
    for (const [index, array] of group.arrays.entries())
      arrays.push(await describeArray(array, dims[index]!, dimension));
  }
  const groups = tree.groups.map(({ path, attrs }) => ({ path, attrs }));
  return { name, groups, arrays, refused: tree.refused };
}

async function describeArray(
  array: StoredArray,
  dims: readonly string[],
  dimension: string | undefined,
): Promise<PartArray> {
  const { chunks: _chunks, v3: _v3, ...stored } = array;
  const [dim] = dims;
  const isCoordinate = dims.length === 0 || (dims.length === 1 && (dim === dimension || dim === array.name));
  if (!isCoordinate) return { stored, dims };
  const problem = coordinateProblem(array);
  if (problem === undefined) return { stored, dims, values: await readCoordinate(array) };
  if (dim === undefined || dim !== dimension || array.name !== dimension) return { stored, dims };
  throw new ZpublishError("unsupported", `'${array.path}': ${problem}`);
}

/** Longest coordinate of one part, in values. */
const MAX_VALUES = 1_000_000;
/** Longest coordinate of one part, in bytes. */
const MAX_BYTES = 16 * 2 ** 20;
/** Chunks of a coordinate that are read at a time. */
const CONCURRENCY = 16;
/** Filter of texts; the chunk before it has their number and, before each, its length, as little-endian uint32. */
const TEXT_FILTER = "vlen-utf8";
/** Bytes of that number. */
const LENGTH_BYTES = 4;

/** Tells why the values of a coordinate are not read; undefined if they are. */
function coordinateProblem(array: StoredArray): string | undefined {
  const { shape, dataType, codecs, variants = [] } = array;
  const [length = 1] = shape;
  if (length > MAX_VALUES) return `expected at most ${MAX_VALUES} values in one part, received ${length}`;
  const byteLength = length * dataType.itemSize;
  if (byteLength > MAX_BYTES)
    return `expected at most ${MAX_BYTES} bytes in one part, received ${byteLength}`;
  if (dataType.kind === "O" && !isText(array))
    return `expected numbers, times or texts, received items of ${dataType.numpyName}`;
  const steps = [...codecs.slice(isText(array) ? 1 : 0), ...variants.flat()];
  return steps.map((codec) => decodeProblem(completeCodec(codec))).find(Boolean);
}

/**
 * Reads all items of an array of one axis at most, as `PartArray.values` has them. There must be no {@link coordinateProblem}.
 * @throws ZpublishError `corrupt-chunk`; the error of a failed read
 */
async function readCoordinate(array: StoredArray): Promise<Uint8Array> {
  const { shape, dataType, codecs, variants = [] } = array;
  const [length = 1] = shape;
  const reader = openChunkReader(array.chunks);
  // Most coordinates are one chunk of items as they are. Whatever is unusual about it is found below.
  if (codecs.length + variants.length === 0 && (array.chunkShape[0] ?? 1) === length) {
    const stored = await reader.read(shape.map(() => 0));
    if (stored?.bytes.length === length * dataType.itemSize) return stored.bytes;
  }
  const { plan } = createItemPlan(array, undefined);
  const [chunkLength = 1] = plan.stored.chunkShape;
  const byteOrder = dataType.byteOrder === ">" ? ">" : "<";
  const pieces: Uint8Array[] = [];
  await workThrough(Array(Math.ceil(length / chunkLength)).keys(), CONCURRENCY, async (index) => {
    const begin = index * chunkLength;
    const axis = { begin, count: Math.min(chunkLength, length - begin), step: 1 };
    const pick = { items: shape.map(() => axis), dataType, decoding: undefined, byteOrder } as const;
    const { bytes } = await pickItems(plan, pick, reader, { isCancelled: () => false });
    pieces[index] = bytes;
  });
  if (dataType.kind !== "O") return Buffer.concat(pieces);
  const head = Buffer.alloc(LENGTH_BYTES);
  head.writeUInt32LE(length);
  return Buffer.concat([head, ...pieces.map((piece) => piece.subarray(LENGTH_BYTES))]);
}

function isText({ dataType, codecs }: StoredArray): boolean {
  return dataType.kind === "O" && codecs[0]?.id === TEXT_FILTER;
}
