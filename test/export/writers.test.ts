import { writeFile } from "node:fs/promises";
import { tableFromIPC } from "apache-arrow";
import t, { type Test } from "tap";
import { writeArrowStream } from "../../src/export/arrow-writer.js";
import type { DatasetWriter, ExportedVariable, FileBody } from "../../src/export/exported-dataset.js";
import { writeNetcdf } from "../../src/export/netcdf-writer.js";
import { writeNpy } from "../../src/export/npy-writer.js";
import type { TableRows } from "../../src/export/table.js";
import type { ArrayView, DataType, JsonObject, ValueBlock, Values } from "../../src/index.js";
import { elementCount } from "../../src/model/data-tree.js";
import { parseDataType } from "../../src/model/data-type.js";
import { PIECE_BYTES } from "../../src/values/values.js";
import { askPython } from "../support/clients/ask-python.js";
import { clientMissing } from "../support/clients/require-client.js";
import { fakeSnapshot } from "../support/datasets/fake-snapshot.js";

const NEVER = new AbortController().signal;
const ITEMS_OF_BLOCK = 7;

/** Items in this machine's order, as a block of a read. */
function blockOf(dataType: DataType, items: readonly (number | bigint | string)[]): ValueBlock {
  const { kind, itemSize } = dataType;
  const bytes = new Uint8Array(items.length * itemSize);
  const view = new DataView(bytes.buffer);
  for (const [index, item] of items.entries()) {
    const at = index * itemSize;
    if (kind === "f" && itemSize === 8) view.setFloat64(at, Number(item), true);
    else if (kind === "f" && itemSize === 4) view.setFloat32(at, Number(item), true);
    else if (kind === "f") view.setUint16(at, Number(item) === 1.5 ? 0x3e00 : 0, true);
    else if (kind === "S") bytes.set(Buffer.from(String(item)), at);
    else if (kind === "U")
      for (const [i, letter] of [...String(item)].entries())
        view.setUint32(at + 4 * i, letter.codePointAt(0)!, true);
    else if (kind !== "O")
      for (let i = 0; i < itemSize; i++)
        view.setUint8(at + i, Number((BigInt(item) >> BigInt(8 * i)) & 255n));
  }
  const is64 = itemSize === 8 && "iuMm".includes(kind);
  const values = is64 ? BigInt64Array.from(items as bigint[], BigInt) : (items as readonly string[]);
  return { shape: [items.length], dataType, bytes, values };
}

/** Reverses the bytes of each number. */
function swapped({ dataType, bytes, ...block }: ValueBlock): ValueBlock {
  const size = dataType.kind === "U" ? 4 : "SVOb".includes(dataType.kind) ? 1 : dataType.itemSize;
  const turned = bytes.slice();
  for (let at = 0; at < turned.length; at += size) turned.subarray(at, at + size).reverse();
  return { ...block, dataType, bytes: turned, values: undefined };
}

/** A variable of an array that has its items. */
function variable(
  name: string,
  dims: Readonly<Record<string, number>>,
  type: string,
  item: (index: number) => number | bigint | string,
  attrs: JsonObject = {},
): ExportedVariable {
  const shape = Object.values(dims);
  const dataType = parseDataType(type);
  const array = {
    dataType,
    item,
    count: elementCount(shape),
    variable: { path: name },
  } as unknown as ArrayView;
  const source = { array, selection: [], kept: [] };
  return { name, isCoordinate: false, dims: Object.keys(dims), shape, dataType, attrs, source };
}

/** Items that streams began at. */
const begun: number[] = [];

/** Bytes of pieces that streams were asked for. */
const asked: number[] = [];

