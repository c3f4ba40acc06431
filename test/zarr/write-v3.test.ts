import t from "tap";
import { isJsonObject, type JsonObject, type JsonValue } from "../../src/json/json-value.js";
import { parseJson } from "../../src/json/parse-json.js";
import { stringifyJson } from "../../src/json/stringify-json.js";
import { parseDataType } from "../../src/model/data-type.js";
import { parseFillValue } from "../../src/model/fill-value.js";
import type { CodecSpec } from "../../src/zarr/codec-step.js";
import { createEncodingPlan } from "../../src/zarr/plan/create-encoding-plan.js";
import type { StoredArray } from "../../src/zarr/stored-array.js";
import { parseV3Array } from "../../src/zarr/v3/parse-v3.js";
import { type PlanWithCodecs, writePortableV3 } from "../../src/zarr/v3/portable.js";
import { writeV3 } from "../../src/zarr/v3/write-v3.js";
import { storedArray } from "../support/datasets/stored-array.js";

const place = { name: "t", path: "g/t", files: { directory: "/nowhere" } };
const blosc: CodecSpec = { id: "blosc", cname: "lz4", clevel: 5, shuffle: 1, blocksize: 0 };

/** Describes a v2 array in v3. */
function write(changes: Parameters<typeof storedArray>[0] & { readonly fillValue?: JsonValue }) {
  const { fillValue = null, ...rest } = changes;
  const { json, item } = parseFillValue(fillValue, parseDataType(rest.dtype ?? "<f4"));
  const fill = { served: json, item, absentIsServed: true };
  const stored = storedArray({ fill, ...rest });
  const dims = stored.shape.map((_, axis) => `d${axis}`);
  return { stored, ...writeV3(stored, createEncodingPlan(stored, {}), dims, false) };
}

/** Reads a described array as a v3 store would be read. */
function parseAgain(document: JsonObject): StoredArray {
  return parseV3Array(place, parseJson(stringifyJson(document))).array;
}

t.test("a described array means the same when it is read", async (t) => {
  const types: readonly (readonly [string | JsonValue, JsonValue])[] = [
    ...["|b1", "|i1", "|u1", "<i2", ">i2", "<u2", "<i4", ">u4", "<i8", "<u8", "<f2", ">f4", "<f8"].map(
      (type): [string, JsonValue] => [type, type === "|b1" ? false : 1],
    ),
    ["<f8", "NaN"],
    ["<f4", "-Infinity"],
    ["<u8", 2n ** 64n - 1n],
    ["<c8", [1, "NaN"]],
    [">c16", [0, 2]],
    ["<M8[s]", "NaT"],
    ["<M8[25us]", 7],
    [">m8[ns]", -1],
    ["<U4", "äb"],
    [">U2", ""],
    ["|S5", "YWI="],
    ["|V3", "AQID"],
  ];
  for (const [dtype, fillValue] of types) {
    const { stored, document } = write({ dtype: dtype as string, fillValue });
    const read = parseAgain(document);
    t.equal(stringifyJson(read.dataType.zarr), stringifyJson(stored.dataType.zarr), String(dtype));
    t.same(read.fill.item, stored.fill.item, `fill value of ${dtype}`);
    t.same(read.axisOrder, stored.axisOrder);
    t.same(read.chunkShape, stored.chunkShape);
    t.same(read.codecs, stored.codecs);
    t.same(read.dimNames, ["d0", "d1"]);
  }
});

t.test("structured items have the name that all versions of zarr-python know", async (t) => {
  const dtype: JsonValue = [
    ["a", "<i4"],
    ["b", "|S3"],
    ["c", [["x", "<f8"]]],
  ];
  const { stored, document } = write({ dataType: parseDataType(dtype) });
  t.same(document.data_type, {
    name: "structured",
    configuration: {
      fields: [
        ["a", "int32"],
        ["b", { name: "null_terminated_bytes", configuration: { length_bytes: 3 } }],
        ["c", { name: "structured", configuration: { fields: [["x", "float64"]] } }],
      ],
    },
  });
  t.same(parseAgain(document).dataType.zarr, stored.dataType.zarr);
});

