import { crc32, inflateSync } from "node:zlib";

/** A PNG of 8-bit indices, taken apart. */
export interface DecodedPng {
  readonly width: number;
  readonly height: number;
  /** One index per pixel, row by row. */
  readonly indices: Uint8Array;
  /** Red, green, blue and alpha of a colour of the palette. */
  colourOf(index: number): number[];
  /** Types of its chunks, in order. */
  readonly chunks: readonly string[];
}

/** Decodes a PNG with a palette, and checks all of it that the specification asks for. @throws Error naming what is wrong. */
export function decodePng(bytes: Uint8Array): DecodedPng {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const signature = Buffer.from(bytes.subarray(0, 8)).toString("hex");
  if (signature !== "89504e470d0a1a0a") throw new Error(`signature ${signature}`);
  const parts = new Map<string, Uint8Array>();
  for (let at = 8; at < bytes.length; ) {
    const length = view.getUint32(at);
    const type = Buffer.from(bytes.subarray(at + 4, at + 8)).toString("latin1");
    if (parts.has(type)) throw new Error(`${type} is there twice`);
    const data = bytes.subarray(at + 8, at + 8 + length);
    if (crc32(bytes.subarray(at + 4, at + 8 + length)) !== view.getUint32(at + 8 + length))
      throw new Error(`${type} has another checksum`);
    parts.set(type, data);
    at += 12 + length;
  }
  const part = (type: string): Uint8Array => {
    const found = parts.get(type);
    if (found === undefined) throw new Error(`${type} is not there`);
    return found;
  };
  const header = Buffer.from(part("IHDR"));
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  if (header.subarray(8).toString("hex") !== "0803000000")
    throw new Error("expected 8-bit indices, not interlaced");
  const palette = part("PLTE");
  if (palette.length % 3 !== 0 || palette.length > 768) throw new Error(`PLTE of ${palette.length} bytes`);
  const alphas = parts.get("tRNS") ?? new Uint8Array(0);
  const lines = inflateSync(part("IDAT"));
  if (lines.length !== height * (width + 1)) throw new Error(`${lines.length} bytes of scanlines`);
  const indices = new Uint8Array(width * height);
  for (let row = 0; row < height; row++) {
    const line = lines.subarray(row * (width + 1), (row + 1) * (width + 1));
    if (line[0] !== 0) throw new Error(`row ${row} has filter ${line[0]}`);
    indices.set(line.subarray(1), row * width);
  }
  const greatest = indices.reduce((most, index) => Math.max(most, index), 0);
  if (greatest * 3 >= palette.length) throw new Error(`index ${greatest} is not in the palette`);
  return {
    width,
    height,
    indices,
    colourOf: (index) => [...palette.subarray(index * 3, index * 3 + 3), alphas[index] ?? 255],
    chunks: [...parts.keys()],
  };
}

/** Lists the indices of a picture by row. */
export function rowsOf({ width, indices }: DecodedPng): number[][] {
  return Array.from({ length: indices.length / width }, (_, row) => [
    ...indices.subarray(row * width, (row + 1) * width),
  ]);
}
