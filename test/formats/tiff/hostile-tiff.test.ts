import t from "tap";
import { ZpublishError } from "../../../src/errors.js";
import type { FileArray, FileIndex } from "../../../src/formats/file-index.js";
import { tiffFormat } from "../../../src/formats/tiff/tiff-format.js";
import { effort } from "../../effort.js";
import { memoryFile } from "./memory-file.js";
import { imageTags, type Tag, type WrittenImage, writeTiff } from "./tiff-writer.js";

/** Longest time for any file here, in milliseconds. */
const MAX_MS = 2000;

const TAGS = imageTags(
  40,
  30,
  16,
  ...([
    [258, "short", [16, 16]],
    [277, "short", [2]],
    [284, "short", [2]],
    [322, "short", [16]],
    [323, "short", [16]],
    [339, "short", [1, 1]],
    [33550, "double", [10, 20, 0]],
    [33922, "double", [0, 0, 0, 1000, 2000, 0]],
    [34735, "short", [1, 1, 0, 4, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32633, 1026, 34737, 5, 0]],
    [34737, "ascii", "name|"],
    [42112, "ascii", '<GDALMetadata><Item name="SCALE" sample="0" role="scale">2</Item></GDALMetadata>'],
    [42113, "ascii", "7"],
  ] satisfies Tag[]),
);
const TILE = new Uint8Array(16 * 16 * 2);
const IMAGE: WrittenImage = { tags: TAGS, chunks: Array(12).fill(TILE), isTiled: true };
const OVERVIEW: WrittenImage = {
  tags: imageTags(20, 15, 16, [254, "long", [1]], [278, "short", [4]], [259, "short", [5]]),
  chunks: Array(4).fill(new Uint8Array(50)),
};

/** Reads the index of a file, or the error, which has to be one of ours. */
async function indexOf(bytes: Uint8Array): Promise<FileIndex | ZpublishError> {
  try {
    return await tiffFormat.readIndex(memoryFile(bytes));
  } catch (error) {
    if (error instanceof ZpublishError) return error;
    throw error;
  }
}

/** Says what an index promises that its file does not have; undefined if nothing. */
function problemOf(array: FileArray, byteLength: number): string | undefined {
  const { chunks } = array;
  if (chunks.kind === "listed") {
    if (chunks.offsets.length * 4 > byteLength) return `a list of ${chunks.offsets.length} chunks`;
    for (const [index, offset] of chunks.offsets.entries()) {
      if (offset !== -1 && offset + (chunks.byteLengths[index] as number) > byteLength)
        return `chunk ${index}`;
    }
  }
  if (chunks.kind === "inline" && (chunks.bytes?.length ?? 0) > 8 * 65_535) return "a long list of bands";
  if (array.chunkShape.some((length) => length < 1)) return `chunks of ${array.chunkShape}`;
  return undefined;
}

t.test("every beginning of a file is refused, or its index lies within it", async (t) => {
  for (const form of [{}, { isBig: true, isBigEndian: true }]) {
    const whole = writeTiff([IMAGE, OVERVIEW], form);
    const from = whole.length - 2500;
    for (let length = 0; length < whole.length; length += length < 64 || length > from ? 1 : 509) {
      const index = await indexOf(whole.subarray(0, length));
      if (index instanceof ZpublishError) continue;
      t.fail(`an index of ${length} of ${whole.length} bytes`);
    }
    t.notOk((await indexOf(whole)) instanceof ZpublishError);
  }
});

