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
