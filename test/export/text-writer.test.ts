import t from "tap";
import type { NumericArray } from "../../src/codec/items/item-values.js";
import type { DatasetWriter, ExportedDataset, ExportedVariable } from "../../src/export/exported-dataset.js";
import { tableColumns, tableRows, withDatetimes } from "../../src/export/table.js";
import writeText from "../../src/export/text-format.js";
import { writeCsv, writeJson } from "../../src/export/text-writer.js";
import type { DataType } from "../../src/model/data-type.js";
import { parseDataType } from "../../src/model/data-type.js";
import type { AxisSelection, ValueBlock, Values } from "../../src/values/values.js";
import { fakeSnapshot } from "../support/datasets/fake-snapshot.js";

type Items = NumericArray | readonly string[];
const NEVER = new AbortController().signal;
const SNAPSHOT = fakeSnapshot("air", {});

function variable(
  name: string,
  dims: readonly string[],
  shape: readonly number[],
  type: string,
  values: Items,
  more: Partial<ExportedVariable> = {},
): ExportedVariable & { readonly values: Items } {
  const dataType = parseDataType(type);
  const array = fakeSnapshot("one", { variables: { [name]: { dims, shape, type: dataType } } }).arrays.get(
    name,
  )!;
  const source = {
    array: Object.assign(array, { values }),
    selection: shape.map((count) => ({ begin: 0, count, step: 1 })),
    kept: [...shape.keys()],
  };
  return {
    name,
    isCoordinate: false,
    dims,
    shape,
    dataType,
    attrs: {},
    source,
    values,
    ...more,
  };
}

function planOf(
  dims: Readonly<Record<string, number>>,
  variables: readonly ExportedVariable[],
  more: Partial<ExportedDataset> = {},
): ExportedDataset {
  return {
    snapshot: SNAPSHOT,
    isDecoded: true,
    attrs: {},
    dims: new Map(Object.entries(dims)),
    variables,
    ...more,
  };
}

/** Values in memory. Streams come in pieces of a few items; modules run in this thread. */
function valuesInMemory(pieceItems: number, reads: string[] = []): Values {
  const itemsOf = (
    array: { readonly values?: Items },
    selection: readonly AxisSelection[],
    shape: readonly number[],
  ) => {
    const lists = selection.map((each) =>
      "indexes" in each
        ? Array.from(each.indexes)
        : Array.from({ length: each.count }, (_, i) => each.begin + i * each.step),
    );
    let places = [0];
    for (const [axis, list] of lists.entries())
      places = places.flatMap((place) => list.map((index) => place * shape[axis]! + index));
    return places.map((place) => array.values![place]!);
  };
  const blockOf = (
    items: readonly (number | bigint | string)[],
    like: Items,
    dataType: DataType,
  ): ValueBlock => {
    if (Array.isArray(like))
      return { shape: [items.length], dataType, bytes: new Uint8Array(), values: items as string[] };
    const values = (like.constructor as unknown as { from(list: unknown): NumericArray }).from(items);
    return { shape: [items.length], dataType, bytes: new Uint8Array(values.buffer as ArrayBuffer), values };
  };
  const values: Pick<Values, "read" | "stream"> = {
    async read(_, array, selection) {
      const { shape, dataType, name } = array.variable;
      reads.push(
        `${name} ${selection.map((each) => ("indexes" in each ? [...Array.from(each.indexes)] : `${each.begin}+${each.count}`)).join()}`,
      );
      return blockOf(
        itemsOf(array as object, selection, shape),
        (array as unknown as { values: Items }).values,
        dataType,
      );
    },
    async *stream(_, array, selection) {
      const items = itemsOf(array as object, selection, array.variable.shape);
      for (let at = 0; at < items.length; at += pieceItems)
        yield blockOf(
          items.slice(at, at + pieceItems),
          (array as unknown as { values: Items }).values,
          array.variable.dataType,
        );
    },
  };
  const run = async (_: unknown, task: unknown) =>
    writeText(structuredClone(task) as Parameters<typeof writeText>[0]);
  return { ...values, run } as unknown as Values;
}

async function textOf(write: DatasetWriter, dataset: ExportedDataset, values: Values): Promise<string> {
  const { pieces } = await write(dataset, values, NEVER);
  const parts: Uint8Array[] = [];
  for await (const piece of pieces(undefined, NEVER)) parts.push(piece);
  return Buffer.concat(parts).toString();
}

