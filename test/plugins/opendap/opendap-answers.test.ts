import { crc32, gunzipSync } from "node:zlib";
import t, { type Test } from "tap";
import { createMemorySource, type MemoryArray } from "../../../src/open/memory-source.js";
import { datasetOf } from "../../support/datasets/sample-tree.js";
import { startServer } from "../../support/servers/start-server.js";

const OF_TYPES: Readonly<Record<string, readonly [data: MemoryArray["data"], dtype?: string]>> = {
  b1: [Uint8Array.of(1, 0, 1), "|b1"],
  f2: [Uint16Array.of(0x3c00, 0xc000, 0x7e00), "<f2"],
  f4: [Float32Array.of(1.5, -0, Number.NaN)],
  f8: [Float64Array.of(0.1, 1e300, -Infinity)],
  i1: [Int8Array.of(-128, -1, 127)],
  i2: [Int16Array.of(-32768, -1, 258)],
  i4: [Int32Array.of(-(2 ** 31), -1, 258)],
  i8: [BigInt64Array.of(-(2n ** 53n), -1n, 2n ** 60n)],
  u1: [Uint8Array.of(0, 128, 255)],
  u2: [Uint16Array.of(0, 32768, 65535)],
  u4: [Uint32Array.of(0, 2 ** 31, 2 ** 32 - 1)],
  u8: [BigUint64Array.of(0n, 5n, 2n ** 63n)],
};

/** A dataset of all types, texts, groups, and what one of the protocols cannot say. */
function sample() {
  const arrays: MemoryArray[] = [
    ...Object.entries(OF_TYPES).map(([name, [data, dtype]]): MemoryArray => {
      return { name, data, shape: [3], dims: ["x"], ...(dtype && { dtype }) };
    }),
    { name: "chars", data: Buffer.from("ab\0cde"), dtype: "|S1", shape: [2, 3], dims: ["y", "len"] },
    { name: "complex", data: new Float32Array(6), dtype: "<c8", shape: [3], dims: ["x"] },
    { name: "flag", data: Uint8Array.of(7), shape: [] },
    { name: "large", data: BigInt64Array.of(2n ** 53n + 1n), shape: [1], dims: ["one"] },
    {
      ...{ name: "packed", data: Int16Array.from({ length: 24 }, (_, index) => index - 3), fillValue: -9 },
      ...{ shape: [4, 2, 3], dims: ["time", "y", "x"], chunks: [3, 2, 2] },
      attrs: { scale_factor: 0.5, add_offset: -1, units: 'K "x" \\', valid_range: [0, 9], note: { a: [1] } },
    },
    { name: "texts", data: Buffer.from("a\0\0\0bcde"), dtype: "|S4", shape: [2], dims: ["y"] },
    { name: "time", data: BigInt64Array.of(0n, 1n, 2n, 3n), dtype: "<M8[h]", shape: [4], dims: ["time"] },
    { name: "bytes", data: Int8Array.of(-1, 2), shape: [2], dims: ["y"], attrs: { _Unsigned: "true" } },
    { name: "odd name.x", data: Uint8Array.of(1, 2), shape: [2], dims: ["y"] },
  ];
  const inner: MemoryArray[] = [
    {
      name: "time",
      data: Int32Array.of(5, 6),
      shape: [2],
      dims: ["time"],
      attrs: { units: "days since 2000-01-01" },
    },
    { name: "v", data: Float32Array.of(1, 2), shape: [2], dims: ["time"], attrs: { coordinates: "time" } },
  ];
  const groups = [
    { path: "/", attrs: { title: "sample", big: 2n ** 60n, ratio: 0.25 }, arrays },
    { path: "/a", attrs: { note: "inner" }, arrays: inner },
  ];
  return datasetOf("air", createMemorySource({ location: "air", groups }));
}

const BASE = "/datasets/air/opendap/air.nc";

const start = (t: Test, more: Parameters<typeof startServer>[1] = {}) =>
  startServer(t, { datasets: [sample()], ...more });