t.test("mutated files are refused, or their index lies within them", async (t) => {
  const files = [{}, { isBig: true }, { isBigEndian: true }].map((form) =>
    writeTiff([IMAGE, OVERVIEW], form),
  );
  const extremes = [0, 1, 2, 3, 0x7f, 0x80, 0xff];
  let seed = 1;
  const draw = (below: number) => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return seed % below;
  };
  let opened = 0;
  for (let round = 0; round < effort(20_000); round++) {
    const whole = files[draw(files.length)] as Uint8Array;
    const bytes = Uint8Array.from(whole);
    const start = draw(4) === 0 ? 0 : bytes.length - 2000;
    for (let count = draw(4); count >= 0; count--) {
      const at = start === 0 ? draw(16) : start + draw(2000);
      bytes.fill(extremes[draw(extremes.length)] as number, at, at + 1 + draw(8));
      if (draw(3) === 0) bytes[at] = draw(256);
    }
    const begin = performance.now();
    const index = await indexOf(bytes);
    if (performance.now() - begin > MAX_MS) t.fail(`round ${round} took ${performance.now() - begin} ms`);
    if (index instanceof ZpublishError) continue;
    opened++;
    for (const array of index.groups.flatMap(({ arrays }) => arrays)) {
      const problem = problemOf(array, bytes.length);
      if (problem !== undefined) t.fail(`round ${round}: ${array.name}: ${problem}`);
    }
  }
  t.ok(opened > 0, `${opened} files were opened`);
});

t.test("a link back ends the list of directories", async (t) => {
  const bytes = Buffer.from(
    writeTiff([OVERVIEW, { ...OVERVIEW, tags: imageTags(20, 15, 8, [278, "short", [4]]) }]),
  );
  const first = bytes.readUInt32LE(4);
  const count = bytes.readUInt16LE(first);
  const second = bytes.readUInt32LE(first + 2 + 12 * count);
  bytes.writeUInt32LE(first, second + 2 + 12 * bytes.readUInt16LE(second));
  const index = await indexOf(bytes);
  t.match(index, { warnings: [/directory at \d+ is linked twice/] });
});

t.test("more directories than a file may have are refused", async (t) => {
  const image = { tags: imageTags(2, 2, 8), chunks: [new Uint8Array(4)] };
  t.match(await indexOf(writeTiff(Array(1001).fill(image))), {
    code: "unsupported",
    message: /at most 1000/,
  });
});

t.test("counts that no file can have allocate nothing", async (t) => {
  const bytes = Buffer.from(writeTiff([IMAGE], { isBig: true }));
  const first = Number(bytes.readBigUInt64LE(8));
  const count = Number(bytes.readBigUInt64LE(first));
  for (let entry = 0; entry < count; entry++) {
    const mutated = Buffer.from(bytes);
    mutated.writeBigUInt64LE(2n ** 60n, first + 8 + 20 * entry + 4);
    const index = await indexOf(mutated);
    t.ok(index instanceof ZpublishError, `tag ${mutated.readUInt16LE(first + 8 + 20 * entry)}`);
  }
  const directory = Buffer.from(bytes);
  directory.writeBigUInt64LE(2n ** 60n, first);
  t.match(await indexOf(directory), { code: "invalid-metadata" });
});

t.test("an image as wide as tags can say needs lists that are as long", async (t) => {
  const wide = imageTags(
    1,
    1,
    8,
    [256, "long", [2 ** 31 - 1]],
    [257, "long", [2 ** 31 - 1]],
    [322, "short", [1]],
    [323, "short", [1]],
  );
  const tiled = { tags: wide, chunks: [new Uint8Array(1)], isTiled: true };
  t.match(await indexOf(writeTiff([tiled])), { code: "invalid-metadata", message: /expected a list of/ });
  const strip = imageTags(1, 1, 8, [256, "long", [2 ** 31 - 1]], [257, "long", [2 ** 31 - 1]]);
  t.ok((await indexOf(writeTiff([{ tags: strip, chunks: [new Uint8Array(1)] }]))) instanceof ZpublishError);
});

t.test("long texts of metadata take no longer than reading them", async (t) => {
  for (const text of [
    "<Item ".repeat(200_000),
    `<Item ${"a".repeat(2 ** 20)}`,
    `<Item n="1">${"9".repeat(2 ** 20)}</Item>`,
    "&amp;".repeat(200_000),
  ]) {
    const begin = performance.now();
    const tags = imageTags(2, 2, 8, [42112, "ascii", `<Item name="a">${text}`], [42113, "ascii", text]);
    const index = await indexOf(writeTiff([{ tags, chunks: [new Uint8Array(4)] }]));
    t.notOk(index instanceof ZpublishError);
    t.ok(performance.now() - begin < MAX_MS, `${Math.round(performance.now() - begin)} ms`);
  }
});
