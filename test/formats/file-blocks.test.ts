import fc from "fast-check";
import t from "tap";
import { ZpublishError } from "../../src/errors.js";
import { createFileBlocks } from "../../src/formats/file-blocks.js";
import type { VersionedFile } from "../../src/formats/versioned-file.js";
import { effort } from "../support/effort.js";

const MIB = 2 ** 20;

/** A file whose bytes tell their offset, and the ranges that were read of it. */
function fileOf(byteLength: number, isLocal = false) {
  const reads: [offset: number, byteLength: number][] = [];
  let fault: ZpublishError | undefined;
  const file: VersionedFile = {
    ...{ name: "f", store: "s", byteLength, version: { token: "v" } },
    local: isLocal ? { directory: "/", key: "f" } : undefined,
    check: () => ({ token: "v" }),
    place: () => undefined,
    async read(offset, length) {
      reads.push([offset, length]);
      if (fault !== undefined) throw fault;
      if (offset < 0 || length < 1 || offset + length > byteLength)
        throw new Error("expected bytes of the file");
      return bytesOf(offset, length);
    },
  };
  return {
    file,
    reads,
    takeReads: () => reads.splice(0),
    fail(error: ZpublishError | undefined) {
      fault = error;
    },
  };
}

function bytesOf(offset: number, length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at++) bytes[at] = ((offset + at) * 2_654_435_761) >>> 24;
  return bytes;
}

const isAt = (bytes: Uint8Array | undefined, offset: number, length: number) =>
  bytes !== undefined && Buffer.compare(bytes, bytesOf(offset, length)) === 0;

t.test("bytes of a block are read once, and then are in memory", async (t) => {
  const { file, takeReads } = fileOf(3.5 * MIB);
  const blocks = createFileBlocks(file);
  t.equal(blocks.readNow(10, 20), undefined);
  t.ok(isAt(await blocks.read(10, 20), 10, 20));
  t.same(takeReads(), [[0, MIB]]);
  t.ok(isAt(blocks.readNow(MIB - 5, 5), MIB - 5, 5));
  t.equal(blocks.readNow(MIB - 5, 6), undefined);
  t.ok(isAt(await blocks.read(3.5 * MIB - 1, 1), 3.5 * MIB - 1, 1), "the short last block");
  t.same(takeReads(), [[3 * MIB, MIB / 2]]);
  t.ok(isAt(await blocks.read(MIB - 5, 10), MIB - 5, 10), "of two blocks, one of which is known");
  t.same(takeReads(), [[MIB, MIB]]);
  t.ok(isAt(blocks.readNow(MIB - 5, 10), MIB - 5, 10));
  t.ok(isAt(await blocks.readOnce(5, 3), 5, 3));
  t.same(takeReads(), [[5, 3]], "past the cache");
  t.same(await blocks.read(3.5 * MIB, 0), new Uint8Array(0), "nothing at the end");
  t.same(takeReads(), []);
});

t.test("those who read a block at the same time share one request", async (t) => {
  const { file, takeReads } = fileOf(8 * MIB);
  const blocks = createFileBlocks(file);
  const found = await Promise.all([
    blocks.read(1, 5),
    blocks.read(MIB - 1, 2),
    blocks.read(2, MIB),
    blocks.read(0, 9),
  ]);
  t.same(
    found.map(({ length }) => length),
    [5, 2, MIB, 9],
  );
  t.same(takeReads(), [
    [0, MIB],
    [MIB, 2 * MIB],
  ]);
});

t.test("blocks that are read in order are read ahead, and neighbours with one request", async (t) => {
  const { file, takeReads } = fileOf(20 * MIB);
  const blocks = createFileBlocks(file);
  for (let at = 0; at < 12 * MIB; at += MIB / 4) t.ok(isAt(await blocks.read(at, 8), at, 8));
  t.same(takeReads(), [
    [0, MIB],
    [MIB, 2 * MIB],
    [3 * MIB, 4 * MIB],
    [7 * MIB, 4 * MIB],
    [11 * MIB, 4 * MIB],
  ]);
  await blocks.read(17 * MIB, 3 * MIB);
  t.same(takeReads(), [[17 * MIB, 3 * MIB]]);
});