/** Splits an answer of `.dods`. */
async function dodsOf(response: Response): Promise<{ readonly dds: string; readonly hex: string }> {
  const bytes = Buffer.from(await response.arrayBuffer());
  const end = bytes.indexOf("\nData:\n");
  const dds = bytes.toString("utf8", 0, end);
  return { dds, hex: bytes.toString("hex", end + 7).replace(/.{8}(?=.)/g, "$& ") };
}

t.test("the DDS has types, dimensions and lengths", async (t) => {
  const { get } = await start(t);
  const response = await get(`${BASE}.dds`);
  t.equal(response.headers.get("xdods-server"), "dods/3.7");
  t.equal(response.headers.get("content-description"), "dods-dds");
  t.equal(response.headers.get("content-type"), "text/plain; charset=utf-8");
  t.equal(
    await response.text(),
    `Dataset {
    Byte b1[x = 3];
    Byte bytes[y = 2];
    String chars[y = 2];
    Float32 f2[x = 3];
    Float32 f4[x = 3];
    Float64 f8[x = 3];
    Byte flag;
    Int16 i1[x = 3];
    Int16 i2[x = 3];
    Int32 i4[x = 3];
    Float64 i8[x = 3];
    Byte odd%20name%2Ex[y = 2];
    Int16 packed[time = 4][y = 2][x = 3];
    String texts[y = 2];
    Float64 time[time = 4];
    Byte u1[x = 3];
    UInt16 u2[x = 3];
    UInt32 u4[x = 3];
    Float64 u8[x = 3];
    Int32 a_time[a_time = 2];
    Float32 a_v[a_time = 2];
} air.nc;
`,
  );
  t.equal(
    await (await get(`${BASE}.dds?packed[1:2:3][0][2],flag`)).text(),
    "Dataset {\n    Int16 packed[time = 2][y = 1][x = 1];\n    Byte flag;\n} air.nc;\n",
  );
});

t.test("the DAS has attributes with the types of their variables", async (t) => {
  const { get } = await start(t);
  const das = await (await get(`${BASE}.das`)).text();
  for (const part of [
    `    packed {
        Float64 scale_factor 0.5;
        Int32 add_offset -1;
        String units "K \\"x\\" \\\\";
        Int16 valid_range 0, 9;
        String note "{\\"a\\":[1]}";
        Int16 _FillValue -9;
    }
`,
    '    u2 {\n        String _Unsigned "true";\n    }\n',
    '    chars {\n        Int32 DODS.strlen 3;\n        String DODS.dimName "len";\n    }\n',
    '    texts {\n        Int32 DODS.strlen 4;\n        String DODS.dimName "string4";\n    }\n',
    '        String units "hours since 1970-01-01";\n        String calendar "proleptic_gregorian";\n',
    '    a_v {\n        String coordinates "a_time";\n    }\n',
    "        Float64 big 1.152921504606847e+18;\n        Float64 ratio 0.25;\n",
    '        String a_note "inner";\n',
    "complex: DAP has no type for complex64",
    "large: DAP2 has no integers of 64 bits, and its Float64 cannot hold 9007199254740993; DAP4 has it",
  ])
    t.ok(das.includes(part), part);
});

