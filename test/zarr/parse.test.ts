import t from "tap";
import type { JsonObject, JsonValue } from "../../src/json/json-value.js";
import { stringifyJson } from "../../src/json/stringify-json.js";
import type { CodecSpec } from "../../src/zarr/codec-step.js";
import { assertV2Group, parseV2Array, parseV2Attributes } from "../../src/zarr/v2.js";
import { parseV3Array, parseV3Group, v3NodeType } from "../../src/zarr/v3/parse-v3.js";

const place = { name: "v", path: "g/v", files: { directory: "/store/g/v", root: "/store" } };
const document = {
  zarr_format: 2,
  shape: [4, 6],
  chunks: [2, 3],
  dtype: "<f4",
  compressor: { id: "zlib", level: 1 },
  fill_value: "NaN",
  order: "C",
  filters: null,
};
const parse = (changes: Record<string, JsonValue>, zattrs?: JsonValue) =>
  parseV2Array(place, { ...document, ...changes }, zattrs);

t.test("an array is what its documents say", async (t) => {
  const { array, warnings } = parse({}, { units: "K", _ARRAY_DIMENSIONS: ["y", "x"] });
  t.match(array, {
    name: "v",
    path: "g/v",
    shape: [4, 6],
    chunkShape: [2, 3],
    axisOrder: [0, 1],
    codecs: [{ id: "zlib", level: 1 }],
    compressorCount: 1,
    fill: { served: "NaN", absentIsServed: true },
    dimNames: ["y", "x"],
    chunks: {
      kind: "files",
      directory: "/store/g/v",
      root: "/store",
      keyEncoding: { name: "v2", separator: "." },
    },
  });
  t.same(array.attrs, { units: "K" });
  t.same(warnings, []);
});

t.test("a scalar has no axes, and chunks of length 0 are right for axes of length 0 only", async (t) => {
  const scalar = parse({ shape: [], chunks: [] }, { _ARRAY_DIMENSIONS: [] }).array;
  t.match(scalar, { shape: [], chunkShape: [], dimNames: [] });
  t.same(parse({ shape: [0, 6], chunks: [0, 3] }).array.chunkShape, [1, 3]);
  t.throws(() => parse({ chunks: [0, 3] }), { message: /chunks to be positive integers, received \[0,3\]/ });
});

t.test(
  "dimension names that name nothing are left out with a warning, and never stay an attribute",
  async (t) => {
    for (const names of [["x"], ["x", "x"], ["x", 1], "yx", null]) {
      const { array, warnings } = parse({}, { _ARRAY_DIMENSIONS: names as JsonValue });
      t.equal(array.dimNames, null);
      t.same(array.attrs, {});
      t.equal(warnings.length, 1);
    }
    t.equal(parse({}).array.dimNames, null);
  },
);

t.test("object arrays keep their fill value, and need a codec for objects", async (t) => {
  const { array } = parse({ dtype: "|O", fill_value: "", filters: [{ id: "vlen-utf8" }] });
  t.match(array, { dataType: { kind: "O" }, fill: { served: "", item: null } });
  t.throws(() => parse({ dtype: "|O", fill_value: "" }), { message: /a codec that encodes objects/ });
});

