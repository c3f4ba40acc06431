import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import t from "tap";
import type { FileIndex } from "../../../src/formats/file-index.js";
import { hdf5Format, mapFill, textItem } from "../../../src/formats/hdf5/hdf5-format.js";
import { createServer } from "../../../src/index.js";
import { parseDataType } from "../../../src/model/data-type.js";
import { PACKAGE_ROOT } from "../../support/clients/client-generation.js";
import { readWithZarrita } from "../../support/clients/zarrita-reader.js";
import { memoryBlocks } from "../memory-blocks.js";

const FIXTURES = join(PACKAGE_ROOT, "test", "fixtures", "netcdf4");

/** A file of `write_hdf5_files.py`. */
function fixture(name: string): Buffer {
  return gunzipSync(readFileSync(join(FIXTURES, `${name}.gz`)));
}

function readIndex(name: string): Promise<FileIndex> {
  return hdf5Format.readIndex(memoryBlocks(fixture(name), true));
}

/** Arrays as `path dtype dims`. */
function listArrays({ groups }: FileIndex): string[] {
  return groups.flatMap(({ path, arrays }) =>
    arrays.map(({ name, dtype, dimNames, shape }) => {
      const dims = dimNames.map((dim, axis) => `${dim}=${shape[axis]}`).join(",");
      return `${path === "/" ? "" : path}/${name} ${JSON.stringify(dtype)} ${dims}`;
    }),
  );
}

t.test("files are recognized by their superblock, behind a user block too", async (t) => {
  const signature = Buffer.from("\x89HDF\r\n\x1a\n", "latin1");
  t.equal(hdf5Format.recognizes(signature), true);
  t.equal(hdf5Format.recognizes(Buffer.concat([Buffer.alloc(2048), signature])), true);
  t.equal(hdf5Format.recognizes(Buffer.concat([Buffer.alloc(513), signature])), false);
  t.equal(hdf5Format.recognizes(new Uint8Array(0)), false);
});

t.test("scales name the axes of NetCDF-4 and HDF5", async (t) => {
  const index = await readIndex("h5_scales_latest.h5");
  t.equal(index.format, "HDF5");
  t.same(listArrays(index), [
    '/data "<f8" y=2,x=3',
    '/twice "<f8" y=2,x2=3',
    '/x "<f8" x=3',
    '/x2 "<f8" x2=3',
    '/y "<f8" y=2',
    '/group/below "<i2" x=3,y=2',
    '/group/same "<f8" y=2,x=3',
  ]);
  t.same(index.groups[0]?.arrays.find(({ name }) => name === "x")?.attrs, { units: "m" });
});

t.test("axes without scale are named as netCDF names them", async (t) => {
  t.same(listArrays(await readIndex("h5_unnamed_latest.h5")), [
    '/cube "|u1" phony_dim_4=2,phony_dim_5=3,phony_dim_6=5',
    '/flat "<i4" phony_dim_5=3,phony_dim_6=5',
    '/growing "<f8" phony_dim_7=3,phony_dim_4=2',
    '/grown "<f8" phony_dim_7=3,phony_dim_8=3',
    '/square "<f8" phony_dim_5=3,phony_dim_9=3',
    '/a/line "<f8" phony_dim_0=3',
    '/b/square "<f8" phony_dim_2=3,phony_dim_3=3',
    '/b/c/line "<f8" phony_dim_1=4',
  ]);
});

t.test("every array of an unlimited dimension has the length of the longest", async (t) => {
  const index = await readIndex("nc_dimensions.nc");
  t.equal(index.format, "NetCDF-4");
  t.same([...(index.unlimited ?? [])].sort(), ["never", "t", "u"]);
  t.same(listArrays(index), [
    '/both "|u1" u=5,t=8',
    '/empty "<f4" never=0,x=4',
    '/long "<i4" t=8,x=4',
    '/other "<f4" u=5,x=4',
    '/scalar "<i4" ',
    '/shadowed "<i4" x=4',
    '/short "<i2" t=8,x=4',
    '/t "<f8" t=8',
    '/text "|O" t=8',
    '/wide "<f4" x=4,t=8',
    '/x "<f4" x=4',
  ]);
});

