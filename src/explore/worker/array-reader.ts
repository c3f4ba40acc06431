import * as zarr from "zarrita";
import { messageOf } from "../../errors.js";
import type { DataType } from "../../model/data-type.js";
import { readHalf } from "../../model/fill-value.js";
import { registerCodecs } from "./codecs/codec-registry.js";
import { fetchBytes, ReadFailure } from "./fetch-bytes.js";
import type { ReadableDocument } from "./readable-document.js";

/** Stored numbers of a chunk. */
export type Numbers =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array;

/** A decoded chunk, laid out by the array's strides. */
export interface DecodedChunk {
  /** Stored numbers: 64-bit integers rounded, complex numbers as their absolute values; undefined if it holds texts. */
  readonly numbers: Numbers | undefined;
  readonly texts: readonly string[] | undefined;
  /** 64-bit integers and complex numbers (two each) as they are, for texts. */
  readonly exact: BigInt64Array | BigUint64Array | Float32Array | Float64Array | undefined;
  readonly byteLength: number;
}

/** Reads the chunks of one array. */
export interface ArrayReader {
  readonly document: ReadableDocument;
  /** Reads a chunk; undefined if it is absent, so that all its values are missing. @throws ReadFailure, or the signal's reason */
  readChunk(coords: readonly number[], signal?: AbortSignal): Promise<DecodedChunk | undefined>;
}

/** Where an array is. */
export interface ArrayLocation {
  /** Absolute URL, with a slash at its end. */
  readonly url: string;
  /** Path of the array, for sentences. */
  readonly name: string;
  readonly token: string | undefined;
}

/** Options of zarrita's reading of one chunk, which it passes on to the store as they are. */
interface Reading {
  readonly coords?: readonly number[];
  readonly signal?: AbortSignal | undefined;
}

/** Thrown to zarrita for absent chunks, which it would make of fill values that it cannot always convert. */
const ABSENT = new Error("the chunk is absent");

registerCodecs();

/** Opens an array for reading. */
export async function openArray(location: ArrayLocation, document: ReadableDocument): Promise<ArrayReader> {
  const { url, name, token } = location;
  const store: zarr.AsyncReadable = {
    async get(key, reading: Reading = {}) {
      if (key === "/.zarray") return new TextEncoder().encode(document.zarray);
      const { coords = [], signal } = reading;
      const chunkKey = coords.join(document.separator) || "0";
      const bytes = await fetchBytes(url + chunkKey, { token, what: `chunk ${chunkKey} of ${name}`, signal });
      if (bytes === undefined) throw ABSENT;
      return bytes;
    },
  };
  const array = await zarr.open.v2(zarr.root(store), { kind: "array", attrs: false });
  const rank = document.shape.length + (document.numbersPerValue > 1 ? 1 : 0);
  const count = document.chunkShape.reduce((product, length) => product * length, 1);
  return {
    document,
    async readChunk(coords, signal) {
      const reading: Reading = { coords, signal };
      const indices = rank > coords.length ? [...coords, 0] : [...coords];
      try {
        const { data } = await array.getChunk(indices, reading as zarr.GetOptions);
        signal?.throwIfAborted();
        return decodedChunk(data, document, count);
      } catch (error) {
        signal?.throwIfAborted();
        if (error === ABSENT) return undefined;
        if (error instanceof ReadFailure) throw error;
        const chunkKey = coords.join(document.separator) || "0";
        const reason = messageOf(error instanceof Error && error.cause !== undefined ? error.cause : error);
        throw new ReadFailure(`Chunk ${chunkKey} of ${name} could not be decoded: ${reason}.`, {
          cause: error,
        });
      }
    },
  };
}

function decodedChunk(data: unknown, document: ReadableDocument, count: number): DecodedChunk {
  const { dataType, numbersPerValue } = document;
  const received = (data as ArrayLike<unknown>).length;
  if (received !== count * numbersPerValue)
    throw new Error(`expected ${count} values, received ${received / numbersPerValue}`);
  if (document.isText) return textChunk(Array.from(data as ArrayLike<unknown>, textOf));
  if (dataType.kind === "S" || dataType.kind === "U")
    return textChunk(fixedTexts(data as Uint8Array | Uint32Array, numbersPerValue, count));
  const { numbers, exact } = numbersOf(data, dataType);
  return {
    numbers,
    texts: undefined,
    exact,
    byteLength: numbers.byteLength + (exact?.byteLength ?? 0),
  };
}

function numbersOf(
  data: unknown,
  { kind, itemSize }: DataType,
): Pick<DecodedChunk, "exact"> & { numbers: Numbers } {
  if (data instanceof BigInt64Array || data instanceof BigUint64Array) {
    const numbers = new Float64Array(data.length);
    for (let index = 0; index < data.length; index++) numbers[index] = Number(data[index]);
    return { numbers, exact: data };
  }
  if (kind === "c") {
    const parts = data as Float32Array | Float64Array;
    const numbers = new (itemSize === 8 ? Float32Array : Float64Array)(parts.length / 2);
    for (let index = 0; index < numbers.length; index++)
      numbers[index] = Math.hypot(parts[2 * index]!, parts[2 * index + 1]!);
    return { numbers, exact: parts };
  }
  if (kind === "f" && itemSize === 2) {
    halves ??= allHalves();
    const numbers = new Float32Array((data as Uint16Array).length);
    for (let index = 0; index < numbers.length; index++)
      numbers[index] = halves[(data as Uint16Array)[index]!]!;
    return { numbers, exact: undefined };
  }
  return { numbers: data as Numbers, exact: undefined };
}

/** Numbers of all half-precision bit patterns: `Float16Array` is younger than many browsers. */
let halves: Float32Array | undefined;

function allHalves(): Float32Array {
  const view = new DataView(new ArrayBuffer(2));
  return Float32Array.from({ length: 65_536 }, (_, bits) => {
    view.setUint16(0, bits);
    return readHalf(view, false);
  });
}

function textChunk(texts: readonly string[]): DecodedChunk {
  const byteLength = texts.reduce((sum, text) => sum + 2 * text.length + 16, 0);
  return { numbers: undefined, texts, exact: undefined, byteLength };
}

function textOf(item: unknown): string {
  if (typeof item === "string") return item;
  return item === null || item === undefined ? "" : JSON.stringify(item);
}

/** Texts of fixed length: bytes as UTF-8, or code points, without the zeros behind. */
function fixedTexts(data: Uint8Array | Uint32Array, length: number, count: number): string[] {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  return Array.from({ length: count }, (_, index) => {
    let end = (index + 1) * length;
    while (end > index * length && data[end - 1] === 0) end--;
    const part = data.subarray(index * length, end);
    if (part instanceof Uint8Array) {
      try {
        return decoder.decode(part);
      } catch {
        // Bytes that are no UTF-8 are shown as Latin-1, each as one character.
        return String.fromCharCode(...part);
      }
    }
    return Array.from(part, (point) => (point <= 0x10ffff ? String.fromCodePoint(point) : "\ufffd")).join("");
  });
}
