import type { CodecSpec } from "../zarr/codec-spec.js";

/** Writes a shape: `(1464, 25, 53)`, or `()` for a scalar. */
export function formatShape(shape: readonly number[]): string {
  return `(${shape.join(", ")})`;
}

/** Writes a codec with its inner codec: `blosc(lz4)`, `zstd`. */
export function formatCodec({ id, cname }: CodecSpec): string {
  return typeof cname === "string" ? `${id}(${cname})` : id;
}
