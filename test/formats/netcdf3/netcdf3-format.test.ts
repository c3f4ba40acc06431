import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { LosslessNumber } from "lossless-json";
import t, { type Test } from "tap";
import { createRandom } from "../../../bench/random.js";
import { ZpublishError } from "../../../src/errors.js";
import type { FileBlocks } from "../../../src/formats/file-format.js";
import type { FileArray, FileIndex } from "../../../src/formats/file-index.js";
import { netcdf3Format } from "../../../src/formats/netcdf3/netcdf3-format.js";
import { type JsonObject, type JsonValue, setEntry } from "../../../src/json/json-value.js";
import { parseJson } from "../../../src/json/parse-json.js";
import { stringifyJson } from "../../../src/json/stringify-json.js";
import {
  CDF_TYPES,
  type CdfContent,
  type CdfType,
  type CdfVariable,
  cdfFile,
} from "../../support/cdf-file.js";
import { PACKAGE_ROOT } from "../../support/clients/client-generation.js";
import { effort } from "../../support/effort.js";
import { memoryBlocks } from "../memory-blocks.js";
import { readArray } from "../read-array.js";

const TYPES = Object.keys(CDF_TYPES) as CdfType[];
const DTYPES: Readonly<Record<CdfType, string>> = {
  byte: "|i1",
  char: "|S1",
  short: ">i2",
  int: ">i4",
  float: ">f4",
  double: ">f8",
  ubyte: "|u1",
  ushort: ">u2",
  uint: ">u4",
  int64: ">i8",
  uint64: ">u8",
};

function bytesOf(length: number, seed = 1): Uint8Array {
  const random = createRandom(seed);
  return Uint8Array.from({ length }, () => random() * 256);
}

function indexOf(content: CdfContent): Promise<FileIndex> {
  return netcdf3Format.readIndex(memoryBlocks(cdfFile(content)));
}

const readItems = (file: FileBlocks, array: FileArray) => readArray(file, array, netcdf3Format.makeChunk);

function arraysOf(index: FileIndex): ReadonlyMap<string, FileArray> {
  return new Map(index.groups[0]?.arrays.map((array) => [array.name, array]));
}

async function assertItems(t: Test, content: CdfContent): Promise<void> {
  const file = memoryBlocks(cdfFile(content));
  const arrays = arraysOf(await netcdf3Format.readIndex(file));
  t.equal(arrays.size, content.variables.length);
  for (const { name, type, bytes } of content.variables) {
    const array = arrays.get(String(name)) as FileArray;
    t.equal(array.dtype, DTYPES[type]);
    t.ok(Buffer.from(await readItems(file, array)).equals(bytes), `the items of ${name}`);
  }
}

const dimensions = [
  { name: "time", length: 0 },
  { name: "x", length: 3 },
  { name: "y", length: 5 },
];

/** A variable of a shape, with items by chance. */
function variable(
  name: string,
  type: CdfType,
  numbers: readonly number[],
  recordCount = 0,
  all: readonly { readonly length: number | bigint }[] = dimensions,
): CdfVariable {
  const shape = numbers.map((number) => Number(all[number]?.length) || recordCount);
  const items = shape.reduce((product, length) => product * length, 1);
  return { name, type, dimensions: numbers, bytes: bytesOf(items * CDF_TYPES[type].itemSize, name.length) };
}

const content: fc.Arbitrary<CdfContent> = fc
  .record({
    version: fc.constantFrom<(1 | 2 | 5)[]>(1, 2, 5),
    lengths: fc.array(fc.integer({ min: 1, max: 6 }), { maxLength: 4 }),
    recordCount: fc.nat(5),
    gap: fc.constantFrom(0, 4, 512),
    variables: fc.array(
      fc.record({
        type: fc.constantFrom(...TYPES),
        hasRecords: fc.boolean(),
        axes: fc.array(fc.nat(3), { maxLength: 3 }),
        attributes: fc.array(fc.tuple(fc.constantFrom(...TYPES), fc.nat(5)), { maxLength: 3 }),
      }),
      { maxLength: 5 },
    ),
  })
  .map(({ version, lengths, recordCount, gap, variables }) => {
    const all = [{ name: "time", length: 0 }, ...lengths.map((length, i) => ({ name: `d${i}`, length }))];
    return {
      version,
      dimensions: all,
      recordCount,
      gap,
      variables: variables.map(({ type, hasRecords, axes, attributes }, i) => ({
        ...variable(
          `v${i}`,
          type,
          [
            ...(hasRecords ? [0] : []),
            ...axes.filter((axis) => axis < lengths.length).map((axis) => axis + 1),
          ],
          recordCount,
          all,
        ),
        attributes: attributes.map(([type, count], j) => ({
          name: `a${j}`,
          type,
          bytes: bytesOf(count * CDF_TYPES[type].itemSize, j),
        })),
      })),
    };
  });