t.test("strings of a fixed length are text if they are UTF-8, else bytes", async (t) => {
  const index = await readIndex("h5_fixed_texts_latest.h5");
  t.same(
    listArrays(index).map((line) => line.replace(/ \w+=\d+$/, "")),
    [
      ...['/bytes3 "|S3"', '/chunked "|S3"', '/spaced "|S4"', '/terminated "|S4"', '/utf8 "<U9"'],
      ...['/utf8_deflated "<U9"', '/utf8_letters "|S1"', '/utf8_marked "<U9"', '/utf8_spaced "<U4"'],
      ...['/utf8_terminated "<U4"', '/utf8_unwritten "<U9"'],
    ],
  );
  const arrays = new Map(index.groups[0]?.arrays.map((array) => [array.name, array]));
  t.same(arrays.get("utf8")?.attrs, { text: "Genève", texts: ["Zürich", "", "日𝄞"] });
  t.match(arrays.get("utf8_marked"), { attrs: {}, fill: { served: "é", absentIsServed: true } });
});

t.test("what is not served is refused by name, the rest is served", async (t) => {
  const index = await readIndex("h5_refused_latest.h5");
  t.same(listArrays(index), ['/v "<i8" phony_dim_0=3']);
  t.same(index.refused.map(({ path }) => path).sort(), [
    "dangling",
    "elsewhere",
    "lists",
    "long_double",
    "nothing",
    "references",
    "texts_in_fields",
  ]);
  t.match(index.warnings, [/^'v': attribute "reference" is left out/]);
});

t.test("an array that does not fit its file is refused", async (t) => {
  const whole = fixture("h5_scales_latest.h5");
  const index = await hdf5Format.readIndex(memoryBlocks(whole));
  const data = index.groups[0]?.arrays.find(({ name }) => name === "data")?.chunks;
  const start = data?.kind === "strided" ? data.start : 0;
  // The superblock says where the file ends, so a short one is refused as a whole.
  await t.rejects(hdf5Format.readIndex(memoryBlocks(whole.subarray(0, start + 8))), {
    code: "invalid-metadata",
  });
});

t.test("values are served", async (t) => {
  const directory = t.testdir();
  const names = readdirSync(FIXTURES).filter((name) => name.endsWith(".gz"));
  const datasets: Record<string, string> = {};
  for (const [number, file] of names.entries()) {
    const name = file.slice(0, -".gz".length);
    writeFileSync(join(directory, name), fixture(name));
    datasets[`d${number}`] = join(directory, name);
  }
  const server = await createServer({ datasets, workers: 1 });
  t.teardown(() => server.close());
  const { url } = await server.listen({ port: 0 });
  const read = async (file: string, ...paths: readonly string[]) => {
    const values = await readWithZarrita(
      `${url}/datasets/d${names.indexOf(`${file}.gz`)}/zarr`,
      paths,
      "consolidated",
    );
    return Object.fromEntries(values.map(({ path, items, problem }) => [path, problem ?? items]));
  };
  t.same(await read("nc_dimensions.nc", "t", "short", "shadowed", "scalar"), {
    t: [1, 2, ...Array(6).fill(-1)],
    short: [...Array(4).fill(8), ...Array(28).fill(-6)],
    shadowed: [5, 5, 5, 5],
    scalar: [3],
  });
  t.same(await read("nc_absent_texts.nc", "filled", "chunked"), {
    filled: ["a", "none", "none", "none", "none", "none"],
    chunked: [...Array(11).fill(""), "b", "ü", "d", ...Array(16).fill("")],
  });
  t.same(
    await read("h5_types_latest.h5", "truths", "words", "word", "words_deflated", "wide", "twelve_bits"),
    {
      truths: [true, false, false, true],
      words: ["a", "", "ü"],
      word: ["alone"],
      words_deflated: ["a", "", "ü"],
      wide: [2n ** 63n, 2n ** 63n + 1n, 2n ** 63n + 2n],
      twelve_bits: [-5, 2047, 0],
    },
  );
  t.same(await read("h5_unnamed_latest.h5", "grown", "b/c/line"), {
    grown: Array(9).fill(1),
    "b/c/line": [0, 0, 0, 0],
  });
  t.same(
    await read(
      ...(["h5_fixed_texts_latest.h5", "utf8", "utf8_deflated", "utf8_marked", "utf8_unwritten"] as const),
      ...["utf8_terminated", "utf8_spaced"],
    ),
    {
      utf8: ["Zürich", "", "日𝄞"],
      utf8_deflated: ["Zürich", "", "日𝄞"],
      utf8_marked: ["é", "ü", "é", "é"],
      utf8_unwritten: ["é", "é"],
      utf8_terminated: ["ab", "a  ", "    "],
      utf8_spaced: ["abc", "a  ", ""],
    },
    "strings of a fixed length in UTF-8 are decoded",
  );
  const types = `${url}/datasets/d${names.indexOf("h5_types_latest.h5.gz")}/zarr`;
  const padded = new DataView(await (await fetch(`${types}/padded/0`)).arrayBuffer());
  // Packed: a byte, two pairs of int16 and float64, three letters.
  t.equal(padded.byteLength, 3 * 24);
  t.same([padded.getUint8(24), padded.getFloat64(24 + 3, true), padded.getUint8(24 + 21)], [2, 1.25, 0x79]);
});

