import t from "tap";
import { type CfDecoding, cfDecodingOf } from "../../src/cf/decoded-type.js";
import { decodeNumbers } from "../../src/codec/items/decode-numbers.js";
import { itemValues } from "../../src/codec/items/item-values.js";
import type { JsonObject, JsonValue } from "../../src/json/json-value.js";
import { parseJson } from "../../src/json/parse-json.js";
import { type DataType, parseDataType } from "../../src/model/data-type.js";
import { encodeFillItem } from "../../src/model/fill-value.js";
import { formatDecoded } from "../../src/pages/format-items.js";
import { askPython } from "../support/clients/ask-python.js";
import { clientMissing } from "../support/clients/require-client.js";

/**
 * Writes a Zarr store with an array for each combination of type, fill value and attributes. Prints each one's documents, its stored
 * numbers, and what xarray makes of it: its type, and its values one by one.
 */
const SCRIPT = `
import itertools, json, sys
import numpy as np, xarray as xr, zarr
root = zarr.open_group(sys.argv[1], mode="w")
root.attrs.put({})
PACKED = [{}, {"scale_factor": 0.01}, {"add_offset": 273.15}, {"scale_factor": 0.01, "add_offset": 273.15},
          {"scale_factor": float(np.float32(0.01)), "add_offset": float(np.float32(273.15))}, {"scale_factor": 1, "add_offset": 0}]
TIMES = [{"units": "hours since 2000-01-01"}, {"units": "days since 1850-01-01", "calendar": "noleap"}, {"units": "days since 0001-01-01"},
         {"units": "days since 2000-01-01", "calendar": "proleptic_gregorian"}, {"units": "days since 2000-01-01", "calendar": "360_day"},
         {"units": "hours"}, {"units": "days"}, {"units": "K"}, {"units": "hours since 2000-01-01", "scale_factor": 0.5}]
cases = []
for dtype in ["i1", "u1", "<i2", ">i2", "<u2", "<i4", "<u4", "<i8", "<f2", "<f4", ">f4", "<f8"]:
    kind = np.dtype(dtype).kind
    fills = [None, 3, 0] + ([float("nan")] if kind == "f" else []) + ([-1] if kind == "i" else [])
    unsigned = [{}, {"_Unsigned": "true"}, {"_Unsigned": "false"}] if kind in "iu" else [{}]
    others = [{}, {"missing_value": 4}, {"missing_value": [4, 5]}]
    for fill, packing, sign, other in itertools.product(fills, PACKED, unsigned, others):
        cases.append((dtype, fill, {**packing, **sign, **other}))
    for fill, time in itertools.product([None, 3], TIMES):
        cases.append((dtype, fill, time))
    cases.append((dtype, None, {"_FillValue": 4}))
cases += [("i1", None, {"dtype": "bool"}), ("<U3", None, {}), ("<U3", "x", {}), ("S3", None, {}), ("S3", None, {"_Encoding": "utf-8"}),
          ("bool", None, {}), ("bool", False, {}), ("<c8", None, {})]
for index, (dtype, fill, attrs) in enumerate(cases):
    stored = np.array([1, 100, 3, 4, 5, 0, 255 if dtype == "u1" else -1 if np.dtype(dtype).kind in "if" else 2]).astype(dtype)
    array = root.create_dataset(str(index), shape=stored.shape, dtype=dtype, fill_value=fill, chunks=stored.shape)
    array[...] = stored
    array.attrs.put({"_ARRAY_DIMENSIONS": ["x"], **attrs})
dataset = xr.open_zarr(sys.argv[1], consolidated=False, chunks=None)
answers = []
for index, (dtype, fill, attrs) in enumerate(cases):
    decoded = dataset[str(index)]
    values = None
    if decoded.dtype.kind in "iuf": values = [str(item) for item in decoded.values]
    numbers = root[str(index)][...].tolist() if np.dtype(dtype).kind in "iuf" else []
    answers.append([json.loads(root.store[f"{index}/.zarray"]), attrs, numbers, str(decoded.dtype), values])
json.dump(answers, sys.stdout)
`;

/** Numbers as a worker decodes them. */
function decoded(numbers: readonly number[], type: DataType, { numbers: decoding }: CfDecoding) {
  if (decoding === undefined) return numbers;
  const items = Buffer.concat(numbers.map((number) => encodeFillItem(number, type)));
  const { kind, itemSize } = decoding.to;
  const target = new Uint8Array(numbers.length * itemSize);
  decodeNumbers(items, type, decoding, target);
  return Array.from(itemValues(target, parseDataType(`<${kind}${itemSize}`)) as ArrayLike<number>);
}

t.test("types and values are those that xarray decodes", { skip: clientMissing("xarray") }, (t) => {
  const text = askPython(SCRIPT, null, [t.testdir()]);
  const answers = parseJson(text) as unknown as readonly [
    { readonly dtype: JsonValue; readonly fill_value: JsonValue },
    JsonObject,
    readonly number[],
    string,
    readonly string[] | null,
  ][];
  t.ok(answers.length > 1_000);
  const wrong: unknown[] = [];
  for (const [document, attrs, stored, dtype, values] of answers) {
    const type = parseDataType(document.dtype);
    const fill = document.fill_value;
    const withoutDates = cfDecodingOf(type, attrs, fill);
    const dates = withoutDates.time === "date" ? formatDecoded(stored, withoutDates, attrs) : [];
    const decoding = cfDecodingOf(type, attrs, fill, [dates[0] ?? "", dates.at(-1) ?? ""]);
    const isMet = decoding.dtype === dtype;
    const shown =
      values && decoding.time === undefined
        ? formatDecoded(decoded(stored, type, decoding), decoding, attrs)
        : undefined;
    if (!isMet || (shown !== undefined && values?.join() !== shown.join()))
      wrong.push([document.dtype, fill, attrs, [decoding.dtype, dtype], shown, values]);
  }
  t.strictSame(wrong.slice(0, 10), []);
  t.end();
});

t.test("dates that datetime64[ns] cannot hold are objects", (t) => {
  const time = parseDataType("<i8");
  const attrs = { units: "days since 0001-01-01" };
  for (const [dates, dtype] of [
    [["1678-01-01T00:00:00", "2261-12-31"], "datetime64[ns]"],
    [["0001-01-01T00:00:00"], "object"],
    [["-0044-03-15"], "object"],
    [["NaT", "2262-01-01"], "object"],
  ] as const)
    t.equal(cfDecodingOf(time, attrs, null, dates).dtype, dtype, dates.join());
  t.end();
});