const DAYS = { units: "days since 2000-01-01", calendar: "noleap" };
const time = variable("time", ["time"], [2], "<f8", Float64Array.of(58, 59.5), {
  isCoordinate: true,
  attrs: DAYS,
});
const lat = variable("lat", ["lat"], [3], "<f4", Float32Array.of(0.1, 1, Number.NaN), { isCoordinate: true });
const t2m = variable(
  "t2m",
  ["time", "lat"],
  [2, 3],
  "<f8",
  Float64Array.of(1, 2.5, -0, Number.NaN, Number.POSITIVE_INFINITY, 1e-7),
);
const turned = variable(
  "turned",
  ["lat", "time"],
  [3, 2],
  "<i8",
  BigInt64Array.of(0n, 1n, 2n, 3n, 4n, 2n ** 60n),
);
const name = variable("name", ["lat"], [3], "<U3", ['a"b', "c,d", ""]);
const flag = variable("flag", [], [], "|b1", Uint8Array.of(1));
const PLAN = planOf({ time: 2, lat: 3 }, [time, lat, t2m, turned, name, flag]);

t.test("CSV is the table, with values repeated in each row", async (t) => {
  t.equal(
    await textOf(writeCsv, PLAN, valuesInMemory(2)),
    [
      "time,lat,t2m,turned,name,flag",
      '2000-02-28T00:00:00,0.1,1.0,0,"a""b",True',
      '2000-02-28T00:00:00,1.0,2.5,2,"c,d",True',
      "2000-02-28T00:00:00,,-0.0,4,,True",
      '2000-03-01T12:00:00,0.1,,1,"a""b",True',
      '2000-03-01T12:00:00,1.0,inf,3,"c,d",True',
      "2000-03-01T12:00:00,,1e-07,1152921504606846976,,True",
      "",
    ].join("\n"),
  );
  const stored = await textOf(writeCsv, { ...PLAN, isDecoded: false }, valuesInMemory(2));
  t.match(stored, "\n58.0,0.1,1.0,0,");
});

t.test("dimensions without labels are columns of indexes", async (t) => {
  const plan = planOf({ x: 3 }, [variable("v", ["x"], [3], "|i1", Int8Array.of(5, 6, 7))]);
  t.equal(await textOf(writeCsv, plan, valuesInMemory(2)), "x,v\n0,5\n1,6\n2,7\n");
  const point = planOf({}, [variable("v", [], [], "|i1", Int8Array.of(5))]);
  t.equal(await textOf(writeCsv, point, valuesInMemory(2)), "v\n5\n");
  const empty = planOf({}, [variable("v", [], [], "<U3", [""])]);
  t.equal(await textOf(writeCsv, empty, valuesInMemory(2)), 'v\n""\n', "a line that readers do not skip");
});

t.test("JSON is Dataset.to_dict() wherever pieces are cut", async (t) => {
  const expected = {
    coords: {
      time: { dims: ["time"], attrs: {}, data: ["2000-02-28T00:00:00", "2000-03-01T12:00:00"] },
      lat: { dims: ["lat"], attrs: {}, data: [Math.fround(0.1), 1, null] },
    },
    attrs: {},
    dims: { time: 2, lat: 3 },
    data_vars: {
      t2m: {
        dims: ["time", "lat"],
        attrs: {},
        data: [
          [1, 2.5, -0],
          [null, null, 1e-7],
        ],
      },
      turned: {
        dims: ["lat", "time"],
        attrs: {},
        data: [
          [0, 1],
          [2, 3],
          [4, "1152921504606846976"],
        ],
      },
      name: { dims: ["lat"], attrs: {}, data: ['a"b', "c,d", ""] },
      flag: { dims: [], attrs: {}, data: true },
    },
  };
  for (const pieceItems of [1, 2, 3, 4, 100]) {
    const text = await textOf(writeJson, PLAN, valuesInMemory(pieceItems));
    t.strictSame(JSON.parse(text), expected, `${pieceItems}`);
    t.match(text, "[[1.0,2.5,-0.0],", "floats stay floats in Python");
  }
  const stored = JSON.parse(await textOf(writeJson, { ...PLAN, isDecoded: false }, valuesInMemory(2)));
  t.strictSame(stored.coords.time, { dims: ["time"], attrs: DAYS, data: [58, 59.5] });
  const empty = planOf({ x: 0, y: 2 }, [variable("v", ["y", "x"], [2, 0], "|i1", Int8Array.of())]);
  t.strictSame(JSON.parse(await textOf(writeJson, empty, valuesInMemory(2))).data_vars.v.data, [[], []]);
});

