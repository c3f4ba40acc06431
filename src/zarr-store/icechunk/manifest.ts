import { decodeZstdSteps, parseZstdDictionary, type ZstdDictionary } from "../../codec/plain/zstd-decoder.js";
import { ZpublishError } from "../../errors.js";
import { type CooperativeTask, runCooperatively, runNow } from "../../event-loop/cooperative-task.js";
import {
  asDamage,
  bytesIn,
  damaged,
  decodeIcechunkFile,
  encodeId,
  FlatTable,
  type FlatVector,
  vectorAt,
} from "./icechunk-file.js";

/** Where the bytes of a chunk are. */
export type ChunkRef = NativeRef | VirtualRef | { readonly kind: "inline"; readonly bytes: Uint8Array };

/** Bytes of a file of the repository. */
interface NativeRef {
  readonly kind: "native";
  /** Id of the file, as it is named. */
  readonly id: string;
  readonly offset: number;
  readonly byteLength: number;
}

/** Bytes of an object elsewhere. */
export interface VirtualRef {
  readonly kind: "virtual";
  /** URL, or `vcc://container/path`. */
  readonly location: string;
  readonly offset: number;
  readonly byteLength: number;
  /** Entity tag that the object must have; undefined if none is recorded. */
  readonly etag: string | undefined;
  /** Seconds since 1970 after which the object must not have been modified; 0 if none are recorded. */
  readonly modified: number;
}

/** The references of the chunks of some arrays. */
export interface Manifest {
  /** Memory that it takes. */
  readonly byteLength: number;
  /**
   * Finds a chunk; undefined if it is absent.
   * @param node Id of the array, as {@link nodeKey} writes it.
   * @throws ZpublishError `invalid-metadata` if its location cannot be decoded
   */
  find(node: string, coords: readonly number[]): ChunkRef | undefined;
}

/** Fields of a `ChunkRef` by number. */
const INDEX = 0;
const INLINE = 1;
const OFFSET = 2;
const LENGTH = 3;
const CHUNK_ID = 4;
const LOCATION = 5;
const ETAG = 6;
const MODIFIED = 7;
const COMPRESSED_LOCATION = 8;
/** What the place of each field is a multiple of: of texts and vectors, of integers of 64 bits, of an id. */
const ALIGNMENTS = [4, 4, 8, 8, 1, 4, 4, 4, 4];

/**
 * Kinds of records, their first byte. The id or the bytes of a chunk follow; or of a location the seconds (4 bytes), the lengths of etag
 * and location (2 each), etag and location.
 */
const NATIVE = 0;
const INLINED = 1;
const PLAIN = 2;
const COMPRESSED = 3;

const ID_BYTES = 12;
/** Bound of Icechunk, too. */
const MAX_LOCATION_BYTES = 1_024;
/** References that are read in one step. */
const STEP_REFS = 512;

/** Writes the id of a node as a key. */
export function nodeKey(id: Uint8Array | undefined): string {
  return Buffer.from(id ?? []).toString("latin1");
}

/**
 * Decodes a manifest in steps.
 * @throws ZpublishError `invalid-metadata` if it is damaged; `unsupported`
 */
export async function decodeManifest(bytes: Uint8Array, key: string): Promise<Manifest> {
  const { root } = await decodeIcechunkFile(bytes, key, "manifest");
  try {
    return await runCooperatively(readManifest(root, key));
  } catch (error) {
    throw asDamage(error, key);
  }
}

/** A function of its own, so that a manifest does not retain the file. */
function* readManifest(root: FlatTable, key: string): CooperativeTask<Manifest> {
  const arrays = new Map<string, ArrayRefs>();
  let byteLength = 0;
  root.require(0, 1);
  if (!key.endsWith(encodeId(root.struct(0, ID_BYTES)!)))
    throw damaged(key, "expected the id that is its name, received another");
  for (const array of root.tables(1)) {
    array.require(0, 1);
    const refs = yield* readRefs(array, key);
    arrays.set(nodeKey(array.struct(0, 8)), refs);
    byteLength += refs.byteLength;
  }
  const written = root.bytes(2);
  const dictionary = root.uint8(3, 1) === 1 && written ? parseZstdDictionary(written.slice()) : undefined;
  return {
    byteLength: byteLength + (written?.length ?? 0),
    find(node, coords) {
      const refs = arrays.get(node);
      // Icechunk writes no manifest without a chunk of each array that refers to it.
      if (refs === undefined) throw damaged(key, "expected references of the array, found none");
      const index = find(refs, coords);
      return index < 0 ? undefined : refOf(refs, index, dictionary, key);
    },
  };
}