t.test("codecs and F order have their names in v3", async (t) => {
  const chains: readonly (readonly CodecSpec[])[] = [
    [],
    [{ id: "gzip", level: 4 }],
    [{ id: "zstd", level: -3 }],
    [{ id: "zlib", level: 1 }],
    [{ id: "lz4", acceleration: 2 }],
    [{ ...blosc, cname: "zstd", shuffle: 2 }],
    [{ id: "shuffle", elementsize: 4 }, blosc],
    [{ id: "bitround", keepbits: 5 }, blosc],
    [
      { id: "fixedscaleoffset", scale: 10, offset: 0, dtype: "<f4", astype: "<i2" },
      { id: "shuffle", elementsize: 2 },
      { id: "bz2", level: 1 },
    ],
    [{ id: "crc32" }],
  ];
  for (const codecs of chains) {
    const compressorCount = ["shuffle", "crc32"].includes(codecs.at(-1)?.id ?? "shuffle") ? 0 : 1;
    const { document } = write({ codecs, compressorCount });
    t.same(parseAgain(document).codecs, codecs, codecs.map(({ id }) => id).join());
  }
  const { document } = write({ axisOrder: [1, 0], codecs: [], compressorCount: 0 });
  t.same(document.codecs, [
    { name: "transpose", configuration: { order: [1, 0] } },
    { name: "bytes", configuration: { endian: "little" } },
  ]);
  t.same(parseAgain(document).axisOrder, [1, 0]);
  t.match(write({ dtype: "|u1", codecs: [{ ...blosc, shuffle: -1 }] }).document.codecs, [
    { name: "bytes" },
    { name: "blosc", configuration: { typesize: 1, shuffle: "bitshuffle" } },
  ]);
});

t.test("texts and byte strings without a fixed length have serializers", async (t) => {
  for (const [id, type] of [
    ["vlen-utf8", "string"],
    ["vlen-bytes", "bytes"],
  ] as const) {
    const { document } = write({ dtype: "|O", codecs: [{ id }, { id: "zstd", level: 1 }], fillValue: 0 });
    t.same(document.data_type, type);
    t.same(document.fill_value, "");
    t.match(document.codecs, [{ name: id }, { name: "zstd" }]);
    t.same(parseAgain(document).codecs, [{ id }, { id: "zstd", level: 1 }]);
  }
});

t.test("what v3 has no name for is refused, by name", async (t) => {
  const cases: readonly (readonly [Parameters<typeof write>[0], RegExp])[] = [
    [{ dtype: "<f16", codecs: [] }, /items of float128/],
    [{ dtype: "|O", codecs: [{ id: "json2" }], compressorCount: 0 }, /objects in json2/],
    [{ codecs: [{ id: "pcodec" }], compressorCount: 1 }, /the codec pcodec/],
    [{ codecs: [blosc, { id: "delta", dtype: "<f4" }], compressorCount: 0 }, /delta behind one on bytes/],
    [
      { dtype: ">i4", codecs: [{ id: "delta", dtype: ">i4" }], compressorCount: 0 },
      /a filter on big-endian values/,
    ],
    [{ dataType: parseDataType([["a", "<i4", [2]]]), codecs: [] }, /fields with a shape/],
    [
      {
        dataType: parseDataType([
          ["a", "<i4"],
          ["b", ">i4"],
        ]),
        codecs: [],
      },
      /one byte order/,
    ],
  ];
  for (const [changes, message] of cases)
    t.throws(() => write(changes), { code: "unsupported", message }, String(message));
});

/** Describes a v2 array in portable v3. */
function writePortable(changes: Parameters<typeof write>[0]) {
  const { stored } = write({ ...changes, codecs: [], compressorCount: 0 });
  const { codecs = stored.codecs, compressorCount = 0 } = changes;
  const array = { ...stored, codecs, compressorCount };
  const planned = createEncodingPlan(array, {});
  const plan: PlanWithCodecs = (asked, replaced) => createEncodingPlan(asked, replaced);
  return { planned, ...writePortableV3(array, planned, ["y", "x"], false, plan) };
}

t.test("portable documents have codecs of the registry only, and keep plans that have them", async (t) => {
  const byteOrder = { name: "bytes", configuration: { endian: "little" } };
  const kept: readonly (readonly CodecSpec[])[] = [
    [],
    [{ id: "gzip", level: 4 }],
    [{ id: "zstd", level: 3 }],
    [{ ...blosc, cname: "zstd" }],
  ];
  for (const codecs of kept) {
    const { plan, planned } = writePortable({ codecs, compressorCount: codecs.length === 0 ? 0 : 1 });
    t.equal(plan, planned.plan);
  }
  const replaced: readonly (readonly CodecSpec[])[] = [
    [{ id: "zlib", level: 4 }],
    [{ id: "shuffle", elementsize: 4 }, blosc],
    [{ id: "lz4", acceleration: 1 }],
    [{ id: "crc32" }],
  ];
  for (const codecs of replaced) {
    const compressorCount = codecs[0]?.id.includes("32") ? 0 : 1;
    const { plan, planned, document } = writePortable({ codecs, compressorCount });
    t.match(document.codecs, [byteOrder, { name: "blosc", configuration: { typesize: 4, cname: "lz4" } }]);
    t.not(plan.id, planned.plan.id);
  }
  t.throws(() => writePortable({ codecs: [{ id: "bz2" }], compressorCount: 1 }), { message: /bz2/ });
  t.match(writePortable({ dtype: ">f4", axisOrder: [1, 0] }).document.codecs, [
    { name: "transpose" },
    { name: "bytes", configuration: { endian: "big" } },
  ]);
});