t.test("a large table is read in boxes, and coordinates of a box once", async (t) => {
  const shape = [3, 1_000, 1_000];
  const dims = { time: 3, y: 1_000, x: 1_000 };
  const big = variable(
    "big",
    ["time", "y", "x"],
    shape,
    "|u1",
    Uint8Array.from({ length: 3_000_000 }, (_, i) => i % 251),
  );
  const x = variable(
    "x",
    ["x"],
    [1_000],
    "<i2",
    Int16Array.from({ length: 1_000 }, (_, i) => i),
    { isCoordinate: true },
  );
  const reads: string[] = [];
  const plan = planOf(dims, [x, big]);
  let rows = 0;
  let largest = 0;
  for await (const { rowCount, columns } of tableRows(
    plan,
    tableColumns(plan),
    valuesInMemory(1, reads),
    NEVER,
  )) {
    const [times, ys, xs, values] = columns.map((column) => column.values as NumericArray);
    for (const row of [0, rowCount - 1]) {
      const item = rows + row;
      t.same([times![row], ys![row], xs![row]].map(Number), [
        Math.floor(item / 1e6),
        Math.floor(item / 1e3) % 1e3,
        item % 1e3,
      ]);
      t.equal(values![row], item % 251);
    }
    rows += rowCount;
    largest = Math.max(largest, rowCount);
  }
  t.equal(rows, 3_000_000);
  t.ok(largest <= 65_536);
  t.equal(reads.filter((read) => read.startsWith("x ")).length, 1);
  t.equal(reads.filter((read) => read.startsWith("big ")).length, 9);
});

t.test("an error while values are read ends the text with it", async (t) => {
  const values = { ...valuesInMemory(2), read: async () => Promise.reject(new Error("gone")) };
  await t.rejects(textOf(writeCsv, PLAN, values), { message: "gone" });
});

t.test("dates are datetime64 in tables that have it", async (t) => {
  const standard = { ...time, attrs: { units: "hours since 2000-01-01" } };
  const plan = planOf({ time: 2 }, [standard]);
  const datesOf = (own: ExportedDataset) =>
    withDatetimes(own, tableColumns(own)[0]!, valuesInMemory(2), NEVER);
  const columns = [await datesOf(plan)];
  t.equal(columns[0]?.dataType.numpyName, "datetime64[us]");
  for await (const rows of tableRows(plan, columns, valuesInMemory(2), NEVER))
    t.same(rows.columns[0]?.values, BigInt64Array.of(946_893_600_000_000n, 946_899_000_000_000n));
  for (const [units, calendar, items, type] of [
    ["days since 1582-10-14", "proleptic_gregorian", [0], "datetime64[us]"],
    ["days since 1582-10-15", "standard", [0, 1], "datetime64[us]"],
    ["days since 1582-10-15", "standard", [1, -1], "object"],
    ["days since 0001-01-01", "gregorian", [Number.NaN], "datetime64[us]"],
    ["days since 1970-01-01", "standard", [106_751_991], "datetime64[us]"],
    ["days since 1970-01-01", "standard", [106_751_992], "object"],
    ["nanoseconds since 1970-01-01", "standard", [1, 2 ** 62], "datetime64[ns]"],
    ["nanoseconds since 1970-01-01", "standard", [2 ** 63], "object"],
    ["days since 2000-01-01", "noleap", [0], "object"],
    ["days since 2000-01-01", "julian", [0], "object"],
  ] as const) {
    const numbers = Float64Array.from(items);
    const block = {
      shape: [items.length],
      dataType: time.dataType,
      bytes: new Uint8Array(numbers.buffer),
      values: numbers,
    };
    const dated = { ...time, attrs: { units, calendar }, shape: [items.length], source: { block } };
    const column = await datesOf(planOf({ time: items.length }, [dated]));
    t.equal(column.dataType.numpyName, type, `${items.join()} ${units}, ${calendar}`);
  }
});