t.test("every item of every variable is read, whatever a file has", async (t) => {
  await fc.assert(
    fc.asyncProperty(content, async (content) => {
      const file = memoryBlocks(cdfFile(content));
      const index = await netcdf3Format.readIndex(file);
      const arrays = arraysOf(index);
      if (arrays.size !== content.variables.length) return false;
      for (const { name, bytes, dimensions, attributes } of content.variables) {
        const array = arrays.get(String(name)) as FileArray;
        if (!Buffer.from(await readItems(file, array)).equals(bytes)) return false;
        if (array.dimNames.length !== dimensions.length) return false;
        if (Object.keys(array.attrs).length !== attributes?.length) return false;
      }
      return true;
    }),
    { numRuns: effort(3000) },
  );
  t.pass();
});

t.test("the version is recognized by the first bytes", async (t) => {
  for (const [version, format] of [
    [1, "NetCDF-3"],
    [2, "NetCDF-3 (64-bit offset)"],
    [5, "NetCDF-3 (64-bit data)"],
  ] as const) {
    const file = cdfFile({ version, dimensions, variables: [] });
    t.ok(netcdf3Format.recognizes(file));
    t.equal((await netcdf3Format.readIndex(memoryBlocks(file))).format, format);
  }
  for (const head of ["", "CDF", "CDF\x03", "CDF\x04", "cdf\x01", "\x89HDF\r\n\x1a\n"])
    t.notOk(netcdf3Format.recognizes(Buffer.from(head, "latin1")), head);
});

t.test("values of attributes are what netCDF4-python reads", async (t) => {
  const numbers: readonly (readonly [CdfType, hex: string, value: unknown])[] = [
    ["byte", "ff", -1],
    ["byte", "807f", [-128, 127]],
    ["short", "fffe", -2],
    ["int", "7fffffff", 2 ** 31 - 1],
    ["float", "3f800000", new LosslessNumber("1.0")],
    ["float", "3f0000007fc00000ff800000", [0.5, Number.NaN, Number.NEGATIVE_INFINITY]],
    ["double", "7e37e43c8800759c", 1e300],
    ["double", "80000000000000003ee4f8b588e368f1", [new LosslessNumber("-0.0"), new LosslessNumber("1e-05")]],
    ["ubyte", "ff", 255],
    ["ushort", "ffff", 65535],
    ["uint", "ffffffff", 2 ** 32 - 1],
    ["int64", "80000000000000000000000000000005", [-(2n ** 63n), 5]],
    ["uint64", "ffffffffffffffff", 2n ** 64n - 1n],
    ["double", "", []],
  ];
  const texts: readonly (readonly [string | Buffer, string | Buffer, name: string, value: string])[] = [
    ["text", "Überschwemmung\0", "text", "Überschwemmung"],
    ["null", "a\0b\0", "null", "ab"],
    ["empty", "", "empty", ""],
    ["broken", Buffer.of(0x61, 0xff, 0x62), "broken", "a\ufffdb"],
    ["\ufeffmark", "\ufeffmark", "\ufeffmark", "\ufeffmark"],
    [Buffer.from("grün", "latin1"), "Latin-1 name", "grün", "Latin-1 name"],
    ["__proto__", "own", "__proto__", "own"],
    ["cut\0rest", "name", "cut", "name"],
    ["text", "second of that name", "text", "Überschwemmung"],
  ];
  const attributes = [
    ...numbers.map(([type, hex]) => ({ name: type + hex, type, bytes: Buffer.from(hex, "hex") })),
    ...texts.map(([name, text]) => ({ name, type: "char" as const, bytes: Buffer.from(text) })),
  ];
  const index = await indexOf({ version: 5, dimensions, variables: [], attributes });
  t.strictSame(Object.entries(index.groups[0]?.attrs ?? {}), [
    ...numbers.map(([type, hex, value]) => [type + hex, value]),
    ...texts.slice(0, -1).map(([_name, _text, name, value]) => [name, value]),
  ]);
});