const INT16 = parseDataType("<i2");
const FLOAT32 = parseDataType(">f4");
const SEVEN = new Uint8Array([7, 0]);

t.test("_FillValue is served, and says what absent chunks hold if it is the same", async (t) => {
  const nan = new Uint8Array([0xff, 0xc0, 0, 1]);
  const eight = new Uint8Array([8, 0]);
  for (const [type, item, mark, hasAbsent, served, filled, absentIsServed] of [
    [INT16, SEVEN, undefined, true, null, SEVEN, false],
    [INT16, SEVEN, undefined, false, null, SEVEN, true],
    [INT16, SEVEN, 7, true, 7, SEVEN, true],
    [INT16, null, 0, true, 0, null, true],
    [INT16, SEVEN, 8, true, 8, SEVEN, false],
    [INT16, SEVEN, 8, false, 8, eight, true],
    // Any NaN is the same as another.
    [FLOAT32, nan, Number.NaN, true, "NaN", nan, true],
  ] as const) {
    t.same(mapFill(type, item, mark, hasAbsent), {
      fill: { served, item: filled, absentIsServed },
      isAttribute: mark !== undefined,
    });
  }
});

t.test("a _FillValue that the type cannot hold stays an attribute", async (t) => {
  for (const [type, value] of [
    [INT16, 0.5],
    [INT16, 70_000],
    [INT16, [1, 2]],
    [INT16, "7"],
    [FLOAT32, 0.1],
    [FLOAT32, "NaN"],
    [parseDataType("<U1"), "ab"],
    [parseDataType("<U1"), 0],
    [parseDataType("|S1"), "ab"],
    [parseDataType([["a", "<i4"]]), [1]],
  ] as const) {
    const { fill, isAttribute } = mapFill(type, null, value, true);
    t.same([fill.served, isAttribute], [null, false], `${type.numpyStr} ${value}`);
  }
});

t.test("a NaN marks nothing among integers, and is no attribute", async (t) => {
  t.same(mapFill(INT16, null, Number.NaN, true), {
    ...{ fill: { served: null, item: null, absentIsServed: false }, isAttribute: true },
  });
});

t.test("bytes and texts are marks, too", async (t) => {
  t.equal(mapFill(parseDataType("|S1"), null, "z", true).fill.served, "eg==");
  t.equal(mapFill(parseDataType("<U2"), null, "zü", true).fill.served, "zü");
  const { fill } = mapFill(parseDataType("|O"), textItem(""), "none", false);
  t.same(fill, { served: "none", item: textItem("none"), absentIsServed: true });
});
