import { createHash } from "node:crypto";
import t from "tap";
import { jpeg } from "../../src/codec/jpeg.js";
import { hasJpeg } from "../../src/codec/jpeg-module.js";
import type { ZpublishError } from "../../src/errors.js";
import { effort } from "../effort.js";
import { stepOf } from "./step.js";

const skip = hasJpeg() ? false : "the optional package is not installed";

/** Tiles of 16 × 16 pixels written by GDAL 3.6, their tables, and the SHA-256 of the pixels that rasterio reads. */
const TILES = [
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

type Tile = (typeof TILES)[number];

async function decode(stream: Uint8Array, tile: Tile, width = 16, height = 16): Promise<Uint8Array> {
  const { components, isYcbcr, tables } = tile;
  const codec = { id: "jpeg", width, components, isYcbcr, tables };
  return jpeg.decode(stream, stepOf(codec, width * height * components));
}

function bytesOf({ tile }: Tile): Buffer {
  return Buffer.from(tile, "base64");
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

for (const tile of TILES) {
  t.test(`pixels of ${tile.name} are those of GDAL`, { skip }, async (t) => {
    t.equal(sha256(await decode(bytesOf(tile), tile)), tile.pixels);
  });
}

t.test("TIFF's tag says the colours, not what applications wrote into the stream", { skip }, async (t) => {
  const [, , rgb] = TILES;
  const jfif = Buffer.from("ffe000104a46494600010100000100010000", "hex");
  const stream = bytesOf(rgb);
  const marked = Buffer.concat([stream.subarray(0, 2), jfif, stream.subarray(2)]);
  t.equal(sha256(await decode(marked, rgb)), rgb.pixels);
});

t.test("streams of other dimensions are refused before memory is allocated", { skip }, async (t) => {
  const [grey, colours] = TILES;
  for (const [width, height] of [
    [8, 32],
    [16, 8],
    [16, 32],
    [32, 32],
  ] as const) {
    t.throws(() => decodeNow(grey, width, height), { code: "corrupt-chunk" });
  }
  t.throws(
    () => jpeg.decode(bytesOf(colours), stepOf({ id: "jpeg", width: 16, components: 1, tables: "" }, 256)),
    {
      code: "corrupt-chunk",
    },
  );
  const huge = bytesOf(grey);
  const frame = huge.indexOf(Uint8Array.of(0xff, 0xc0));
  huge.fill(0xff, frame + 5, frame + 9);
  t.throws(() => jpeg.decode(huge, stepOf({ id: "jpeg", width: 16, components: 1, tables: "" }, 256)), {
    code: "corrupt-chunk",
  });
});

function decodeNow({ components, isYcbcr, tables, tile }: Tile, width: number, height: number): unknown {
  const codec = { id: "jpeg", width, components, isYcbcr, tables };
  return jpeg.decode(Buffer.from(tile, "base64"), stepOf(codec, width * height * components));
}

t.test("damaged streams are refused, or have the length of a chunk", { skip }, async (t) => {
  let seed = 3;
  const draw = (below: number) => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return (seed >>> 8) % below;
  };
  const counts = { refused: 0, decoded: 0 };
  for (let round = 0; round < effort(20_000); round++) {
    const tile = TILES[draw(TILES.length)] as Tile;
    const bytes = bytesOf(tile);
    for (let count = draw(4); count > 0; count--) bytes[draw(bytes.length)] = draw(256);
    const stream = draw(3) === 0 ? bytes.subarray(0, draw(bytes.length)) : bytes;
    try {
      const pixels = await decode(stream, tile);
      if (pixels.length !== 256 * tile.components) t.fail(`${pixels.length} bytes`);
      counts.decoded++;
    } catch (error) {
      if ((error as ZpublishError).code !== "corrupt-chunk") throw error;
      counts.refused++;
    }
  }
  t.ok(counts.refused > 0 && counts.decoded > 0, JSON.stringify(counts));
  const [grey] = TILES;
  t.equal(sha256(await decode(bytesOf(grey), grey)), grey.pixels, "and the decoder still works");
});