/** Streams items in blocks of a few, whose memory is written over when the next one is asked for. */
const VALUES = {
  cost: (_array: unknown, _selection: unknown, { pieceBytes }: { readonly pieceBytes: number }) => {
    return { streamBytes: 4 * pieceBytes };
  },
  async *stream(
    _: unknown,
    array: object,
    _selection: unknown,
    { firstItem = 0, byteOrder = "little", pieceBytes = 0 },
  ) {
    begun.push(firstItem);
    asked.push(pieceBytes);
    const { dataType, item, count } = array as {
      dataType: DataType;
      item: (index: number) => number;
      count: number;
    };
    for (let at = firstItem; at < count; at += ITEMS_OF_BLOCK) {
      const items = Array.from({ length: Math.min(ITEMS_OF_BLOCK, count - at) }, (_, i) => item(at + i));
      const made = blockOf(dataType, items);
      const block = byteOrder === "big" ? swapped(made) : made;
      yield block;
      block.bytes.fill(0xee);
    }
  },
} as unknown as Values;

/** Writes variables. */
function write(
  writer: DatasetWriter,
  variables: readonly ExportedVariable[],
  attrs: JsonObject = {},
  unlimited?: string,
): Promise<FileBody> {
  const snapshot = { ...fakeSnapshot("air", {}), unlimited: unlimited === undefined ? [] : [unlimited] };
  const dims = new Map<string, number>();
  return writer({ snapshot, isDecoded: false, attrs, dims, variables }, VALUES, NEVER);
}

async function bytesOf(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const piece of pieces) parts.push(piece.slice());
  return Buffer.concat(parts);
}

/** Checks the length of a file, and that any range of it has the bytes that the whole has there. */
async function checkedBytes(t: Test, file: FileBody): Promise<Buffer> {
  const whole = await bytesOf(file.pieces(undefined, NEVER));
  t.equal(whole.length, file.byteLength, "the length is known before");
  const wrong: string[] = [];
  for (let start = 0; start < whole.length; start += 1 + Math.floor(whole.length / 60)) {
    for (const byteLength of [1, 3, 100, whole.length - start]) {
      const range = { start, byteLength: Math.min(byteLength, whole.length - start) };
      const part = await bytesOf(file.pieces(range, NEVER));
      if (!part.equals(whole.subarray(start, start + range.byteLength))) wrong.push(JSON.stringify(range));
    }
  }
  t.same(wrong, [], "ranges are those of the whole");
  return whole;
}

/** Prints each variable as netCDF-C reads it: type, dimensions, attributes, values. */
const READ_NETCDF = `
import json, sys, netCDF4, numpy as np
out = {}
for path in sys.argv[1:]:
    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        file.set_auto_chartostring(False)
        plain = lambda each: [each.dtype.name, each.tolist()] if isinstance(each, (np.generic, np.ndarray)) else each
        def values(v):
            data = v[...]
            if data.dtype.kind == "S": return [b"".join(row).decode("utf-8") for row in data.reshape(-1, data.shape[-1])]
            return [str(each) for each in data.ravel()]
        out[path.rsplit("/", 1)[1]] = {
            "format": file.data_model,
            "unlimited": [d for d in file.dimensions if file.dimensions[d].isunlimited()],
            "attrs": {k: plain(file.getncattr(k)) for k in file.ncattrs()},
            "variables": {n: [v.dtype if isinstance(v.dtype, str) else v.dtype.str, list(v.dimensions), {k: plain(v.getncattr(k)) for k in v.ncattrs()}, values(v)] for n, v in file.variables.items()},
        }
json.dump(out, sys.stdout)
`;

