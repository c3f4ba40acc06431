import { deflateSync } from "node:zlib";
import t from "tap";
import { createRandom } from "../../../bench/random.js";
import { ZpublishError } from "../../../src/errors.js";
import type { FileBlocks } from "../../../src/formats/file-format.js";
import type { FileArray, FileIndex } from "../../../src/formats/file-index.js";
import { tiffFormat } from "../../../src/formats/tiff/tiff-format.js";
import { stringifyJson } from "../../../src/json/stringify-json.js";
import { encodeLzw, predictItems } from "../../support/codec/tiff-encoders.js";
import { effort } from "../../support/effort.js";
import { processorMs } from "../../support/processor-time.js";
import { memoryBlocks } from "../memory-blocks.js";
import { arrayAt, readArray as readAnyArray } from "../read-array.js";
import { imageTags, type Tag, type WrittenForm, type WrittenImage, writeTiff } from "./tiff-writer.js";

const FORMS: readonly WrittenForm[] = [
  {},
  { isBigEndian: true },
  { isBig: true },
  { isBig: true, isBigEndian: true },
];

/** An image of 5 × 3 pixels of 16 bits: 0, 1, 2, … */
const WIDTH = 5;
const HEIGHT = 3;

function ramp(count: number, isBigEndian = false): Buffer {
  const bytes = Buffer.alloc(2 * count);
  for (let index = 0; index < count; index++) {
    if (isBigEndian) bytes.writeUInt16BE(index * 300, 2 * index);
    else bytes.writeUInt16LE(index * 300, 2 * index);
  }
  return bytes;
}

const readArray = (file: FileBlocks, array: FileArray) => readAnyArray(file, array, tiffFormat.makeChunk);

async function open(images: readonly WrittenImage[], form: WrittenForm = {}) {
  const file = memoryBlocks(writeTiff(images, form));
  return { file, index: await tiffFormat.readIndex(file) };
}

const GEO: readonly Tag[] = [
  [33550, "double", [10, 20, 0]],
  [33922, "double", [0, 0, 0, 1000, 2000, 0]],
  [34735, "short", [1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32633]],
];

t.test("the first bytes tell TIFF and BigTIFF of both byte orders", async (t) => {
  for (const form of FORMS) t.ok(tiffFormat.recognizes(writeTiff([], form)));
  for (const text of ["", "II", "II*\0", "IM*\0....", "\x89HDF\r\n\x1a\n", "II+*...."]) {
    t.notOk(tiffFormat.recognizes(Buffer.from(text, "latin1")), JSON.stringify(text));
  }
});

t.test("strips that follow each other are cut like one range, in every form of file", async (t) => {
  for (const form of FORMS) {
    const pixels = ramp(WIDTH * HEIGHT, form.isBigEndian);
    const strips = [pixels.subarray(0, 20), pixels.subarray(20)];
    const tags = imageTags(WIDTH, HEIGHT, 16, [278, "short", [2]], ...GEO);
    const { file, index } = await open([{ tags, chunks: strips }], form);
    const array = arrayAt(index, "band_data");
    t.match(array, {
      dtype: form.isBigEndian ? ">u2" : "<u2",
      shape: [1, 3, 5],
      codecs: [],
      compressorCount: 0,
    });
    t.match(array.chunks, { kind: "strided", byteLength: 30 });
    t.equal(array.servedCompressor, undefined, "passed through");
    t.same(Buffer.from(await readArray(file, array)), pixels);
    t.equal(index.format, form.isBig ? "GeoTIFF (BigTIFF)" : "GeoTIFF");
  }
});