t.test("portable times are integers with units of CF, and the same plan", async (t) => {
  for (const [dtype, fillValue, expected] of [
    ["<M8[s]", "NaT", { units: "seconds since 1970-01-01", _FillValue: -(2n ** 63n) }],
    ["<M8[ns]", 7, { units: "nanoseconds since 1970-01-01", calendar: "proleptic_gregorian" }],
    ["<m8[h]", null, { units: "hours" }],
  ] as const) {
    const { document, plan, planned } = writePortable({ dtype, fillValue, attrs: { a: 1 } });
    t.equal(document.data_type, "int64");
    t.match(document.attributes, { a: 1, ...expected });
    t.equal(plan, planned.plan);
  }
  t.equal(writePortable({ dtype: "<M8[s]", fillValue: "NaT" }).document.fill_value, -(2n ** 63n));
  for (const dtype of ["<M8[M]", "<M8[25us]", "|V3"])
    t.throws(() => writePortable({ dtype }), { code: "unsupported", message: /no portable name/ }, dtype);
});

t.test("portable texts have no fixed length", async (t) => {
  const { document, plan } = writePortable({
    dtype: ">U4",
    fillValue: "äb",
    codecs: [{ id: "zlib", level: 1 }],
    compressorCount: 1,
  });
  t.match(document, {
    ...{ data_type: "string", fill_value: "äb" },
    codecs: [{ name: "vlen-utf8" }, { name: "blosc" }],
  });
  t.same(
    plan.decode.map(({ codec, decodedByteLength }) => [codec.id, decodedByteLength]),
    [
      ["zlib", 4 * 5 * 16],
      ["fixed-text", null],
    ],
  );
  const ofBytes = writePortable({ dtype: "|S3", fillValue: "YQ==" });
  t.match(ofBytes.document, { data_type: "bytes", fill_value: "" });
  t.notOk(
    ofBytes.plan.absentIsAbsent,
    "absent chunks are filled here, since readers disagree about fill values of bytes",
  );
  t.throws(() => writePortable({ dtype: "|S1" }), { message: /no portable name/ }, "characters");
  t.throws(() => writePortable({ dtype: "<U0" }), { message: /no portable name/ });
});

t.test("stored forms of v3 stay if all of their codecs are portable, those within shards too", async (t) => {
  const shard = (codecs: JsonValue, name = "crc32c"): JsonValue => [
    {
      name: "sharding_indexed",
      configuration: {
        chunk_shape: [2],
        codecs,
        index_codecs: ["bytes", name].map((each) => ({ name: each, configuration: { endian: "little" } })),
      },
    },
  ];
  const describe = (codecs: JsonValue, dataType: JsonValue = "uint8") => {
    const document: JsonObject = {
      ...{ zarr_format: 3, node_type: "array", shape: [4], data_type: dataType },
      fill_value: dataType === "uint8" ? 0 : "",
      ...{ chunk_grid: { name: "regular", configuration: { chunk_shape: [4] } }, dimension_names: ["x"] },
      ...{ chunk_key_encoding: { name: "default" }, codecs },
    };
    const stored = parseAgain(document);
    const planned = createEncodingPlan(stored, {});
    return writePortableV3(stored, planned, ["x"], false, (array, asked) => createEncodingPlan(array, asked));
  };
  const kept = shard([{ name: "bytes" }, { name: "zstd", configuration: { level: 1 } }]);
  t.same(describe(kept).document.codecs, kept);
  const { document } = describe(
    shard([{ name: "bytes" }, { name: "numcodecs.zlib", configuration: { level: 1 } }]),
  );
  t.match(document, {
    chunk_grid: { configuration: { chunk_shape: [2] } },
    codecs: [{ name: "bytes" }, { name: "blosc" }],
  });
  t.match(describe([{ name: "vlen-bytes" }], "variable_length_bytes").document.data_type, "bytes");
});

t.test("the missing-value mark of v2 becomes xarray's attribute", async (t) => {
  const markOf = (changes: Parameters<typeof write>[0]) => {
    const { attributes } = write(changes).document;
    return isJsonObject(attributes) ? attributes._FillValue : "no attributes";
  };
  const base64 = (value: number) => {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleLE(value);
    return bytes.toString("base64");
  };
  t.equal(markOf({ fillValue: null }), undefined);
  t.equal(markOf({ dtype: "<i4", fillValue: -9 }), -9);
  t.equal(markOf({ fillValue: "NaN" }), base64(Number.NaN));
  t.equal(markOf({ fillValue: -9999 }), base64(-9999));
  t.equal(markOf({ fillValue: null, attrs: { _FillValue: 1.5 } }), base64(1.5), "an attribute of its own");
  t.equal(markOf({ dtype: "|S3", fillValue: "YQ==" }), undefined, "xarray could not open it");
  t.equal(markOf({ dtype: "<M8[s]", fillValue: "NaT" }), undefined);
});