t.test("netCDF-C reads what is written", { skip: clientMissing("netcdf4") }, async (t) => {
  const dims = { time: 5, y: 3, x: 3 };
  const small = [
    variable("time", { time: 5 }, "<f8", (i) => i / 4, { units: "hours since 2000-01-01" }),
    variable("t2m", dims, "<i2", (i) => i - 20, {
      scale_factor: 0.01,
      valid_range: [-20, 30],
      flags: [1.5, 2],
      long_name: "Temperatur in °C",
      ok: true,
      none: null,
      _FillValue: -32_768,
    }),
    variable("crs", {}, "<i4", () => 7),
    variable("odd", { time: 5, x: 3 }, "|i1", (i) => i - 3),
    variable("mask", { y: 3 }, "|b1", (i) => i % 2),
    variable("name", { y: 3 }, "<U4", (i) => ["Zürich", "Bern", "ab"][i]!.slice(0, 4)),
    variable("code", { y: 3 }, "|S3", (i) => ["abc", "de", "f"][i]!),
    variable("long", { y: 3 }, "|O", (i) => ["Øresund", "x", ""][i]!),
    variable("half", { x: 3 }, "<f2", (i) => (i === 1 ? 1.5 : 0)),
  ];
  const wide = [
    variable("count", { x: 3 }, "<i8", (i) => 2n ** 53n + BigInt(i), { _FillValue: -(2n ** 63n) }),
    variable("byte", { time: 5, x: 3 }, "|u1", (i) => 250 + (i % 6), { missing_value: 255, huge: 2n ** 63n }),
    variable("when", { x: 3 }, "<M8[D]", (i) => BigInt(i)),
  ];
  const attrs = { title: "a piece", Conventions: "CF-1.8", history: ["one", "two"], levels: [1, 2, 3] };
  const files: Record<string, FileBody> = {
    "fixed.nc": await write(writeNetcdf, small, attrs),
    "records.nc": await write(writeNetcdf, small, attrs, "time"),
    "one.nc": await write(writeNetcdf, [variable("odd", { time: 5, x: 3 }, "|i1", (i) => i)], {}, "time"),
    "wide.nc": await write(writeNetcdf, wide, attrs),
    "wide-records.nc": await write(writeNetcdf, wide, {}, "time"),
    "empty.nc": await write(writeNetcdf, [variable("none", { time: 0, x: 3 }, "<f4", () => 0)], {}, "time"),
    "nothing.nc": await write(writeNetcdf, [], { title: "no variables" }),
  };
  const directory = t.testdir();
  for (const [name, file] of Object.entries(files)) {
    await t.test(name, async (t) => {
      await writeFile(`${directory}/${name}`, await checkedBytes(t, file));
    });
  }
  const found = JSON.parse(
    askPython(
      READ_NETCDF,
      null,
      Object.keys(files).map((name) => `${directory}/${name}`),
    ),
  );
  t.equal(found["fixed.nc"].format, "NETCDF3_CLASSIC");
  t.equal(found["wide.nc"].format, "NETCDF3_64BIT_DATA");
  t.same(found["records.nc"].unlimited, ["time"]);
  t.same(found["records.nc"].variables, found["fixed.nc"].variables, "records change nothing that is read");
  t.same(found["fixed.nc"].attrs, {
    ...{ title: "a piece", Conventions: "CF-1.8", history: '["one","two"]', levels: ["int32", [1, 2, 3]] },
  });
  const { variables } = found["fixed.nc"];
  t.same(variables.t2m, [
    "<i2",
    ["time", "y", "x"],
    {
      scale_factor: ["float64", 0.01],
      valid_range: ["int16", [-20, 30]],
      flags: ["float64", [1.5, 2]],
      long_name: "Temperatur in °C",
      ok: ["int32", 1],
      none: "null",
      _FillValue: ["int16", -32_768],
    },
    Array.from({ length: 45 }, (_, i) => String(i - 20)),
  ]);
  t.same(variables.time[3], ["0.0", "0.25", "0.5", "0.75", "1.0"]);
  t.same(variables.crs.slice(1), [[], {}, ["7"]]);
  t.same([variables.mask[2], variables.mask[3]], [{ dtype: "bool" }, ["0", "1", "0"]]);
  const texts = (name: string) => variables[name][3].map((text: string) => text.replace(/\0+$/, ""));
  t.same(texts("name"), ["Züri", "Bern", "ab"]);
  t.same(texts("code"), ["abc", "de", "f"]);
  t.same(texts("long"), ["Øresund", "x", ""]);
  t.same(variables.half[3], ["0.0", "1.5", "0.0"]);
  const wideOnes = found["wide.nc"].variables;
  t.same(wideOnes.count[3], ["9007199254740992", "9007199254740993", "9007199254740994"]);
  t.equal(wideOnes.byte[0].slice(-2), "u1");
  t.same(wideOnes.byte[2].missing_value, ["uint8", 255]);
  t.same(wideOnes.when[2], {
    ...{ units: "days since 1970-01-01", calendar: "proleptic_gregorian" },
    _FillValue: ["int64", Number(-(2n ** 63n))],
  });
  await t.rejects(write(writeNetcdf, [variable("z", {}, "<c8", () => 0)]), { code: "invalid-query" });
});