/** References of one array, without an object for each. */
interface ArrayRefs {
  /** Length of the box from the origin that has all chunks, along each axis. */
  readonly box: readonly number[];
  /** Positions in the box in C order, ascending. */
  readonly numbers: Uint32Array | Float64Array;
  readonly offsets: Float64Array;
  readonly lengths: Float64Array;
  /** Place of the record of each, in `records`. Equal records of locations are one, unless many others lie between them. */
  readonly starts: Uint32Array;
  readonly records: Uint8Array;
  readonly byteLength: number;
}

function* readRefs(array: FlatTable, key: string): CooperativeTask<ArrayRefs> {
  const { view } = array;
  const { at, length } = array.vector(1, 4) ?? { at: 0, length: 0 };
  const ref = { at: 0, fields: new Uint16Array(ALIGNMENTS.length) };
  let [vtable, phase] = [-1, 0];
  /** Goes to a reference. Most share the description of their fields. */
  function goTo(index: number): FlatVector {
    const place = at + 4 * index;
    ref.at = place + view.getUint32(place, true);
    const described = ref.at - view.getInt32(ref.at, true);
    if (described !== vtable || ref.at % 8 !== phase) {
      const table = new FlatTable(view, ref.at);
      for (const [field, alignment] of ALIGNMENTS.entries())
        ref.fields[field] = Math.max(0, table.place(field, alignment) - ref.at);
      [vtable, phase] = [described, ref.at % 8];
    }
    if (ref.fields[INDEX] === 0) throw damaged(key, "expected the coordinates of a chunk, found none");
    return vectorAt(view, ref.at + ref.fields[INDEX]!, 4);
  }

  const box = new Array<number>(length === 0 ? 0 : goTo(0).length).fill(0);
  for (let index = 0; index < length; index++) {
    if (index % STEP_REFS === 0) yield;
    const coords = goTo(index);
    if (coords.length !== box.length)
      throw damaged(key, `expected ${box.length} coordinates of a chunk, received ${coords.length}`);
    for (let axis = 0; axis < box.length; axis++)
      box[axis] = Math.max(box[axis]!, view.getUint32(coords.at + 4 * axis, true) + 1);
  }
  const size = box.reduce((product, side) => product * side, 1);
  if (size > Number.MAX_SAFE_INTEGER)
    throw new ZpublishError(
      "unsupported",
      `'${key}': expected a grid of at most 2^53 chunks, received ${size}`,
    );
  const numbers = size <= 2 ** 32 ? new Uint32Array(length) : new Float64Array(length);
  const offsets = new Float64Array(length);
  const lengths = new Float64Array(length);
  const starts = new Uint32Array(length);
  const writer = createRecords(length * (ID_BYTES + 1));
  for (let index = 0, last = -1; index < length; index++) {
    if (index % STEP_REFS === 0) yield;
    const coords = goTo(index);
    let number = 0;
    for (let axis = 0; axis < box.length; axis++)
      number = number * box[axis]! + view.getUint32(coords.at + 4 * axis, true);
    if (number <= last) throw damaged(key, "expected chunks in ascending order, received others");
    last = number;
    numbers[index] = number;
    offsets[index] = integerOf(view, ref, OFFSET);
    lengths[index] = integerOf(view, ref, LENGTH);
    starts[index] = writer.add(view, ref, key);
    if (writer.isInline(starts[index]!))
      lengths[index] = vectorAt(view, ref.at + ref.fields[INLINE]!, 1).length;
  }
  const records = writer.bytes();
  const byteLength = numbers.byteLength + length * (8 + 8 + 4) + records.byteLength;
  return { box, numbers, offsets, lengths, starts, records, byteLength };
}

/** A reference in the file: its place, and the places of its fields from there on, 0 for those that it does not have. */
interface RefPlace {
  at: number;
  readonly fields: Uint16Array;
}

/** @throws RangeError if an integer of 64 bits is larger than a file can be */
function integerOf(view: DataView, { at, fields }: RefPlace, field: number): number {
  if (fields[field] === 0) return 0;
  const high = view.getUint32(at + fields[field]! + 4, true);
  if (high >= 2 ** 21) throw new RangeError("an offset ends after any file");
  return view.getUint32(at + fields[field]!, true) + high * 2 ** 32;
}

/** Records that are looked for again: of locations, most chunks of one file follow each other. */
const RECENT = 4_096;

