import type { CodecStep } from "../../../src/zarr/codec-step.js";
import { stepOf } from "./steps.js";

/** Tiles of 16 × 16 pixels written by GDAL 3.6, their tables, and the SHA-256 of the pixels that rasterio reads. */
export const JPEG_TILES = [
  {
    name: "grey",
    components: 1,
    isYcbcr: false,
    tables:
      "/9j/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpRUk//2Q==",
    tile: "/9j/wAALCAAQABABAREA/8QAFQABAQAAAAAAAAAAAAAAAAAABwb/xAAWEAADAAAAAAAAAAAAAAAAAAAABkL/2gAIAQEAAD8Ak1+ROX5DFfkTl+T/2Q==",
    pixels: "a1f7a55282cf9e7f1924adaeebb888b099d2707912b9aaf51db8a276968a0616",
  },
  {
    name: "YCbCr with colours of half the resolution",
    components: 3,
    isYcbcr: true,
    tables:
      "/9j/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT0//2Q==",
    tile: "/9j/wAARCAAQABADASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAABQb/xAAYEAACAwAAAAAAAAAAAAAAAAAABAUiMf/EABUBAQEAAAAAAAAAAAAAAAAAAAIF/8QAGhEAAgIDAAAAAAAAAAAAAAAAAAUCEQMTIf/aAAwDAQACEQMRAD8AkFI3KjKkZlRdONyo8nGZUmwybRrGdV0//9k=",
    pixels: "9173d8bb68e24b8a0b79b6c843dbbda92b914ffaa810c7c7702aba58abc15a37",
  },
  {
    name: "RGB",
    components: 3,
    isYcbcr: false,
    tables:
      "/9j/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpRUk//2Q==",
    tile: "/9j/wAARCAAQABADUhEARxEAQhEA/8QAFwABAQEBAAAAAAAAAAAAAAAABwAGBf/EAB8QAAECBgMAAAAAAAAAAAAAAAADBQYRExVCYhIhIv/aAAwDUgBHAEIAAD8AycP4mTsWgcII1JdCdD+JWLQ6KDVUl5DGH8ROsWhNCNTj0J0P4lYtDctDVU4+T//Z",
    pixels: "32cf94408d5b304ef5245b266dafabed2ce160e275b91644e29594145d8d1283",
  },
] as const;

/** One of the tiles. */
export type JpegTile = (typeof JPEG_TILES)[number];

/** A tile's stream as a chunk, and the step that decodes it. */
export function chunkOfTile({ tile, tables, components, isYcbcr }: JpegTile): {
  readonly encoded: Uint8Array;
  readonly step: CodecStep;
} {
  const codec = { id: "jpeg", width: 16, components, isYcbcr, tables };
  return { encoded: new Uint8Array(Buffer.from(tile, "base64")), step: stepOf(codec, 256 * components) };
}
