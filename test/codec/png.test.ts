import t from "tap";
import { encodePng } from "../../src/codec/compute/picture.js";
import { decodePng, rowsOf } from "../support/codec/decode-png.js";

const PALETTE = Uint8Array.of(200, 200, 200, 255, 0, 0, 0, 128, 255);

t.test("what is encoded decodes to the same pixels and colours", async (t) => {
  const pixels = Uint8Array.of(0, 1, 2, 2, 1, 0);
  const png = decodePng(encodePng({ width: 3, height: 2, pixels, palette: PALETTE }));
  t.strictSame(rowsOf(png), [
    [0, 1, 2],
    [2, 1, 0],
  ]);
  t.strictSame(png.colourOf(0), [200, 200, 200, 0], "colour 0 is transparent");
  t.strictSame(png.colourOf(1), [255, 0, 0, 255]);
  t.strictSame(png.colourOf(2), [0, 128, 255, 255]);
});

t.test("chunks are in the order that the specification asks for", async (t) => {
  const png = decodePng(encodePng({ width: 1, height: 1, pixels: Uint8Array.of(1), palette: PALETTE }));
  t.strictSame(png.chunks, ["IHDR", "PLTE", "tRNS", "IDAT", "IEND"]);
});

t.test("the same pixels give the same bytes, in memory of their own", async (t) => {
  const pixels = Uint8Array.from({ length: 320 * 160 }, (_, index) => (index * 7919) % 3);
  const picture = { width: 320, height: 160, pixels, palette: PALETTE };
  const first = encodePng(picture);
  t.strictSame(encodePng(picture), first);
  t.strictSame(decodePng(first).indices, pixels);
});