t.test("values are sent in XDR", async (t) => {
  const { get } = await start(t);
  for (const [query, dds, hex] of [
    ["i1", "Int16 i1[x = 3]", "00000003 00000003 ffffff80 ffffffff 0000007f"],
    ["i2", "Int16 i2[x = 3]", "00000003 00000003 ffff8000 ffffffff 00000102"],
    ["i4", "Int32 i4[x = 3]", "00000003 00000003 80000000 ffffffff 00000102"],
    ["u1", "Byte u1[x = 3]", "00000003 00000003 0080ff00"],
    ["b1[0:1]", "Byte b1[x = 2]", "00000002 00000002 01000000"],
    ["u2", "UInt16 u2[x = 3]", "00000003 00000003 00000000 00008000 0000ffff"],
    ["u4", "UInt32 u4[x = 3]", "00000003 00000003 00000000 80000000 ffffffff"],
    ["f2", "Float32 f2[x = 3]", "00000003 00000003 3f800000 c0000000 7fc00000"],
    ["f4", "Float32 f4[x = 3]", "00000003 00000003 3fc00000 80000000 7fc00000"],
    ["f8[2]", "Float64 f8[x = 1]", "00000001 00000001 fff00000 00000000"],
    ["i8", "Float64 i8[x = 3]", "00000003 00000003 c3400000 00000000 bff00000 00000000 43b00000 00000000"],
    ["u8[1:2]", "Float64 u8[x = 2]", "00000002 00000002 40140000 00000000 43e00000 00000000"],
    ["time[3]", "Float64 time[time = 1]", "00000001 00000001 40080000 00000000"],
    // pydap reads the first byte, all others the last one.
    ["flag", "Byte flag", "07000007"],
    ["chars", "String chars[y = 2]", "00000002 00000002 61620000 00000003 63646500"],
    ["texts[1]", "String texts[y = 1]", "00000001 00000004 62636465"],
    [
      "packed[0:3:3][1][0:2:2]",
      "Int16 packed[time = 2][y = 1][x = 2]",
      "00000004 00000004 00000000 00000002 00000012 00000014",
    ],
    ["odd%2520name%252Ex", "Byte odd%20name%2Ex[y = 2]", "00000002 00000002 01020000"],
    ["odd%20name%2Ex[1]", "Byte odd%20name%2Ex[y = 1]", "00000001 00000001 02000000"],
  ] as const) {
    const answer = await dodsOf(await get(`${BASE}.dods?${query}`));
    t.equal(answer.dds, `Dataset {\n    ${dds};\n} air.nc;\n`, query);
    t.equal(answer.hex, hex, query);
  }
  const two = await dodsOf(await get(`${BASE}.dods?u1[0],i2[1]`));
  t.equal(two.hex, "00000001 00000001 00000000 00000001 00000001 ffffffff", "words are filled up in between");
});

t.test("answers have length, ETag and ranges, and are compressed for those who ask", async (t) => {
  const { url, get } = await start(t);
  for (const path of [
    `${BASE}.dods`,
    `${BASE}.dap`,
    `${BASE}.dap?dap4.checksum=true`,
    `${BASE}.dods?chars,u1`,
  ]) {
    const whole = await get(path, { "accept-encoding": "identity" });
    const bytes = Buffer.from(await whole.arrayBuffer());
    const etag = whole.headers.get("etag")!;
    t.equal(whole.headers.get("content-length"), `${bytes.length}`, path);
    const head = await fetch(url + path, { method: "HEAD", headers: { "accept-encoding": "identity" } });
    t.equal(head.headers.get("content-length"), `${bytes.length}`);
    t.equal((await get(path, { "accept-encoding": "identity", "if-none-match": etag })).status, 304);
    for (let begin = 0; begin < bytes.length; begin += 37) {
      const end = Math.min(bytes.length, begin + 61);
      const part = await get(path, { range: `bytes=${begin}-${end - 1}` });
      t.equal(part.status, 206);
      const received = Buffer.from(await part.arrayBuffer());
      if (!received.equals(bytes.subarray(begin, end))) t.fail(`${path}: bytes ${begin} to ${end}`);
    }
  }
  const dds = await get(`${BASE}.dds`, { "accept-encoding": "identity" });
  t.ok(dds.headers.get("etag"));
});

t.test(
  "larger answers are compressed for those who ask, and whole for those who ask for a range",
  async (t) => {
    const data = Int32Array.from({ length: 5_000 }, (_, index) => index);
    const arrays = [{ name: "v", data, shape: [5_000], dims: ["x"] }];
    const source = createMemorySource({ location: "air", groups: [{ path: "/", attrs: {}, arrays }] });
    const { url } = await startServer(t, { datasets: [datasetOf("air", source)] });
    const ask = async (headers: Record<string, string>) => {
      const { request } = await import("node:http");
      return new Promise<{ headers: NodeJS.Dict<string | string[]>; body: Buffer }>((resolve, reject) => {
        request(`${url}${BASE}.dods?v`, { headers }, (response) => {
          const parts: Buffer[] = [];
          response.on("data", (part) => parts.push(part));
          response.on("end", () => resolve({ headers: response.headers, body: Buffer.concat(parts) }));
        })
          .on("error", reject)
          .end();
      });
    };
    const plain = await ask({});
    const packed = await ask({ "accept-encoding": "deflate, gzip" });
    t.equal(plain.headers["content-length"], `${plain.body.length}`);
    t.equal(packed.headers["content-encoding"], "gzip");
    t.match(packed.headers.vary, /Accept-Encoding/);
    t.not(packed.headers.etag, plain.headers.etag);
    t.ok(gunzipSync(packed.body).equals(plain.body));
    const part = await ask({ "accept-encoding": "gzip", range: "bytes=0-9" });
    t.equal(part.headers["content-encoding"], undefined);
    t.ok(part.body.equals(plain.body.subarray(0, 10)));
  },
);