t.test("whatever is missing or wrong is named", async (t) => {
  for (const key of ["shape", "chunks", "dtype", "compressor", "fill_value", "order", "filters"]) {
    const { [key]: _left, ...rest } = document as Record<string, JsonValue>;
    t.throws(() => parseV2Array(place, rest, undefined), {
      code: "invalid-metadata",
      message: `.zarray: expected the key "${key}", received nothing`,
    });
  }
  const cases: readonly (readonly [Record<string, JsonValue>, RegExp])[] = [
    [{ zarr_format: 1 }, /zarr_format to be 2, received 1/],
    [{ shape: "4" }, /shape to be a list of non-negative integers, received "4"/],
    [{ shape: [4, -1] }, /non-negative integers/],
    [{ shape: [4, 2n ** 60n] }, /received \[4,1152921504606846976\]/],
    [{ chunks: [2] }, /chunks to be a list of 2 non-negative integers, received \[2\]/],
    [{ dtype: "<f3" }, /\.zarray: expected dtype/],
    [{ fill_value: "x" }, /\.zarray: expected fill_value of dtype float32/],
    [{ order: "A" }, /order to be "C" or "F", received "A"/],
    [{ compressor: "zlib" }, /compressor to be an object with the id of a codec/],
    [{ compressor: { level: 1 } }, /compressor to be an object with the id/],
    [{ filters: {} }, /filters to be a list/],
    [{ filters: [null] }, /every filter to be an object/],
    [{ filters: [{ id: "repack" }] }, /every filter to be a codec of Zarr, received "repack"/],
    [{ compressor: { id: "hdf5-filters" } }, /compressor to be a codec of Zarr, received "hdf5-filters"/],
  ];
  for (const [changes, message] of cases) t.throws(() => parse(changes), { message }, String(message));
  t.throws(() => parseV2Array(place, [], undefined), {
    message: ".zarray: expected the document to be an object, received []",
  });
  t.throws(() => parse({}, []), { message: /\.zattrs: expected the document to be an object/ });
});

t.test("groups are checked the same way", async (t) => {
  assertV2Group({ zarr_format: 2 });
  t.throws(() => assertV2Group({ zarr_format: 3 }), {
    message: ".zgroup: expected zarr_format to be 2, received 3",
  });
  t.same(parseV2Attributes(undefined), {});
  t.throws(() => parseV2Attributes(1), { code: "invalid-metadata" });
});

const named = (name: string, configuration: JsonObject) => ({ name, configuration });
const bytes = named("bytes", { endian: "little" });
const bigBytes = named("bytes", { endian: "big" });
const regular = (...chunk_shape: number[]) => named("regular", { chunk_shape });
const v3Document = {
  zarr_format: 3,
  node_type: "array",
  shape: [4, 6],
  data_type: "float32",
  chunk_grid: regular(2, 6),
  chunk_key_encoding: { name: "default" },
  fill_value: 0,
  codecs: [bytes],
};
const parseV3Document = (changes: Record<string, JsonValue>) =>
  parseV3Array(place, { ...v3Document, ...changes });
const array = (changes: Record<string, JsonValue>) => parseV3Document(changes).array;
const hex = (item: Uint8Array | null) => (item === null ? null : Buffer.from(item).toString("hex"));

t.test("a plain array is served as v2", async (t) => {
  t.match(array({ attributes: { units: "K" }, dimension_names: ["y", "x"] }), {
    dataType: { zarr: "<f4" },
    chunkShape: [2, 6],
    axisOrder: [0, 1],
    codecs: [],
    compressorCount: 0,
    dimNames: ["y", "x"],
    attrs: { units: "K" },
    chunks: { kind: "files", keyEncoding: { name: "default", separator: "/" } },
  });
  t.match(array({ chunk_key_encoding: { name: "v2" } }).chunks, {
    keyEncoding: { name: "v2", separator: "." },
  });
  t.match(array({ chunk_key_encoding: { name: "default", configuration: { separator: "." } } }).chunks, {
    keyEncoding: { name: "default", separator: "." },
  });
});

t.test("a NaN in hexadecimal digits is served by its name", async (t) => {
  t.equal(array({ fill_value: "0x7fc00000" }).v3?.fillValue, "NaN");
  t.same(array({ data_type: "complex64", fill_value: ["0x7fc00000", 1] }).v3?.fillValue, ["NaN", 1]);
});

