import fc from "fast-check";
import t from "tap";
import { decodeZstdSteps, parseZstdDictionary } from "../../src/codec/plain/zstd-decoder.js";
import { zstd } from "../../src/codec/zstd.js";
import { ZpublishError } from "../../src/errors.js";
import { runNow } from "../../src/event-loop/cooperative-task.js";
import { effort } from "../support/effort.js";
import { LOCATION_DICTIONARY, LOCATIONS } from "../support/locations-dictionary.js";

const step = (level: number) =>
  ({ codec: { id: "zstd", level } }) as unknown as Parameters<typeof zstd.decode>[1];
const MAX_BYTES = 2 ** 24;
const decode = (bytes: Uint8Array) => runNow(decodeZstdSteps(bytes, MAX_BYTES));

/** Bytes of many kinds: runs, texts with repetitions, and random ones. */
const contents = fc.array(
  fc.oneof(
    fc
      .tuple(fc.nat(255), fc.integer({ min: 1, max: 70_000 }))
      .map(([byte, length]) => Buffer.alloc(length, byte)),
    fc
      .integer({ min: 1, max: 3_000 })
      .map((count) => Buffer.from(Array.from({ length: count }, (_, i) => `${i * 7},`).join(""))),
    fc.uint8Array({ maxLength: 2_000 }).map((bytes) => Buffer.from(bytes)),
  ),
  { maxLength: 6 },
);

t.test("decodes what zstd encodes, of every kind and level", async (t) => {
  await fc.assert(
    fc.asyncProperty(contents, fc.constantFrom(-3, 1, 3, 9, 19), async (parts, level) => {
      const bytes = new Uint8Array(Buffer.concat(parts));
      const encoded = await zstd.encode?.(bytes, step(level));
      return Buffer.compare(decode(encoded as Uint8Array), bytes) === 0;
    }),
    { numRuns: effort(300) },
  );
  t.pass();
});

t.test("decodes with a dictionary", (t) => {
  const dictionary = parseZstdDictionary(LOCATION_DICTIONARY);
  for (const { url, encoded } of LOCATIONS)
    t.equal(Buffer.from(runNow(decodeZstdSteps(encoded, 1_024, dictionary))).toString(), url);
  const [first] = LOCATIONS;
  t.throws(() => decode(first!.encoded), { code: "corrupt-chunk" });
  t.throws(() => runNow(decodeZstdSteps(first!.encoded, 10, dictionary)), { code: "corrupt-chunk" });
  t.throws(() => parseZstdDictionary(LOCATION_DICTIONARY.subarray(0, 30)), { code: "corrupt-chunk" });
  t.end();
});

t.test("refuses an offset that no file has", (t) => {
  // One literal, and a match whose offset has the code 31: all codes are of one symbol each.
  const block = [0x08, 0x41, 1, 0x54, 1, 31, 0, 0, 0, 0, 0x80];
  const frame = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 4, (block.length << 3) | 5, 0, 0, ...block];
  t.throws(() => decode(Uint8Array.from(frame)), { code: "corrupt-chunk", message: /sequences/ });
  const near = Uint8Array.from([...frame.slice(0, -6), 2, 0, 1 << 2]);
  near[6] = ((block.length - 3) << 3) | 5;
  t.same([...decode(near)], [0x41, 0x41, 0x41, 0x41], "the same with an offset of 1");
  t.end();
});

t.test("refuses damaged frames, or decodes them to other bytes; nothing else happens", async (t) => {
  const text = new Uint8Array(
    Buffer.from(Array.from({ length: 900 }, (_, i) => `line ${i % 17} of ${i}\n`).join("")),
  );
  const encoded = (await zstd.encode?.(text, step(9))) as Uint8Array;
  for (let bit = 0; bit < encoded.length * 8; bit++) {
    const damaged = encoded.slice();
    damaged[bit >> 3]! ^= 1 << (bit & 7);
    try {
      decode(damaged);
    } catch (error) {
      if (!(error instanceof ZpublishError)) t.fail(`bit ${bit}: ${error}`);
    }
  }
  for (let length = 0; length < encoded.length; length++)
    t.throws(() => decode(encoded.subarray(0, length)), { name: "ZpublishError" }, `${length} bytes`);
});