t.test("long answers of DAP4 are cut into chunks, and any range of them is answered", async (t) => {
  const data = Uint8Array.from({ length: 9_000_000 }, (_, index) => index % 251);
  const texts = Buffer.alloc(4 * 300_000, "abc\0");
  const arrays = [
    { name: "texts", data: texts, dtype: "|S4", shape: [300_000], dims: ["y"] },
    { name: "v", data, shape: [9_000_000], dims: ["x"], chunks: [1_000_000] },
  ];
  const source = createMemorySource({ location: "air", groups: [{ path: "/", attrs: {}, arrays }] });
  const { get } = await startServer(t, { datasets: [datasetOf("air", source)] });
  const identity = { "accept-encoding": "identity" };
  const bytes = Buffer.from(await (await get(`${BASE}.dap?dap4.ce=/v`, identity)).arrayBuffer());
  const bodies: Buffer[] = [];
  const begins: number[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at) & 0xffffff;
    t.equal((bytes[at]! & 1) === 1, at + 4 + length === bytes.length, "the last one says so");
    begins.push(at);
    bodies.push(bytes.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  t.equal(bodies.length, 4);
  t.ok(Buffer.concat(bodies.slice(1)).equals(data));
  for (const begin of begins
    .flatMap((at) => [at - 3, at, at + 2, at + 4, at + 1_000])
    .filter((at) => at >= 0)) {
    const end = Math.min(bytes.length, begin + 4_500_000);
    const part = await get(`${BASE}.dap?dap4.ce=/v`, { range: `bytes=${begin}-${end - 1}` });
    t.ok(
      Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(begin, end)),
      `bytes ${begin} to ${end}`,
    );
  }
  const { hex } = await dodsOf(await get(`${BASE}.dods?texts`, identity));
  t.equal(hex.length, 9 * (1 + 2 * 300_000) - 1);
  t.ok(hex.endsWith("00000003 61626300"));
});

