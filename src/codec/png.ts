import { crc32 } from "node:zlib";
import { deflate } from "./deflate.js";

/** Level of zlib: higher ones take twice as long for pictures that are hardly smaller. Part of the id of plans for pictures. */
export const PNG_ZLIB_LEVEL = 3;

const SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);
/** Colour type of pixels that are indices of a palette (PNG specification, third edition, table 8). */
const INDEXED_COLOUR = 3;

/** A picture of at most 256 colours. */
export interface IndexedPicture {
  readonly width: number;
  readonly height: number;
  /** One index per pixel, row by row from the top. */
  readonly pixels: Uint8Array;
  /** Three bytes per colour, red first. The first colour is transparent. */
  readonly palette: Uint8Array;
}

/** Encodes a picture as a PNG of 8-bit indices whose colour 0 is transparent. */
export function encodePng({ width, height, pixels, palette }: IndexedPicture): Uint8Array {
  const header = new Uint8Array(13);
  const view = new DataView(header.buffer);
  view.setUint32(0, width);
  view.setUint32(4, height);
  header.set([8, INDEXED_COLOUR, 0, 0, 0], 8);
  return Buffer.concat([
    SIGNATURE,
    chunkOf("IHDR", header),
    chunkOf("PLTE", palette),
    // Colours without an entry are opaque.
    chunkOf("tRNS", Uint8Array.of(0)),
    chunkOf("IDAT", deflate("zlib", scanlines(pixels, width, height), PNG_ZLIB_LEVEL)),
    chunkOf("IEND", new Uint8Array(0)),
  ]);
}

/** Puts the filter type 0, none, before each row: indices have no order that a filter could use. */
function scanlines(pixels: Uint8Array, width: number, height: number): Uint8Array {
  const lines = new Uint8Array((width + 1) * height);
  for (let row = 0; row < height; row++)
    lines.set(pixels.subarray(row * width, (row + 1) * width), row * (width + 1) + 1);
  return lines;
}

/** Returns a chunk: length, type, data, and the CRC-32 of type and data. */
function chunkOf(type: string, data: Uint8Array): Uint8Array {
  const chunk = new Uint8Array(12 + data.length);
  const view = new DataView(chunk.buffer);
  view.setUint32(0, data.length);
  for (let index = 0; index < 4; index++) chunk[4 + index] = type.charCodeAt(index);
  chunk.set(data, 8);
  view.setUint32(8 + data.length, crc32(chunk.subarray(4, 8 + data.length)));
  return chunk;
}
