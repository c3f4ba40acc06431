import { inflateSync } from "node:zlib";

/** A picture with a palette, as `/thumbnail/` answers it. */
export interface IndexedPicture {
  readonly width: number;
  readonly height: number;
  /** Index in the palette of each pixel, row after row from the top. */
  readonly pixels: Uint8Array;
}

const SIGNATURE = "89504e470d0a1a0a";

/** Reads a PNG of eight bits per pixel with a palette, whose rows are not filtered. @throws Error if it is another. */
export function readIndexedPng(bytes: Buffer): IndexedPicture {
  if (bytes.toString("hex", 0, 8) !== SIGNATURE)
    throw new Error(`expected a PNG, received ${bytes.subarray(0, 100)}`);
  const chunks = new Map<string, Buffer[]>();
  for (let at = 8; at < bytes.length; at += 12 + bytes.readUInt32BE(at)) {
    const type = bytes.toString("latin1", at + 4, at + 8);
    const content = bytes.subarray(at + 8, at + 8 + bytes.readUInt32BE(at));
    chunks.set(type, [...(chunks.get(type) ?? []), content]);
  }
  const head = chunks.get("IHDR")?.[0];
  if (head?.[8] !== 8 || head[9] !== 3 || !chunks.has("PLTE") || !chunks.has("IEND"))
    throw new Error("expected a PNG of eight bits with a palette");
  const [width, height] = [head.readUInt32BE(0), head.readUInt32BE(4)];
  const rows = inflateSync(Buffer.concat(chunks.get("IDAT") ?? []));
  if (rows.length !== height * (width + 1)) throw new Error(`expected ${height} rows of ${width} pixels`);
  const pixels = new Uint8Array(width * height);
  for (let y = 0; y < height; y++) {
    const begin = y * (width + 1);
    if (rows[begin] !== 0) throw new Error(`expected rows without a filter, received filter ${rows[begin]}`);
    pixels.set(rows.subarray(begin + 1, begin + 1 + width), y * width);
  }
  return { width, height, pixels };
}