t.test("types become numpy's, in the byte order of the codec", async (t) => {
  const cases: readonly (readonly [JsonValue, JsonValue, JsonValue, JsonValue?])[] = [
    ["bool", false, "|b1"],
    ["int8", 0, "|i1"],
    ["uint64", 0, "<u8"],
    ["float16", 0, "<f2"],
    ["complex128", [0, 0], "<c16"],
    ["r24", [1, 2, 3], "|V3"],
    [named("numpy.datetime64", { unit: "us", scale_factor: 25 }), "NaT", "<M8[25us]"],
    [named("numpy.timedelta64", { unit: "s", scale_factor: 1 }), 0, "<m8[s]"],
    [named("fixed_length_utf32", { length_bytes: 16 }), "ab", "<U4"],
    [named("null_terminated_bytes", { length_bytes: 5 }), "YWI=", "|S5"],
    [named("raw_bytes", { length_bytes: 2 }), "AAA=", "|V2"],
    [named("structured", { fields: [["a", "int32"]] }), "AAAAAA==", [["a", "<i4"]]],
    [named("struct", { fields: [{ name: "a", data_type: "int16" }] }), "AAA=", [["a", "<i2"]]],
  ];
  for (const [data_type, fill_value, zarr] of cases) {
    t.same(array({ data_type, fill_value }).dataType.zarr, zarr, stringifyJson(data_type));
  }
  t.equal(array({ codecs: [bigBytes], data_type: "int16" }).dataType.zarr, ">i2");
  t.equal(array({ codecs: ["bytes"], data_type: "uint8" }).dataType.zarr, "|u1");
  t.throws(() => array({ codecs: ["bytes"] }), { message: /the codec bytes to name an endian/ });
  t.throws(() => array({ data_type: "int2" }), {
    code: "unsupported",
    message: /a data_type known here, received "int2"/,
  });
  t.throws(() => array({ data_type: "r7" }), { message: /whole bytes/ });
});

t.test("texts and bytes of any length become objects with their codec", async (t) => {
  const text = array({
    data_type: "string",
    fill_value: "",
    codecs: [{ name: "vlen-utf8" }, { name: "zstd", configuration: { level: 1 } }],
  });
  t.match(text, {
    dataType: { zarr: "|O" },
    codecs: [{ id: "vlen-utf8" }, { id: "zstd", level: 1 }],
    compressorCount: 1,
  });
  t.match(array({ data_type: "variable_length_bytes", fill_value: "", codecs: ["vlen-bytes"] }), {
    codecs: [{ id: "vlen-bytes" }],
    compressorCount: 0,
  });
  t.throws(() => array({ data_type: "string", fill_value: "" }), {
    message: /the codec vlen-utf8 for this data_type, received bytes/,
  });
  t.throws(() => array({ codecs: ["vlen-utf8"] }), { message: /the codec bytes for this data_type/ });
});

t.test("codecs become those of numcodecs", async (t) => {
  const codecs = (...rest: JsonValue[]) => array({ codecs: [bytes, ...rest] });
  const gzip = named("gzip", { level: 3 });
  const blosc = { cname: "zstd", clevel: 3, blocksize: 0 };
  const cases: readonly (readonly [JsonValue, CodecSpec])[] = [
    [gzip, { id: "gzip", level: 3 }],
    [named("zstd", { level: 3, checksum: true }), { id: "zstd", level: 3 }],
    [named("blosc", { ...blosc, shuffle: "bitshuffle", typesize: 4 }), { id: "blosc", ...blosc, shuffle: 2 }],
  ];
  for (const [codec, expected] of cases) t.same(codecs(codec).codecs, [expected]);
  t.match(codecs(gzip, "crc32c"), {
    codecs: [{ id: "gzip", level: 3 }, { id: "crc32c" }],
    compressorCount: 0,
  });
  const shuffle = named("numcodecs.shuffle", { elementsize: 4 });
  const stored = codecs(shuffle, named("numcodecs.zlib", { level: 2 }));
  t.match(stored, { codecs: [{ id: "shuffle", elementsize: 4 }, { id: "zlib" }], compressorCount: 1 });
  const delta = named("numcodecs.delta", { dtype: "float32" });
  t.same(array({ codecs: [delta, bytes] }).codecs, [{ id: "delta", dtype: "<f4" }]);
  t.same(array({ codecs: ["numcodecs.delta", bytes] }).codecs, [{ id: "delta", dtype: "<f4" }]);
});