t.test("blocks of local files are small", async (t) => {
  const { file, takeReads } = fileOf(MIB, true);
  await createFileBlocks(file).read(5, 5);
  t.same(takeReads(), [[0, MIB / 8]]);
});

t.test("the first bytes that were read already are not read again", async (t) => {
  const { file, takeReads } = fileOf(1.5 * MIB);
  const blocks = createFileBlocks(file, bytesOf(0, 1.25 * MIB));
  t.ok(isAt(blocks.readNow(0, MIB), 0, MIB));
  t.equal(blocks.readNow(MIB, 1), undefined, "a block that is not whole");
  const short = fileOf(1_000);
  t.ok(isAt(createFileBlocks(short.file, bytesOf(0, 1_000)).readNow(900, 100), 900, 100));
  t.equal(createFileBlocks(short.file, bytesOf(0, 500)).readNow(0, 1), undefined);
  t.same(takeReads(), []);
});

t.test("bytes outside of the file are refused before they are read", async (t) => {
  const { file, takeReads } = fileOf(1_000);
  const blocks = createFileBlocks(file);
  await blocks.read(0, 10);
  takeReads();
  for (const [offset, length] of [
    [1_000, 1],
    [0, 1_001],
    [-1, 2],
    [5, -1],
    [2 ** 60, 2 ** 60],
    [Number.NaN, 1],
    [0, Number.POSITIVE_INFINITY],
    [0.5, 1],
  ] as const) {
    const error = { code: "invalid-metadata", message: /'f': expected bytes within the 1000 of the file/ };
    t.equal(blocks.readNow(offset, length), undefined, `${offset} ${length}`);
    await t.rejects(blocks.read(offset, length), error);
    await t.rejects(blocks.readOnce(offset, length), error);
  }
  t.same(takeReads(), []);
});

t.test("a read that fails fails for all who wait for it, and is made again for others", async (t) => {
  const { file, fail, takeReads } = fileOf(4 * MIB);
  const blocks = createFileBlocks(file);
  fail(new ZpublishError("source-changed", "replaced"));
  const [one, other] = await Promise.allSettled([blocks.read(1, 1), blocks.read(2, 1)]);
  t.match(one, { status: "rejected", reason: { code: "source-changed" } });
  t.match(other, { status: "rejected", reason: { code: "source-changed" } });
  t.equal(takeReads().length, 1);
  fail(undefined);
  t.ok(isAt(await blocks.read(1, 1), 1, 1));
});

t.test("long reads go past the cache, which is bounded", async (t) => {
  const { file, takeReads } = fileOf(200 * MIB);
  const blocks = createFileBlocks(file);
  t.equal((await blocks.read(0, 9 * MIB)).length, 9 * MIB);
  t.same(takeReads(), [[0, 9 * MIB]]);
  for (let at = 0; at < 200 * MIB; at += 8 * MIB) await blocks.read(at, 8 * MIB);
  takeReads();
  await blocks.read(0, 1);
  t.equal(takeReads().length, 1, "the oldest blocks are gone");
  t.ok(blocks.readNow(199 * MIB, 1));
});

t.test("whatever is read in whatever order, bytes are those of the file", async (t) => {
  const read = fc.record({ offset: fc.nat(6 * MIB), length: fc.nat(2 * MIB), wait: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 5 * MIB }),
      fc.boolean(),
      fc.array(read, { maxLength: 12 }),
      async (byteLength, isLocal, reads) => {
        const blocks = createFileBlocks(fileOf(byteLength, isLocal).file);
        const waiting: Promise<boolean>[] = [];
        for (const { offset, length, wait } of reads) {
          const isInside = offset + length <= byteLength;
          const now = blocks.readNow(offset, length);
          if (now !== undefined && !(isInside && isAt(now, offset, length))) return false;
          const reading = blocks.read(offset, length).then(
            (bytes) => isInside && isAt(bytes, offset, length),
            (error) => !isInside && error.code === "invalid-metadata",
          );
          waiting.push(reading);
          if (wait) await reading;
        }
        return !(await Promise.all(waiting)).includes(false);
      },
    ),
    { numRuns: effort(60) },
  );
  t.pass();
});
