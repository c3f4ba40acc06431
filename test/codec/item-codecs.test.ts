import t from "tap";
import { CODECS } from "../../src/codec/codecs.js";
import type { CodecSpec } from "../../src/zarr/codec-spec.js";
import { encodedByteLength } from "../../src/zarr/plan/codec-rules.js";
import { stepOf } from "./step.js";

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