t.test("values are text for people", async (t) => {
  const { get } = await start(t);
  const text = await (await get(`${BASE}.ascii?packed[0:1][0:1][0:1],flag,chars,i8,f4,bytes`)).text();
  t.equal(
    text.slice(text.indexOf("-----")),
    `${"-".repeat(45)}
packed[2][2][2]
[0][0], -3, -2
[0][1], 0, 1
[1][0], 3, 4
[1][1], 6, 7

flag, 7

chars[2]
"ab", "cde"

i8[3]
-9007199254740992, -1, 1152921504606846976

f4[3]
1.5, -0, NaN

bytes[2]
255, 2

`,
  );
  t.match(await (await get(`${BASE}.ver`)).text(), /^Core version: DAP2\/3.7\nServer version: zpublish\//);
  const bare = await get(BASE);
  t.equal(bare.status, 302);
  t.ok(bare.headers.get("location")?.endsWith(`${BASE}.html`));
  const page = await get(`${BASE}.html`);
  t.equal(page.headers.get("content-type"), "text/html; charset=utf-8");
  const html = await page.text();
  t.match(html, /Int16 packed\[time = 4\]/);
  t.match(html, /<a href="air\.nc\.ascii\?odd%20name%2Ex">/);
});

t.test("DAP4 has groups, and chunks with checksums where they are asked for", async (t) => {
  const { get } = await start(t);
  const dmr = await (await get(`${BASE}.dmr`)).text();
  t.equal(await (await get(`${BASE}.dmr.xml`)).text(), dmr);
  for (const part of [
    '<Int64 name="large">\n    <Dim name="/one"/>\n  </Int64>',
    '<Char name="chars">\n    <Dim name="/y"/>\n    <Dim name="/len"/>\n  </Char>',
    '<Group name="a">\n    <Dimension name="time" size="2"/>',
    '<Dim name="/a/time"/>\n      <Attribute name="coordinates" type="String">\n        <Value>time</Value>',
    '<Attribute name="big" type="Int64">\n    <Value>1152921504606846976</Value>',
    '<Attribute name="units" type="String">\n      <Value>K "x" \\</Value>',
    '<Attribute name="_FillValue" type="Int16">\n      <Value>-9</Value>',
  ])
    t.ok(dmr.includes(part), part);

  const chunks = async (query: string) => {
    const response = await get(`${BASE}.dap?${query}`);
    t.equal(response.headers.get("content-type"), "application/vnd.opendap.dap4.data");
    const bytes = Buffer.from(await response.arrayBuffer());
    const found: { flags: number; body: Buffer }[] = [];
    for (let at = 0; at < bytes.length; ) {
      const header = bytes.readUInt32BE(at);
      const end = at + 4 + (header & 0xffffff);
      found.push({ flags: header >>> 24, body: bytes.subarray(at + 4, end) });
      at = end;
    }
    return found;
  };
  const [document, data] = await chunks("dap4.ce=/i2[1:2];/a/v;/texts;/large");
  t.equal(document!.flags, 4 | 8);
  t.equal(data!.flags, 4 | 8 | 1);
  t.match(document!.body.toString(), /<Int16 name="i2">\n {4}<Dim size="2"\/>/);
  t.ok(document!.body.toString().endsWith("</Dataset>\n\r\n"));
  t.equal(
    data!.body.toString("hex"),
    [
      "ffff0201",
      "0100000000000000",
      "61",
      "0400000000000000",
      "62636465",
      "0100000000002000",
      "0000803f00000040",
    ].join(""),
    "variables of the root come before those of groups",
  );
  const [, checked] = await chunks("dap4.ce=/u1&dap4.checksum=true");
  t.equal(checked!.flags, 4 | 1);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32LE(crc32(Buffer.of(0x00, 0x80, 0xff)));
  t.equal(checked!.body.toString("hex"), `0080ff${checksum.toString("hex")}`);
});

t.test("errors are DAP's", async (t) => {
  const { get } = await start(t, { limits: { ...(await defaultLimits()), maxSelectionBytes: 20 } });
  for (const [path, status, message] of [
    [`${BASE}.dods?nothing`, 400, "Expected the name of a variable, received 'nothing'"],
    [`${BASE}.dds?i2[3]`, 400, "Expected indexes within 0 to 2 of axis 0 of 'i2'"],
    [`${BASE}.dods?large`, 400, "name of a variable"],
    [
      `${BASE}.dods?packed`,
      413,
      "Expected at most 20 bytes of values (--max-selection), received a request for 96",
    ],
    [`${BASE}.ascii?packed`, 413, "at most 20 bytes"],
    ["/datasets/air/opendap/other.nc.dds", 404, "Expected 'air.nc' and one of dds, das,"],
    [`${BASE}.constructor`, 404, "and one of dds"],
    [`${BASE}.dds?${"a".repeat(6_000)}`, 400, "name of a variable"],
    ["/datasets/none/opendap/none.nc.dds", 404, "Dataset 'none' not found"],
  ] as const) {
    const response = await get(path);
    t.equal(response.status, status, path);
    t.equal(response.headers.get("content-type"), "text/plain; charset=utf-8");
    t.equal(response.headers.get("content-description"), "dods-error");
    const body = await response.text();
    t.match(body, new RegExp(`^Error \\{\\n {4}code = ${status};\\n {4}message = "`));
    t.ok(body.includes(message), body);
    t.ok(body.endsWith('";\n};\n'));
  }
  const dap4 = await get(`${BASE}.dap?dap4.ce=/no%3Cthing`);
  t.equal(dap4.status, 400);
  t.equal(dap4.headers.get("content-type"), "application/vnd.opendap.dap4.error+xml");
  t.match(await dap4.text(), /httpcode="400"><Message>Expected .*'\/no&lt;thing'/);
});

async function defaultLimits() {
  const { defaultValues, optionConfig } = await import("../../../src/config/options.js");
  return optionConfig(defaultValues({})).limits;
}