t.test("tiles of deflate are passed through, absent ones mean the missing-value mark", async (t) => {
  const tile = new Uint8Array(16 * 16).map((_, index) => index);
  const tags = imageTags(20, 10, 8, [259, "short", [8]], [322, "short", [16]], [323, "short", [16]]);
  const image = {
    tags: [...tags, [42113, "ascii", "7"] as Tag],
    chunks: [deflateSync(tile), null],
    isTiled: true,
  };
  const { file, index } = await open([image]);
  const array = arrayAt(index, "band_data");
  t.same(array.codecs, [{ id: "zlib", level: 6 }]);
  t.same(array.fill, { served: 7, item: Uint8Array.of(7), absentIsServed: true });
  t.equal(array.servedCompressor, undefined);
  const read = await readArray(file, array);
  t.same([read[0], read[15], read[16], read[19], read[20]], [0, 15, 7, 7, 16]);

  const unmarked = arrayAt((await open([{ ...image, tags }])).index, "band_data");
  t.same(unmarked.fill, { served: null, item: null, absentIsServed: false });
});

t.test("the last strip is shorter, and a variant of its own", async (t) => {
  const pixels = ramp(WIDTH * HEIGHT);
  const form = { itemSize: 2, rowItems: WIDTH, step: 1, isBigEndian: false };
  const chunks = [pixels.subarray(0, 20), pixels.subarray(20)].map((strip) =>
    encodeLzw(predictItems(strip, form)),
  );
  const tags = imageTags(WIDTH, HEIGHT, 16, [259, "short", [5]], [278, "short", [2]], [317, "short", [2]]);
  const { file, index } = await open([{ tags, chunks }]);
  const array = arrayAt(index, "band_data");
  t.match(array.codecs, [{ id: "tiff-predictor", predictor: 2 }, { id: "tiff-lzw" }]);
  t.match(array.variants, [[{ id: "pad", byteLength: 10 }, { id: "tiff-predictor" }, { id: "tiff-lzw" }]]);
  t.match(array, { servedFilters: [], servedCompressor: { id: "blosc" } });
  t.same(Buffer.from(await readArray(file, array)), pixels);
});

t.test("a last strip of Deflate may go on behind its rows", async (t) => {
  const pixels = ramp(WIDTH * HEIGHT);
  const tags = imageTags(WIDTH, HEIGHT, 16, [259, "short", [8]], [278, "short", [2]]);
  for (const rest of [0, 5, 10]) {
    const last = Buffer.concat([pixels.subarray(20), new Uint8Array(rest).fill(9)]);
    const { file, index } = await open([
      { tags, chunks: [deflateSync(pixels.subarray(0, 20)), deflateSync(last)] },
    ]);
    t.same(Buffer.from(await readArray(file, arrayAt(index, "band_data"))), pixels, `${rest} bytes more`);
  }
  const last = deflateSync(new Uint8Array(21));
  const { file, index } = await open([{ tags, chunks: [deflateSync(pixels.subarray(0, 20)), last] }]);
  await t.rejects(readArray(file, arrayAt(index, "band_data")), { code: "corrupt-chunk" });
});

t.test("bands that lie pixel by pixel have the order of axes that says so", async (t) => {
  const pixels = new Uint8Array(2 * 3 * 4).map((_, index) => index);
  const tags = imageTags(4, 2, 8, [258, "short", [8, 8, 8]], [277, "short", [3]], [339, "short", [1, 1, 1]]);
  const { file, index } = await open([{ tags, chunks: [pixels] }]);
  const array = arrayAt(index, "band_data");
  t.match(array, { shape: [3, 2, 4], axisOrder: [1, 2, 0], dimNames: ["band", "y", "x"] });
  t.same([...(await readArray(file, array)).subarray(0, 8)], [0, 3, 6, 9, 12, 15, 18, 21]);
  const bands = await readArray(file, arrayAt(index, "band"));
  t.same([...new BigInt64Array(bands.buffer)], [1n, 2n, 3n]);
});