t.test("_FillValue is served as the fill value if it has the type of its variable", async (t) => {
  const cases: readonly (readonly [
    CdfType,
    CdfType,
    hex: string,
    served: JsonValue,
    attribute?: JsonValue,
  ])[] = [
    ["short", "short", "fffe", -2],
    ["char", "char", "2d", "LQ=="],
    ["uint64", "uint64", "ffffffffffffffff", 2n ** 64n - 1n],
    ["short", "int", "00000009", null, 9],
    ["short", "short", "00010002", null, [1, 2]],
    ["float", "float", "", null, []],
    ["short", "float", "7fc00000", null],
  ];
  const variables = cases.map(([type, markType, hex], number) => ({
    ...variable(`v${number}`, type, [1]),
    attributes: [
      { name: "_FillValue", type: markType, bytes: Buffer.from(hex, "hex") },
      { name: "units", type: "char" as const, bytes: Buffer.from("m") },
    ],
  }));
  const unmarked = variable("unmarked", "float", [1]);
  const arrays = arraysOf(await indexOf({ version: 5, dimensions, variables: [...variables, unmarked] }));
  const of = (name: string) => {
    const { fill, attrs } = arrays.get(name) as FileArray;
    return { served: fill.served, absentIsServed: fill.absentIsServed, attrs };
  };
  for (const [number, [, , , served, attribute]] of cases.entries()) {
    const attrs = { ...(attribute !== undefined && { _FillValue: attribute }), units: "m" };
    t.strictSame(of(`v${number}`), { served, absentIsServed: true, attrs });
  }
  t.strictSame(of("unmarked"), { served: null, absentIsServed: true, attrs: {} });
});

t.test("large variables are cut into chunks of about 1 MiB", async (t) => {
  const dimensions = [
    { name: "time", length: 0 },
    { name: "lat", length: 300 },
    { name: "lon", length: 1001 },
    { name: "step", length: 7 },
  ];
  const content: CdfContent = {
    version: 2,
    dimensions,
    variables: [
      variable("fixed", "float", [1, 2, 3], 0, dimensions),
      variable("inner", "double", [3, 2, 1], 0, dimensions),
      variable("scalar", "int", [], 0, dimensions),
      variable("small", "byte", [1, 3], 0, dimensions),
    ],
  };
  await assertItems(t, content);
  const arrays = arraysOf(await indexOf(content));
  t.same(arrays.get("fixed")?.chunkShape, [34, 1001, 7]);
  t.same(arrays.get("inner")?.chunkShape, [1, 334, 300]);
  t.same(arrays.get("scalar")?.chunkShape, []);
  t.same(arrays.get("small")?.chunkShape, [300, 7]);
});

t.test(
  "records are chunks if they are large, are cut if they are larger, and gathered if they are small",
  async (t) => {
    const dimensions = [
      { name: "time", length: 0 },
      { name: "row", length: 100 },
      { name: "column", length: 199 },
      { name: "level", length: 19 },
    ];
    const recordCount = 20;
    const content: CdfContent = {
      version: 2,
      dimensions,
      recordCount,
      variables: [
        variable("large", "float", [0, 1, 2], recordCount, dimensions),
        variable("larger", "float", [0, 3, 1, 2], recordCount, dimensions),
        variable("medium", "short", [0, 1, 3], recordCount, dimensions),
        variable("time", "double", [0], recordCount, dimensions),
      ],
    };
    await assertItems(t, content);
    const arrays = arraysOf(await indexOf(content));
    t.same(arrays.get("large")?.chunkShape, [1, 100, 199]);
    t.equal(arrays.get("large")?.chunks.kind, "strided");
    t.same(arrays.get("larger")?.chunkShape, [1, 10, 100, 199]);
    t.equal(arrays.get("larger")?.chunks.kind, "strided");
    t.same(arrays.get("medium")?.chunkShape, [20, 100, 19]);
    t.equal(arrays.get("medium")?.chunks.kind, "made");
    t.same(arrays.get("time")?.chunkShape, [20]);
  },
);