t.test("transposes become an axis order, composed where there are several", async (t) => {
  const transpose = (...order: number[]) => named("transpose", { order });
  const three = { shape: [2, 3, 4], chunk_grid: regular(2, 3, 4) };
  t.same(array({ ...three, codecs: [transpose(2, 0, 1), bytes] }).axisOrder, [2, 0, 1]);
  t.same(array({ ...three, codecs: [transpose(2, 0, 1), transpose(1, 0, 2), bytes] }).axisOrder, [0, 2, 1]);
  t.same(array({ ...three, codecs: [transpose(1, 2, 0), transpose(2, 0, 1), bytes] }).axisOrder, [0, 1, 2]);
  t.throws(() => array({ codecs: [transpose(0, 0), bytes] }), { message: /a permutation of 2 axes/ });
  t.throws(() => array({ codecs: [transpose(0), bytes] }), { message: /a permutation of 2 axes/ });
});

t.test("what nobody knows is refused by name", async (t) => {
  const cases: readonly (readonly [Record<string, JsonValue>, RegExp])[] = [
    [{ codecs: [bytes, { name: "wavelet" }] }, /a codec known here, received "wavelet"/],
    [{ codecs: [bytes, { name: "numcodecs.pcodec" }] }, /received "numcodecs\.pcodec"/],
    [{ codecs: [] }, /one that makes bytes of an array/],
    [{ codecs: ["crc32c", bytes] }, /crc32c elsewhere/],
    [{ codecs: [bytes, bytes] }, /bytes elsewhere/],
    [{ codecs: ["numcodecs.delta", named("transpose", { order: [1, 0] }), bytes] }, /no transpose beside/],
    [{ chunk_grid: { name: "rectangular" } }, /a chunk_grid regular or rectilinear, received "rectangular"/],
    [{ chunk_key_encoding: { name: "suffix" } }, /chunk_key_encoding default or v2, received "suffix"/],
    [{ storage_transformers: [{ name: "indirection" }] }, /no storage_transformers, received "indirection"/],
    [{ novelty: { name: "n" } }, /the field "novelty"/],
    [{ novelty: null }, /the field "novelty"/],
    [{ fill_value: undefined as never }, /the key "fill_value"/],
    [{ shape: [4] }, /chunk_shape to be a list of 1 positive integers/],
    [{ attributes: [] }, /attributes to be an object/],
  ];
  for (const [changes, message] of cases)
    t.throws(() => array(changes), { message }, Object.keys(changes)[0] as string);
  t.ok(array({ novelty: { name: "n", must_understand: false }, storage_transformers: [] }));
});

