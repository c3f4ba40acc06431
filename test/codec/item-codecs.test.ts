import t from "tap";
import { CODECS } from "../../src/codec/codecs.js";
import type { CodecSpec } from "../../src/zarr/codec-step.js";
import { encodedByteLength } from "../../src/zarr/plan/codec-rules.js";
import { stepOf } from "../support/codec/step.js";

async function decode(codec: CodecSpec, bytes: Uint8Array): Promise<Uint8Array> {
  return await (CODECS[codec.id] as (typeof CODECS)[string]).decode(bytes, stepOf(codec, null));
}

t.test("repack takes padding out of items, and reverses numbers", async (t) => {
  const codec: CodecSpec = {
    id: "repack",
    itemSize: 6,
    pieces: [
      [0, 1, 1],
      [3, 2, 1],
    ],
  };
  t.same(
    await decode(codec, new Uint8Array([1, 99, 99, 2, 3, 99, 4, 99, 99, 5, 6, 99])),
    new Uint8Array([1, 2, 3, 4, 5, 6]),
  );
  t.equal(encodedByteLength(codec, 6), 12);
  t.same(
    await decode(
      {
        id: "repack",
        itemSize: 5,
        pieces: [
          [0, 4, 2],
          [4, 1, 1],
        ],
      },
      new Uint8Array([1, 2, 3, 4, 5]),
    ),
    new Uint8Array([2, 1, 4, 3, 5]),
  );
  await t.rejects(decode(codec, new Uint8Array(7)), { code: "corrupt-chunk" });
});

t.test("hdf5-text clears what is behind the end of strings", async (t) => {
  const bytes = Buffer.from("ab\0ca   full b b");
  const terminated = await decode({ id: "hdf5-text", itemSize: 4, padding: "null-terminated" }, bytes);
  t.equal(Buffer.from(terminated).toString("latin1"), "ab\0\0a   full b b");
  const spaced = await decode({ id: "hdf5-text", itemSize: 4, padding: "space-padded" }, bytes);
  t.equal(Buffer.from(spaced).toString("latin1"), "ab\0ca\0\0\0full b b");
  t.equal(bytes.toString("latin1"), "ab\0ca   full b b", "the input stays as it is");
});

t.test("hdf5-text decodes UTF-8 to four bytes per character", async (t) => {
  const decodeTexts = async (padding: string, bytes: Uint8Array) => {
    const codec = { id: "hdf5-text", itemSize: 4, padding, charset: "utf-8" };
    t.equal(encodedByteLength(codec, 16), 4);
    const decoded = await decode(codec, bytes);
    const view = new DataView(decoded.buffer, decoded.byteOffset, decoded.byteLength);
    return Array.from({ length: decoded.length / 4 }, (_, i) => view.getUint32(i * 4, true));
  };
  const codes = (text: string) => Array.from(text, (character) => character.codePointAt(0));
  const bytes = Buffer.from("\u00e9\0c\u{1d11e}a   ");
  t.same(await decodeTexts("null-terminated", bytes), codes("\u00e9\0\0\0\u{1d11e}\0\0\0a   "));
  t.same(await decodeTexts("null-padded", bytes), codes("\u00e9\0c\0\u{1d11e}\0\0\0a   "));
  t.same(await decodeTexts("space-padded", bytes), codes("\u00e9\0c\0\u{1d11e}\0\0\0a\0\0\0"));
  const broken = new Uint8Array([0xff, 0xfe, 0x61, 0xc3]);
  t.same(await decodeTexts("null-padded", broken), codes("\ufffd\ufffda\ufffd"), "bytes that are no UTF-8");
  t.same(await decodeTexts("null-padded", Buffer.from("\ufeffa")), codes("\ufeffa\0\0"), "a byte order mark");
});
