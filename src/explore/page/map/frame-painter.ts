import { FIRST, LAST, MISSING, UNREAD } from "../../protocol.js";

/** A colour: red, green, blue, and opacity, each 0 to 255. */
type Rgba = readonly [number, number, number, number];

/** Returns a colour of a style sheet: `#rrggbb` or `#rgb`. */
export function parseColour(text: string): Rgba {
  const digits = text.trim().replace("#", "");
  const long = digits.length === 3 ? digits.replace(/./g, "$&$&") : digits;
  const [red = 0, green = 0, blue = 0] = [0, 2, 4].map((at) => Number.parseInt(long.slice(at, at + 2), 16));
  return [red, green, blue, 255];
}

/** Returns the CSS colour at an index of a colour table. */
export function cssColour(table: Uint8Array, index: number): string {
  return `rgb(${table.subarray(3 * index, 3 * index + 3).join(",")})`;
}

/** Colours of what has no value. */
export type GroundColours = Readonly<Record<"missing" | "missingStripe" | "unread" | "unreadCheck", Rgba>>;

/** Draws a thin line round dots, and leaves missing ones hollow. `line` is its colour, half transparent. */
export function outlineDots(pixels: Uint8Array, width: number, line: Rgba, target: Uint32Array): void {
  const [red, green, blue] = line;
  const colour = new Uint32Array(Uint8Array.of(red, green, blue, 160).buffer)[0]!;
  for (let index = 0; index < pixels.length; index++) {
    const byte = pixels[index]!;
    if (byte === MISSING) target[index] = 0;
    if (byte !== UNREAD) continue;
    const column = index % width;
    const isBeside =
      (column > 0 && pixels[index - 1] !== UNREAD) ||
      (column < width - 1 && pixels[index + 1] !== UNREAD) ||
      (index >= width && pixels[index - width] !== UNREAD) ||
      (index + width < pixels.length && pixels[index + width] !== UNREAD);
    if (isBeside) target[index] = colour;
  }
}

/** Part of a picture that the grid covers, in pixels: from `left` and `top` to before `right` and `bottom`. */
export type Inside = Readonly<Record<"left" | "right" | "top" | "bottom", number>>;

/** Returns the index in a colour table of 256 for a byte of a picture. Values beyond the range have the colours of its ends. */
export function tableIndexOf(byte: number): number {
  const clamped = Math.max(FIRST, Math.min(LAST, byte));
  return Math.round(((clamped - FIRST) * 255) / (LAST - FIRST));
}

/**
 * Colours the bytes of a picture. Missing cells are hatched, so that no colour of a scale looks like them; what waits for data is
 * checked; what lies outside of the grid is clear. `period` is the distance of stripes. Returns the bytes of cells that occur.
 */
export function paintFrame(
  pixels: Uint8Array,
  width: number,
  table: Uint8Array,
  ground: GroundColours,
  inside: Inside,
  target: Uint32Array,
  period: number,
): ReadonlySet<number> {
  const colours = new Uint32Array(256);
  const channels = new Uint8Array(colours.buffer);
  for (let byte = 0; byte < 256; byte++) {
    const at = tableIndexOf(byte) * 3;
    channels.set([...table.subarray(at, at + 3), 255], byte * 4);
  }
  const pixelOf = (colour: Rgba): number => new Uint32Array(Uint8Array.from(colour).buffer)[0]!;
  const [missing, missingStripe] = [pixelOf(ground.missing), pixelOf(ground.missingStripe)];
  const [unread, unreadCheck] = [pixelOf(ground.unread), pixelOf(ground.unreadCheck)];
  const stripe = Math.max(1, Math.round(period / 4));
  const seen = new Uint8Array(256);
  for (let index = 0, x = 0, y = 0; index < pixels.length; index++) {
    const byte = pixels[index]!;
    if (byte === MISSING) {
      if (x < inside.left || x >= inside.right || y < inside.top || y >= inside.bottom) target[index] = 0;
      else {
        target[index] = (x + y) % period < stripe ? missingStripe : missing;
        seen[MISSING] = 1;
      }
    } else if (byte === UNREAD) {
      target[index] = (Math.floor(x / period) + Math.floor(y / period)) % 2 === 0 ? unreadCheck : unread;
    } else {
      target[index] = colours[byte]!;
      seen[byte] = 1;
    }
    if (++x === width) [x, y] = [0, y + 1];
  }
  return new Set([...seen.keys()].filter((byte) => seen[byte] === 1));
}
