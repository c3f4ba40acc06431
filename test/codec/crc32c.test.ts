import t from "tap";
import { crc32c } from "../../src/codec/checksums.js";

t.test("gives the checksums of RFC 3720", async (t) => {
  const ascending = Uint8Array.from({ length: 32 }, (_, i) => i);
  t.equal(crc32c(new Uint8Array(0)), 0);
  t.equal(crc32c(Buffer.from("123456789")), 0xe3069283);
  t.equal(crc32c(new Uint8Array(32)), 0x8a9136aa);
  t.equal(crc32c(new Uint8Array(32).fill(0xff)), 0x62a8ab43);
  t.equal(crc32c(ascending), 0x46dd794e);
  t.equal(crc32c(ascending.slice().reverse()), 0x113fdb5c);
});

t.test("does not depend on where eight bytes begin", async (t) => {
  const bytes = Uint8Array.from({ length: 100 }, (_, i) => (i * 37 + 11) & 0xff);
  for (let offset = 0; offset < 9; offset++) {
    const shifted = new Uint8Array(120);
    shifted.set(bytes, offset);
    t.equal(crc32c(shifted.subarray(offset, offset + 100)), crc32c(bytes));
  }
});