t.test("a range reads from its first item on, and only the variables in it", async (t) => {
  const variables = ["a", "b"].map((name) => variable(name, { time: 10, x: 1_000 }, "<f4", (i) => i));
  const cases: [string | undefined, number, number[]][] = [
    [undefined, 4 * 500, [500]],
    [undefined, 4 * 10_500, [500]],
    ["time", 4 * 500, [500]],
    ["time", 4 * 1_500, [500]],
    ["time", 4 * 7_900, [3_900, 4_000]],
  ];
  for (const [unlimited, offset, expected] of cases) {
    const file = await write(writeNetcdf, variables, {}, unlimited);
    const start = file.byteLength! - 80_000 + offset;
    begun.length = 0;
    const bytes = await bytesOf(file.pieces({ start, byteLength: 800 }, NEVER));
    t.equal(bytes.readFloatBE(0), expected[0], `${unlimited} ${offset}`);
    t.same(begun.toSorted(), expected);
  }
});

t.test("sizes decide the version", async (t) => {
  const large = (name: string, count: number) => variable(name, { [name]: count }, "<f8", () => 0);
  const versionOf = async (variables: readonly ExportedVariable[]) => {
    const { pieces } = await write(writeNetcdf, variables);
    return (await bytesOf(pieces({ start: 3, byteLength: 1 }, NEVER)))[0];
  };
  t.equal(await versionOf([large("a", 2 ** 20)]), 1);
  t.equal(await versionOf([large("a", 2 ** 28)]), 1, "it begins below 2 GiB");
  t.equal(await versionOf([large("a", 2 ** 28), large("b", 4)]), 2);
  t.equal(await versionOf([large("a", 2 ** 29)]), 5);
});

const READ_NPY = `
import json, sys, numpy as np
print(json.dumps([[a.dtype.str, list(a.shape), [i.decode() if isinstance(i, bytes) else str(i) for i in a.ravel()]] for a in map(np.load, sys.argv[1:])]))
`;

t.test("numpy reads what is written", { skip: clientMissing("netcdf4") }, async (t) => {
  const cases = [
    variable("a", { y: 4, x: 3 }, ">i2", (i) => i - 5),
    variable("b", { x: 3 }, "<U3", (i) => ["äb", "c", "def"][i]!),
    variable("c", {}, "|u1", () => 200),
    variable("d", { x: 2 }, "<M8[D]", (i) => BigInt(i)),
    variable("e", { x: 0 }, "<f4", () => 0),
    variable("f", { x: 2 }, "|O", (i) => ["é", "xyz"][i]!),
  ];
  const directory = t.testdir();
  for (const [index, each] of cases.entries())
    await writeFile(`${directory}/${index}.npy`, await checkedBytes(t, await write(writeNpy, [each])));
  const found = JSON.parse(
    askPython(
      READ_NPY,
      null,
      cases.map((_, index) => `${directory}/${index}.npy`),
    ),
  );
  t.same(found.slice(0, 5), [
    ["<i2", [4, 3], Array.from({ length: 12 }, (_, i) => String(i - 5))],
    ["<U3", [3], ["äb", "c", "def"]],
    ["|u1", [], ["200"]],
    ["<M8[D]", [2], ["1970-01-01", "1970-01-02"]],
    ["<f4", [0], []],
  ]);
  t.equal(found[5][0], "|S3");
  await t.rejects(write(writeNpy, cases.slice(0, 2)), {
    message: "Expected one variable (var=) for npy, received 'a,b'",
  });
});