t.test("neighbouring records are read together, others one by one", async (t) => {
  async function readsOf(width: number, recordCount: number): Promise<{ reads: number; chunks: number }> {
    const dimensions = [
      { name: "time", length: 0 },
      { name: "x", length: width },
    ];
    const file = cdfFile({
      version: 1,
      dimensions,
      recordCount,
      variables: [
        variable("time", "double", [0], recordCount, dimensions),
        variable("data", "byte", [0, 1], recordCount, dimensions),
      ],
    });
    let reads = 0;
    const blocks = memoryBlocks(file, false, () => reads++);
    const index = await netcdf3Format.readIndex(blocks);
    t.same(index.unlimited, ["time"]);
    const array = arraysOf(index).get("time") as FileArray;
    reads = 0;
    const items = await readItems(blocks, array);
    t.ok(Buffer.from(items).equals(bytesOf(recordCount * 8, 4)));
    return { reads, chunks: Math.ceil(recordCount / (array.chunkShape[0] as number)) };
  }
  t.same(await readsOf(92, 10_000), { reads: 1, chunks: 1 });
  t.same(await readsOf(9_992, 1_000), { reads: 10, chunks: 1 });
  t.same(await readsOf(50_000, 100), { reads: 100, chunks: 1 });
  t.same(await readsOf(1, 140_000), { reads: 3, chunks: 2 });
});

t.test(
  "records of a variable that is alone adjoin, and full chunks stay as they are when the file grows",
  async (t) => {
    const dimensions = [
      { name: "time", length: 0 },
      { name: "x", length: 333 },
    ];
    for (const recordCount of [0, 1, 3, 3148, 3149, 4000, 9000]) {
      const content: CdfContent = {
        version: 1,
        dimensions,
        recordCount,
        variables: [variable("alone", "byte", [0, 1], recordCount, dimensions)],
      };
      await assertItems(t, content);
      const array = arraysOf(await indexOf(content)).get("alone");
      t.same(array?.shape, [recordCount, 333]);
      t.same(array?.chunkShape, [Math.max(1, Math.min(3148, recordCount)), 333]);
    }
  },
);

t.test("a file whose header does not say the number of records is refused by name", async (t) => {
  for (const version of [1, 2, 5] as const) {
    const writtenRecordCount = version === 5 ? 2n ** 64n - 1n : 2n ** 32n - 1n;
    await t.rejects(indexOf({ version, dimensions, writtenRecordCount, variables: [] }), {
      code: "unsupported",
      message: /the number of records is not in the header/,
    });
  }
});

t.test("a file that is cut short is refused, unless only padding is missing", async (t) => {
  for (const [variables, recordCount, padding] of [
    [[variable("a", "short", [1])], 0, 2],
    [[variable("a", "short", [0, 1], 4), variable("b", "byte", [0], 4)], 4, 3],
    [[variable("a", "short", [0, 1], 4)], 4, 0],
  ] as const) {
    const file = cdfFile({ version: 1, dimensions, recordCount, variables });
    const least = file.length - padding;
    await netcdf3Format.readIndex(memoryBlocks(file.subarray(0, least)));
    for (let length = 0; length < least; length++)
      await t.rejects(
        netcdf3Format.readIndex(memoryBlocks(file.subarray(0, length))),
        { code: "invalid-metadata" },
        `${length} bytes`,
      );
  }
});

