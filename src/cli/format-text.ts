import type { CodecSpec } from "../zarr/codec-spec.js";

/** Writes a shape: `(1464, 25, 53)`, or `()` for a scalar. */
export function formatShape(shape: readonly number[]): string {
  return `(${shape.join(", ")})`;
}

/** Writes a codec with its inner codec: `blosc(lz4)`, `zstd`. */
export function formatCodec({ id, cname }: CodecSpec): string {
  return typeof cname === "string" ? `${id}(${cname})` : id;
}

/** Writes a number and its noun: `1 file`, `2 files`. */
export function countOf(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** Escapes characters in a name from a store that could move a terminal's cursor. */
export function printable(text: string): string {
  return text.replace(
    /\p{Cc}/gu,
    (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
}