t.test("Arrow reads what is written", async (t) => {
  const types = {
    i: "<i4",
    u: "|u1",
    n: "<i8",
    f: "<f4",
    d: "<f8",
    b: "|b1",
    s: "<U2",
    m: "<M8[D]",
    ns: "<M8[ns]",
    dt: "<m8[s]",
  };
  const nat = -(2n ** 63n);
  const columns = Object.entries(types).map(([name, type]) => ({ name, dataType: parseDataType(type) }));
  async function* rows(): AsyncGenerator<TableRows> {
    for (const rowCount of [3, 0, 10]) {
      const items = (make: (i: number) => number | bigint | string) =>
        Array.from({ length: rowCount }, (_, i) => make(i));
      const made = [
        ...[
          items((i) => i - 1),
          items((i) => 250 + i),
          items((i) => 2n ** 60n + BigInt(i)),
          items((i) => (i === 1 ? Number.NaN : i / 2)),
        ],
        ...[
          items((i) => i / 3),
          items((i) => i % 2),
          items((i) => `ü${i}`),
          items((i) => (i === 2 ? nat : BigInt(i))),
        ],
        ...[items((i) => BigInt(i) * 1_000_000_000n), items((i) => BigInt(i))],
      ];
      yield { rowCount, columns: made.map((each, index) => blockOf(columns[index]!.dataType, each)) };
    }
  }
  const table = tableFromIPC(await bytesOf(writeArrowStream(columns, rows())));
  t.equal(table.numRows, 13);
  t.same(
    table.schema.fields.map(({ name, type }) => `${name} ${type}`),
    [
      ...["i Int32", "u Uint8", "n Int64", "f Float32", "d Float64", "b Bool", "s Utf8"],
      ...["m Timestamp<SECOND>", "ns Timestamp<NANOSECOND>", "dt Duration<SECOND>"],
    ],
  );
  const column = (name: string) => [...(table.getChild(name) ?? [])].slice(0, 4);
  t.same(column("i"), [-1, 0, 1, -1]);
  t.same(column("u"), [250, 251, 252, 250]);
  t.same(column("n")[2], 2n ** 60n + 2n);
  t.same(column("f"), [0, Number.NaN, 1, 0]);
  t.same(column("b"), [false, true, false, false]);
  t.same(column("s"), ["ü0", "ü1", "ü2", "ü0"]);
  t.same(
    column("m").map((each) => (each === null ? null : Number(each))),
    [0, 86_400_000, null, 0],
  );
  t.throws(() => writeArrowStream([{ name: "z", dataType: parseDataType("<c8") }], rows()), {
    code: "invalid-query",
  });
});

t.test("variables with records share the memory of what is made ahead", async (t) => {
  const held: (number | undefined)[] = [];
  for (const count of [1, 2, 40]) {
    const variables = Array.from({ length: count }, (_, n) =>
      variable(`v${n}`, { time: 5, x: 3 }, "<f4", (i) => i + n),
    );
    const file = await write(writeNetcdf, variables, {}, "time");
    asked.length = 0;
    await bytesOf(file.pieces(undefined, NEVER));
    t.equal(asked.length, count);
    t.equal(Math.round(asked.reduce((sum, each) => sum + each, 0)), PIECE_BYTES);
    held.push(file.heldByteLength);
  }
  t.ok(held[2]! - held[0]! < 10_000, `${held.join(", ")}: only headers differ`);
});