t.test("variables that cannot be served are refused by name, the rest is served", async (t) => {
  const index = await indexOf({
    version: 5,
    dimensions: [...dimensions, { name: "huge", length: 2n ** 60n }],
    variables: [
      variable("twice", "int", [1]),
      variable("twice", "int", [2]),
      { ...variable("far", "int", [0]), dimensions: [0, 3] },
      variable("good", "int", [1]),
    ],
  });
  t.same([...arraysOf(index).keys()], ["good"]);
  t.strictSame(index.refused, [
    { path: "twice", reason: "several variables have this name" },
    { path: "twice", reason: "several variables have this name" },
    { path: "far", reason: "expected dimensions below 2^53, received 1152921504606847000" },
  ]);

  const file = cdfFile({ version: 1, dimensions, variables: [variable("first", "int", [1])] });
  new DataView(file.buffer).setUint32(file.length - 16, 8);
  const inside = await netcdf3Format.readIndex(memoryBlocks(file));
  t.match(inside.refused, [{ path: "first", reason: /behind the header/ }]);
});

t.test("the record dimension must be the first", async (t) => {
  const late = { ...variable("late", "int", [1]), dimensions: [1, 0] };
  await t.rejects(indexOf({ version: 1, dimensions, variables: [late] }), {
    code: "invalid-metadata",
    message: "NetCDF-3: expected the record dimension to be the first of variable 'late'",
  });
});

t.test("a header of megabytes is read about once", async (t) => {
  const variables = Array.from({ length: 5000 }, (_, i) => ({
    ...variable(`variable_${i}`, "double", [1, 2]),
    attributes: [
      { name: "long_name", type: "char" as const, bytes: Buffer.from("a variable ".repeat(20)) },
      { name: "_FillValue", type: "double" as const, bytes: bytesOf(8) },
    ],
  }));
  const history = { name: "history", type: "char" as const, bytes: Buffer.alloc(3e6, "é") };
  const values = { name: "values", type: "double" as const, bytes: Buffer.alloc(8e5, 1) };
  const file = cdfFile({ version: 5, dimensions, attributes: [history, values], variables });
  let bytesRead = 0;
  const blocks = memoryBlocks(file, false, (_offset, byteLength) => {
    bytesRead += byteLength;
  });
  const index = await netcdf3Format.readIndex(blocks);
  t.equal(index.groups[0]?.arrays.length, 5000);
  t.equal(String(index.groups[0]?.attrs.history).length, 15e5);
  t.ok(bytesRead < 1.2 * file.length, `${bytesRead} bytes read of ${file.length}`);
});

t.test("headers that would take too much memory are refused before they are read", async (t) => {
  const tooLong = { name: "text", type: "char" as const, bytes: new Uint8Array(33 * 2 ** 20) };
  const tooMany = { name: "list", type: "byte" as const, bytes: new Uint8Array(20 * 2 ** 20) };
  for (const attribute of [tooLong, tooMany]) {
    let bytesRead = 0;
    const file = cdfFile({ version: 5, dimensions, attributes: [attribute], variables: [] });
    const blocks = memoryBlocks(file, false, (_offset, byteLength) => {
      bytesRead += byteLength;
    });
    await t.rejects(netcdf3Format.readIndex(blocks), { code: "unsupported" });
    t.ok(bytesRead < 200_000, `${bytesRead} bytes read`);
  }
});

t.test("damaged files are refused or read, with nothing else thrown", async (t) => {
  const number = fc.constantFrom(0, 1, 255, 0x7fffffff, 0xffffffff, 0x10000000);
  const damage = fc.array(fc.tuple(fc.nat(99), number), { minLength: 1, maxLength: 4 });
  let opened = 0;
  await fc.assert(
    fc.asyncProperty(content, damage, fc.boolean(), async (content, damages, isCut) => {
      const file = cdfFile(content);
      const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
      const words = Math.floor(Math.min(file.length, 400) / 4);
      for (const [place, value] of damages) view.setUint32(4 * (place % words), value);
      const cut = isCut ? file.length - 4 * (damages[0]?.[0] ?? 0) : file.length;
      const blocks = memoryBlocks(file.subarray(0, Math.max(0, cut)));
      try {
        const index = await netcdf3Format.readIndex(blocks);
        opened++;
        for (const array of index.groups[0]?.arrays ?? []) await readItems(blocks, array);
      } catch (error) {
        if (!(error instanceof ZpublishError)) throw error;
      }
    }),
    { numRuns: effort(5000) },
  );
  t.ok(opened > 0);
});

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
