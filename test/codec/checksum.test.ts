import t from "tap";
import { adler32Of, crc32c } from "../../src/codec/checksums.js";

/** As RFC 1950 has it. */
function plainAdler32(bytes: Uint8Array): number {
  let low = 1;
  let high = 0;
  for (const byte of bytes) {
    low = (low + byte) % 65521;
    high = (high + low) % 65521;
  }
  return ((high << 16) | low) >>> 0;
}

/** Bit by bit. */
function plainCrc32c(bytes: Uint8Array): number {
  let crc = -1;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  }
  return ~crc >>> 0;
}

t.test("checksums are right for every length and address, and where sums are largest", async (t) => {
  const noise = new Uint8Array(1000).map((_, i) => (Math.imul(i + 1, 2654435761) >>> 13) & 0xff);
  const full = new Uint8Array(100_003).fill(255);
  for (let offset = 0; offset < 9; offset++) {
    for (let length = 0; length <= 200; length++) {
      const bytes = noise.subarray(offset, offset + length);
      if (adler32Of(bytes) !== plainAdler32(bytes)) t.fail(`adler32 of ${length} bytes at ${offset}`);
      if (crc32c(bytes) !== plainCrc32c(bytes)) t.fail(`crc32c of ${length} bytes at ${offset}`);
    }
    const bytes = full.subarray(offset);
    t.equal(adler32Of(bytes), plainAdler32(bytes));
    t.equal(crc32c(bytes), plainCrc32c(bytes));
  }
});

t.test("adler32 gives the checksum everybody knows", async (t) => {
  t.equal(adler32Of(Buffer.from("Wikipedia")), 0x11e60398);
  t.equal(adler32Of(new Uint8Array(0)), 1);
});