t.test("a shard's inner chunks are the chunks", async (t) => {
  const sharding = (changes: Record<string, JsonValue> = {}) =>
    named("sharding_indexed", {
      chunk_shape: [1, 3],
      codecs: [bytes, named("zstd", { level: 1 })],
      index_codecs: [bytes, { name: "crc32c" }],
      ...changes,
    });
  t.match(array({ codecs: [sharding()] }), {
    chunkShape: [1, 3],
    codecs: [{ id: "zstd", level: 1 }],
    compressorCount: 1,
    dataType: { zarr: "<f4" },
    chunks: {
      kind: "shards",
      levels: [{ chunksPerShard: [2, 2], indexLocation: "end", indexChecksum: true, indexByteOrder: "<" }],
    },
  });
  t.match(array({ codecs: [sharding({ index_location: "start", index_codecs: [bigBytes] })] }).chunks, {
    levels: [{ indexLocation: "start", indexChecksum: false, indexByteOrder: ">" }],
  });
  const inside = (...codecs: JsonValue[]) => array({ codecs: [sharding({ chunk_shape: [2, 3], codecs })] });
  t.match(inside(sharding({ index_location: "start" })), {
    chunkShape: [1, 3],
    codecs: [{ id: "zstd", level: 1 }],
    chunks: {
      levels: [
        { chunksPerShard: [1, 2], indexLocation: "end" },
        { chunksPerShard: [2, 1], indexLocation: "start" },
      ],
    },
  });
  t.match(inside(sharding({ codecs: [sharding({ chunk_shape: [1, 1] })] })), {
    chunkShape: [1, 1],
    chunks: { levels: [{ chunksPerShard: [1, 2] }, { chunksPerShard: [2, 1] }, { chunksPerShard: [1, 3] }] },
  });
  const refused: readonly (readonly [() => unknown, RegExp])[] = [
    [
      () => array({ codecs: [sharding({ chunk_shape: [1, 4] })] }),
      /divide the shard's \[2,6\], received \[1,4\]/,
    ],
    [() => inside(sharding({ chunk_shape: [1, 2] })), /divide the shard's \[2,3\], received \[1,2\]/],
    [() => array({ codecs: [sharding(), "zstd"] }), /no codec beside sharding_indexed, received "zstd"/],
    [() => inside(sharding(), "gzip"), /no codec beside sharding_indexed, received "gzip"/],
    [() => array({ codecs: [sharding({ index_codecs: [bytes, "gzip"] })] }), /index_codecs to be bytes/],
  ];
  for (const [parse, message] of refused) t.throws(parse, { message });
});

t.test("fill values of every form become one item", async (t) => {
  const item = (data_type: JsonValue, fill_value: JsonValue, endian = "little") =>
    hex(array({ data_type, fill_value, codecs: [{ name: "bytes", configuration: { endian } }] }).fill.item);
  t.equal(item("float32", "NaN"), "0000c07f");
  t.equal(item("float32", "0x7fc00001"), "0100c07f");
  t.equal(item("float32", "0x7fc00001", "big"), "7fc00001");
  t.equal(item("float64", "-Infinity"), "000000000000f0ff");
  t.equal(item("float16", "0x7e01"), "017e");
  t.equal(item("complex64", ["NaN", "0x3f800000"]), "0000c07f0000803f");
  t.equal(item("r16", [1, 255]), "01ff");
  t.equal(item("r16", "Af8="), "01ff");
  t.equal(item("int64", -(2n ** 63n)), "0000000000000080");
  t.throws(() => item("float32", "0x7fc0"), { message: /8 hexadecimal digits/ });
  t.throws(() => item("r16", [1]), { message: /a list of 2 bytes/ });
  t.throws(() => item("uint8", 256), { message: /zarr\.json: expected fill_value/ });
});

t.test("the fill value of a structured type has one entry per field", async (t) => {
  const struct = (...fields: readonly (readonly [string, JsonValue])[]) => ({
    name: "struct",
    configuration: { fields: fields.map(([name, data_type]) => ({ name, data_type })) },
  });
  const point = struct(["x", "float32"], ["y", "float32"]);
  const days = { name: "numpy.datetime64", configuration: { unit: "D", scale_factor: 1 } };
  const data_type = struct(["point", point], ["count", "uint8"], ["day", days], ["raw", "r16"]);
  const fill_value = { point: { x: "NaN", y: "0x7fc00001" }, count: 7, day: "NaT", raw: [1, 255] };
  const fill = (endian: string, value: JsonValue = fill_value) =>
    array({ data_type, fill_value: value, codecs: [{ name: "bytes", configuration: { endian } }] }).fill;
  const little = "0000c07f" + "0100c07f" + "07" + "0000000000000080" + "01ff";
  t.equal(hex(fill("little").item), little);
  t.equal(hex(fill("big").item), "7fc00000" + "7fc00001" + "07" + "8000000000000000" + "01ff");
  t.same(fill("little").served, Buffer.from(little, "hex").toString("base64"), "as v2 has it");
  t.equal(hex(fill("little", Buffer.from(little, "hex").toString("base64")).item), little);

  const legacy = { name: "structured", configuration: { fields: [["a", "int16"]] } };
  t.equal(hex(array({ data_type: legacy, fill_value: { a: 258 } }).fill.item), "0201");
  t.equal(hex(array({ data_type: struct(["0", "int8"]), fill_value: { 0: 1 } }).fill.item), "01");

  const { point: _left, ...rest } = fill_value;
  t.throws(() => fill("little", rest), {
    code: "invalid-metadata",
    message: /zarr\.json: fill_value: expected an entry for the field "point", received \{"count"/,
  });
  t.throws(() => fill("little", { ...fill_value, count: 256 }), { message: /an integer from 0 to 255/ });
  t.throws(() => array({ data_type: "float32", fill_value: {} }), { code: "invalid-metadata" });
});

t.test("without dimension names the fill value is served", async (t) => {
  t.match(array({ fill_value: 7 }).fill, { absentIsServed: true, served: { value: "7.0" } });
  t.match(array({ fill_value: 7, dimension_names: [null, "x"] }).fill, { absentIsServed: true });
});

t.test("with dimension names only _FillValue marks missing values", async (t) => {
  const named = { dimension_names: ["y", "x"] };
  const plain = array({ ...named, fill_value: 7 });
  t.match(plain.fill, { served: null, absentIsServed: false });
  t.equal(hex(plain.fill.item), "0000e040");

  const masked = array({ ...named, fill_value: 0, attributes: { _FillValue: "AAAAAAAA+H8=", units: "K" } });
  t.match(masked.fill, { served: "NaN", absentIsServed: false });
  t.equal(hex(masked.fill.item), "00000000");
  t.same(masked.attrs, { units: "K" });

  const same = array({ ...named, fill_value: "NaN", attributes: { _FillValue: "AAAAAAAA+H8=" } });
  t.match(same.fill, { served: "NaN", absentIsServed: true });

  const integer = array({ ...named, data_type: "int16", fill_value: -1, attributes: { _FillValue: -1 } });
  t.match(integer.fill, { served: -1, absentIsServed: true });

  const odd = parseV3Document({ ...named, attributes: { _FillValue: "what" } });
  t.match(odd.array.fill, { served: null, absentIsServed: false });
  t.same(odd.array.attrs, { _FillValue: "what" });
  t.match(odd.warnings, [/_FillValue/]);

  const text = parseV3Document({ ...named, data_type: "string", fill_value: "", codecs: ["vlen-utf8"] });
  t.match(text.array.fill, { served: null, absentIsServed: false });
  t.equal(hex(text.array.fill.item), "00000000", "an item of length 0, as vlen-utf8 writes it");
  t.same(text.warnings, []);

  const marked = { ...named, data_type: "string", codecs: ["vlen-utf8"], attributes: { _FillValue: "é" } };
  const markedText = parseV3Document({ ...marked, fill_value: "é" }).array;
  t.match(markedText.fill, { served: "é", absentIsServed: true });
  t.equal(hex(markedText.fill.item), "02000000c3a9");
  t.same(markedText.attrs, {});

  const bytes = parseV3Document({
    ...named,
    data_type: "bytes",
    fill_value: "Af8=",
    codecs: ["vlen-bytes"],
  }).array;
  t.equal(hex(bytes.fill.item), "0200000001ff");
});

t.test("a scalar follows the rule of arrays with dimension names", async (t) => {
  const scalar = { shape: [], chunk_grid: regular(), data_type: "int64" };
  for (const names of [{}, { dimension_names: null }, { dimension_names: [] }]) {
    const plain = array({ ...scalar, ...names, attributes: { grid_mapping_name: "latitude_longitude" } });
    t.match(plain.fill, { served: null, absentIsServed: false });
    t.equal(hex(plain.fill.item), "0000000000000000");
    const marked = array({ ...scalar, ...names, attributes: { _FillValue: -1 } });
    t.match(marked.fill, { served: -1, absentIsServed: false });
    t.same(marked.attrs, {});
  }
});

t.test("groups and node types are told apart", async (t) => {
  t.equal(v3NodeType(v3Document), "array");
  const group = { zarr_format: 3, node_type: "group", attributes: { a: 1 }, consolidated_metadata: null };
  t.equal(v3NodeType(group), "group");
  t.same(parseV3Group(group), { a: 1 });
  t.same(parseV3Group({ zarr_format: 3, node_type: "group" }), {});
  t.throws(() => v3NodeType({ zarr_format: 2 }), {
    message: "zarr.json: expected zarr_format to be 3, received 2",
  });
  t.throws(() => v3NodeType({ zarr_format: 3, node_type: "x" }), {
    message: /node_type to be "array" or "group"/,
  });
  t.throws(() => parseV3Group({ ...group, novelty: 1 }), { code: "unsupported" });
});