/** Creates the records of an array's references. @param capacity Bytes that are likely to be needed. */
function createRecords(capacity: number) {
  let records = new Uint8Array(capacity);
  let end = 0;
  const recent = new Uint32Array(RECENT);

  function append(bytes: Uint8Array): void {
    if (end + bytes.length > records.length) {
      const larger = new Uint8Array(Math.max(records.length * 2, end + bytes.length));
      larger.set(records);
      records = larger;
    }
    records.set(bytes, end);
    end += bytes.length;
  }

  /** Returns the place of a record that was added before and is equal to the last one, which is dropped then. */
  function shared(start: number): number {
    let hash = 0;
    for (let at = start; at < end; at++) hash = Math.imul(hash ^ records[at]!, 0x01000193);
    const slot = (hash >>> 0) % RECENT;
    const other = recent[slot]! - 1;
    const length = end - start;
    const isEqual =
      other >= 0 &&
      Buffer.compare(records.subarray(other, other + length), records.subarray(start, end)) === 0;
    if (isEqual) end = start;
    else recent[slot] = start + 1;
    return isEqual ? other : start;
  }

  return {
    bytes: (): Uint8Array => records.slice(0, end),
    isInline: (start: number): boolean => records[start] === INLINED,
    /** Adds the record of a reference. @returns Its place */
    add(view: DataView, { at, fields }: RefPlace, key: string): number {
      const start = end;
      const vector = (field: number) => bytesIn(view, vectorAt(view, at + fields[field]!, 1));
      if (fields[CHUNK_ID] !== 0) {
        append(Uint8Array.of(NATIVE));
        append(bytesIn(view, { at: at + fields[CHUNK_ID]!, length: ID_BYTES }));
        return start;
      }
      const isCompressed = fields[COMPRESSED_LOCATION] !== 0;
      if (isCompressed || fields[LOCATION] !== 0) {
        const location = vector(isCompressed ? COMPRESSED_LOCATION : LOCATION);
        const etag = fields[ETAG] === 0 ? new Uint8Array(0) : vector(ETAG);
        if (Math.max(location.length, etag.length) > 0xffff)
          throw damaged(key, "expected a location of at most 65,535 bytes, received a longer one");
        const head = Buffer.alloc(9);
        head[0] = isCompressed ? COMPRESSED : PLAIN;
        head.writeUInt32LE(fields[MODIFIED] === 0 ? 0 : view.getUint32(at + fields[MODIFIED]!, true), 1);
        head.writeUInt16LE(etag.length, 5);
        head.writeUInt16LE(location.length, 7);
        for (const part of [head, etag, location]) append(part);
        return shared(start);
      }
      if (fields[INLINE] === 0) throw damaged(key, "expected the place of a chunk, found none");
      append(Uint8Array.of(INLINED));
      append(vector(INLINE));
      return start;
    },
  };
}

function find({ box, numbers }: ArrayRefs, coords: readonly number[]): number {
  if (coords.length !== box.length) return -1;
  let wanted = 0;
  for (const [axis, index] of coords.entries()) {
    if (index >= box[axis]!) return -1;
    wanted = wanted * box[axis]! + index;
  }
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (numbers[middle]! < wanted) low = middle + 1;
    else high = middle;
  }
  return numbers[low] === wanted ? low : -1;
}

/** Returns a reference; undefined if it has no bytes: sparse TIFF files have such tiles. */
function refOf(
  { records, starts, offsets, lengths }: ArrayRefs,
  index: number,
  dictionary: ZstdDictionary | undefined,
  key: string,
): ChunkRef | undefined {
  const start = starts[index]!;
  const [offset, byteLength] = [offsets[index]!, lengths[index]!];
  if (byteLength === 0) return undefined;
  const kind = records[start];
  const bytes = records.subarray(start + 1, start + 1 + (kind === NATIVE ? ID_BYTES : byteLength));
  if (kind === NATIVE) return { kind: "native", id: encodeId(bytes), offset, byteLength };
  if (kind === INLINED) return { kind: "inline", bytes };
  const head = new DataView(records.buffer, records.byteOffset + start, 9);
  const etagEnd = start + 9 + head.getUint16(5, true);
  const etag = Buffer.from(records.subarray(start + 9, etagEnd)).toString();
  let location = records.subarray(etagEnd, etagEnd + head.getUint16(7, true));
  if (kind === COMPRESSED) {
    if (dictionary === undefined) throw damaged(key, "expected a dictionary for its locations, found none");
    try {
      location = runNow(decodeZstdSteps(location, MAX_LOCATION_BYTES, dictionary));
    } catch (error) {
      throw asDamage(error, key);
    }
  }
  return {
    ...{ kind: "virtual", offset, byteLength, location: Buffer.from(location).toString() },
    ...{ etag: etag === "" ? undefined : etag, modified: head.getUint32(1, true) },
  };
}
