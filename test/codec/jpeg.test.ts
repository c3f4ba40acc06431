import { createHash } from "node:crypto";
import t from "tap";
import { hasJpeg, jpeg } from "../../src/codec/file-formats/jpeg.js";
import type { ZpublishError } from "../../src/errors.js";
import { JPEG_TILES, type JpegTile } from "../support/codec/jpeg-tiles.js";
import { stepOf } from "../support/codec/step.js";
import { effort } from "../support/effort.js";

const skip = hasJpeg() ? false : "the optional package is not installed";

async function decode(stream: Uint8Array, tile: JpegTile, width = 16, height = 16): Promise<Uint8Array> {
  const { components, isYcbcr, tables } = tile;
  const codec = { id: "jpeg", width, components, isYcbcr, tables };
  return jpeg.decode(stream, stepOf(codec, width * height * components));
}

function bytesOf({ tile }: JpegTile): Buffer {
  return Buffer.from(tile, "base64");
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

for (const tile of JPEG_TILES) {
  t.test(`pixels of ${tile.name} are those of GDAL`, { skip }, async (t) => {
    t.equal(sha256(await decode(bytesOf(tile), tile)), tile.pixels);
  });
}

t.test("TIFF's tag says the colours, not what applications wrote into the stream", { skip }, async (t) => {
  const [, , rgb] = JPEG_TILES;
  const jfif = Buffer.from("ffe000104a46494600010100000100010000", "hex");
  const stream = bytesOf(rgb);
  const marked = Buffer.concat([stream.subarray(0, 2), jfif, stream.subarray(2)]);
  t.equal(sha256(await decode(marked, rgb)), rgb.pixels);
});

t.test("streams of other dimensions are refused before memory is allocated", { skip }, async (t) => {
  const [grey, colours] = JPEG_TILES;
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

function decodeNow({ components, isYcbcr, tables, tile }: JpegTile, width: number, height: number): unknown {
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
    const tile = JPEG_TILES[draw(JPEG_TILES.length)] as JpegTile;
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
  const [grey] = JPEG_TILES;
  t.equal(sha256(await decode(bytesOf(grey), grey)), grey.pixels, "and the decoder still works");
});
