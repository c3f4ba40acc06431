import { readFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import type { FileArray } from "../../../src/formats/file-index.js";
import { netcdf3Format } from "../../../src/formats/netcdf3/netcdf3-format.js";
import { type JsonObject, type JsonValue, setEntry } from "../../../src/json/json-value.js";
import { parseJson } from "../../../src/json/parse-json.js";
import { stringifyJson } from "../../../src/json/stringify-json.js";
import { PACKAGE_ROOT } from "../../client-generation.js";
import { memoryBlocks, readItems } from "./memory-blocks.js";

/** What netCDF4-python reads from a file; see `test/fixtures/write_netcdf3_truth.py`. */
interface Truth {
  readonly name: string;
  readonly attrs: JsonObject;
  readonly variables: Readonly<Record<string, VariableTruth>>;
}

interface VariableTruth {
  readonly dims: readonly string[];
  readonly shape: readonly number[];
  readonly dtype: string;
  readonly attrs: JsonObject;
  /** Big-endian, as base64. */
  readonly items: string;
}

const FOLDER = join(PACKAGE_ROOT, "test", "fixtures", "netcdf3");
const lines = readFileSync(join(FOLDER, "expected.jsonl"), "utf8").trim().split("\n");

for (const line of lines) {
  const { name, attrs, variables } = parseJson(line) as unknown as Truth;
  t.test(`what netCDF-C reads from ${name}.nc is served`, async (t) => {
    const file = memoryBlocks(readFileSync(join(FOLDER, `${name}.nc`)));
    const { groups, refused, warnings } = await netcdf3Format.readIndex(file);
    const root = groups[0];
    t.same({ groups: groups.length, refused, warnings }, { groups: 1, refused: [], warnings: [] });
    t.equal(textOf(root?.attrs ?? {}), textOf(attrs));
    t.same(
      root?.arrays.map((array) => array.name),
      Object.keys(variables).sort(),
    );
    for (const array of root?.arrays ?? []) {
      const truth = variables[array.name] as VariableTruth;
      t.same([array.dimNames, array.shape, array.dtype], [truth.dims, truth.shape, truth.dtype], array.name);
      t.equal(textOf(withMark(array)), textOf(truth.attrs), `attributes of ${array.name}`);
      const items = Buffer.from(await readItems(file, array)).toString("base64");
      t.equal(items, truth.items, `items of ${array.name}`);
    }
  });
}

/** Attributes with the mark of missing values, which is served as the fill value. */
function withMark({ attrs, fill, dtype }: FileArray): JsonObject {
  if (fill.served === null) return attrs;
  const mark = dtype === "|S1" ? Buffer.from(String(fill.served), "base64").toString() : fill.served;
  return { ...attrs, _FillValue: mark };
}

/** JSON of attributes in the order of their names. */
function textOf(attrs: JsonObject): string {
  const sorted: Record<string, JsonValue> = {};
  for (const name of Object.keys(attrs).sort()) setEntry(sorted, name, attrs[name] as JsonValue);
  return stringifyJson(sorted);
}