t.test("attributes say what samples mean: colours of a palette, and which band is which", async (t) => {
  const attrsOf = async (...tags: Tag[]) => {
    const bands = tags.find(([tag]) => tag === 277)?.[2] ?? [1];
    const chunks = [new Uint8Array(2 * Number(bands[0]))];
    return arrayAt((await open([{ tags: imageTags(2, 1, 8, ...tags), chunks }])).index, "band_data").attrs;
  };
  const bandsOf = (count: number): Tag[] => [
    [258, "short", Array.from({ length: count }, () => 8)],
    [277, "short", [count]],
    [339, "short", Array.from({ length: count }, () => 1)],
  ];
  const channel = (scale: number) => Array.from({ length: 256 }, (_, index) => index * scale);
  const map = [...channel(257), ...channel(0), ...channel(257).reverse()];
  const palette = await attrsOf([262, "short", [3]], [320, "short", map]);
  t.equal(Object.values(palette.flag_values ?? {}).length, 256);
  t.match(palette.flag_colors, /^#0000ff #0100fe .* #ff0000$/);
  const short = await attrsOf([262, "short", [3]], [320, "short", map.map((value) => value / 257)]);
  t.equal(short.flag_colors, palette.flag_colors, "colours of 8 bits");
  const rgba = await attrsOf([262, "short", [2]], [338, "short", [2]], ...bandsOf(4));
  t.same(rgba.color_interpretation, ["red", "green", "blue", "alpha"]);
  const infrared = await attrsOf([262, "short", [2]], [338, "short", [0]], ...bandsOf(4));
  t.same(infrared.color_interpretation, ["red", "green", "blue", "undefined"]);
  t.same((await attrsOf(...bandsOf(3))).color_interpretation, ["gray", "undefined", "undefined"]);
  t.notOk("color_interpretation" in (await attrsOf(...bandsOf(2))));
});

t.test("coordinates are pixel centres, and spatial_ref says where they are", async (t) => {
  const { file, index } = await open([{ tags: imageTags(3, 2, 8, ...GEO), chunks: [new Uint8Array(6)] }]);
  const floats = async (path: string) => [
    ...new Float64Array((await readArray(file, arrayAt(index, path))).buffer),
  ];
  t.same(await floats("x"), [1005, 1015, 1025]);
  t.same(await floats("y"), [1990, 1970]);
  const { attrs } = arrayAt(index, "spatial_ref");
  t.match(attrs, {
    GeoTransform: "1000.0 10.0 0.0 2000.0 0.0 -20.0",
    crs_wkt: /^PROJCS\["WGS 84 \/ UTM zone 33N",.*AUTHORITY\["EPSG","32633"\]\]$/,
    grid_mapping_name: "transverse_mercator",
  });
  t.match(arrayAt(index, "band_data").attrs, {
    AREA_OR_POINT: "Area",
    grid_mapping: "spatial_ref",
    coordinates: "spatial_ref",
  });
});

t.test("overviews are groups, pages too, masks are refused by name", async (t) => {
  const images: WrittenImage[] = [
    { tags: imageTags(4, 4, 8, ...GEO), chunks: [new Uint8Array(16)] },
    { tags: imageTags(4, 4, 1, [254, "long", [4]]), chunks: [new Uint8Array(4)] },
    { tags: imageTags(2, 2, 8, [254, "long", [1]]), chunks: [new Uint8Array(4)] },
    { tags: imageTags(3, 1, 8), chunks: [new Uint8Array(3)] },
  ];
  const { file, index } = await open(images);
  t.same(
    index.groups.map(({ path }) => path),
    ["/", "/overview_1", "/page_2"],
  );
  t.same(index.refused, [{ path: "mask", reason: "masks of images are not served; values below them are" }]);
  t.match(index.groups[0]?.attrs, {
    multiscales: {
      layout: [{ asset: "band_data" }, { asset: "overview_1/band_data", derived_from: "band_data" }],
    },
  });
  const x = await readArray(file, arrayAt(index, "overview_1/x"));
  t.same([...new Float64Array(x.buffer)], [1010, 1030]);
});

t.test(
  "GDAL's scale and missing-value mark count, not those that netCDF's attributes left behind",
  async (t) => {
    const items = [
      ["scale_factor", "0.01"],
      ["add_offset", "5"],
      ["_FillValue", "3"],
      ["kept", "1"],
    ].map(([name, value]) => `<Item name="${name}" sample="0">${value}</Item>`);
    const role = '<Item name="SCALE" sample="0" role="scale">2</Item>';
    const attrsOf = async (text: string) => {
      const tags = imageTags(2, 2, 8, [42112, "ascii", `<GDALMetadata>${text}</GDALMetadata>`]);
      const { index } = await open([{ tags, chunks: [new Uint8Array(4)] }]);
      const { coordinates, grid_mapping, ...attrs } = arrayAt(index, "band_data").attrs;
      return stringifyJson(attrs);
    };
    t.equal(await attrsOf(items.join("")), '{"kept":1}');
    t.equal(await attrsOf(items.join("") + role), '{"kept":1,"scale_factor":2.0,"add_offset":0.0}');
  },
);

t.test("what is not read is refused by name", async (t) => {
  const cases: readonly (readonly [readonly Tag[], RegExp])[] = [
    [imageTags(4, 4, 1), /1-bit unsigned integers/],
    [imageTags(4, 4, 12), /12-bit unsigned integers/],
    [imageTags(4, 4, 16, [259, "short", [7]]), /compressed with JPEG/],
    [imageTags(4, 4, 8, [259, "short", [34887]]), /LERC/],
    [imageTags(4, 4, 8, [259, "short", [999]]), /compression 999 is unknown/],
    [imageTags(4, 4, 8, [266, "short", [2]]), /FillOrder 2/],
    [imageTags(4, 4, 8, [278, "short", [0]]), /strips have 0 rows/],
    [imageTags(4, 4, 8, [278, "double", [1.5]]), /strips have 1.5 rows/],
    [imageTags(4, 4, 8, [262, "short", [6]]), /YCbCr/],
    [imageTags(4, 4, 8, [258, "short", [8, 16]], [277, "short", [2]]), /differ in bits: 8, 16/],
    [imageTags(4, 4, 24, [339, "short", [3]]), /24-bit floats/],
    [imageTags(4, 4, 32, [339, "short", [5]]), /complex integers/],
    [imageTags(4, 4, 8, [259, "short", [8]], [317, "short", [3]]), /predictor 3/],
  ];
  for (const [tags, message] of cases) {
    await t.rejects(open([{ tags, chunks: [new Uint8Array(64)] }]), { code: "unsupported", message });
  }
  const good = { tags: imageTags(2, 2, 8), chunks: [new Uint8Array(4)] };
  const { index } = await open([good, { tags: imageTags(4, 4, 1), chunks: [new Uint8Array(4)] }]);
  t.match(index.refused, [{ path: "page_2/band_data", reason: /1-bit/ }]);
});

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
    return await tiffFormat.readIndex(memoryBlocks(bytes));
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
  const random = createRandom(1);
  const draw = (below: number) => Math.floor(random() * below);
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
    const begin = processorMs();
    const index = await indexOf(bytes);
    if (processorMs() - begin > MAX_MS) t.fail(`round ${round} took ${processorMs() - begin} ms`);
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
  const size: Tag[] = [256, 257].map((tag) => [tag, "long", [2 ** 31 - 1]]);
  const wide = imageTags(1, 1, 8, ...size, [322, "short", [1]], [323, "short", [1]]);
  const tiled = { tags: wide, chunks: [new Uint8Array(1)], isTiled: true };
  t.match(await indexOf(writeTiff([tiled])), { code: "invalid-metadata", message: /expected a list of/ });
  const strip = imageTags(1, 1, 8, ...size);
  t.ok((await indexOf(writeTiff([{ tags: strip, chunks: [new Uint8Array(1)] }]))) instanceof ZpublishError);
});

t.test("long texts of metadata take no longer than reading them", async (t) => {
  for (const text of [
    "<Item ".repeat(200_000),
    `<Item ${"a".repeat(2 ** 20)}`,
    `<Item n="1">${"9".repeat(2 ** 20)}</Item>`,
    "&amp;".repeat(200_000),
  ]) {
    const begin = processorMs();
    const tags = imageTags(2, 2, 8, [42112, "ascii", `<Item name="a">${text}`], [42113, "ascii", text]);
    const index = await indexOf(writeTiff([{ tags, chunks: [new Uint8Array(4)] }]));
    t.notOk(index instanceof ZpublishError);
    t.ok(processorMs() - begin < MAX_MS, `${Math.round(processorMs() - begin)} ms`);
  }
});
