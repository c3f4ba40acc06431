import t from "tap";
import { checkChecksum, lookup3 } from "../../../src/formats/hdf5/bytes.js";

t.test("lookup3 is that of its author", async (t) => {
  const text = Buffer.from("Four score and seven years ago");
  t.equal(lookup3(new Uint8Array(), 0), 0xdeadbeef);
  t.equal(lookup3(text, text.length), 0x17770551);
});

t.test("a checksum that differs names the structure and both sums", async (t) => {
  const bytes = Buffer.from("Four score and seven years ago\x51\x05\x77\x17", "latin1");
  checkChecksum(bytes, "superblock");
  bytes[3] = 0;
  t.throws(() => checkChecksum(bytes, "superblock"), {
    code: "invalid-metadata",
    message: /superblock: expected the checksum 0x17770551, received 0x/,
  });
  t.throws(() => checkChecksum(bytes.subarray(0, 3), "superblock"), { code: "invalid-metadata" });
});
