import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { ZpublishError } from "../../src/errors.js";
import type { ByteStore } from "../../src/stores/byte-store.js";
import type { ReferenceOptions } from "../../src/stores/reference-store.js";
import {
  isParquetMetadata,
  isReferences,
  openParquetReferences,
  openReferences,
  readParquetRecord,
} from "../../src/stores/references.js";
import { PACKAGE_ROOT } from "../support/clients/client-generation.js";
import { createMemoryStore, type MemoryStore } from "../support/memory-store.js";

/** A container of references, and the store of a bucket to which they lead. */
export interface ReferenceStage {
  readonly container: MemoryStore;
  readonly bucket: MemoryStore;
  readonly options: ReferenceOptions;
  /** URLs that were opened. */
  readonly opened: string[];
}

/** Creates a stage: references in `s3://refs/folder/`, which may lead to that folder and to `s3://bucket/`. */
export function createReferenceStage(files: Readonly<Record<string, string | Uint8Array>>): ReferenceStage {
  const container = createMemoryStore(files, "s3://refs/folder");
  const bucket = createMemoryStore({}, "s3://bucket");
  const opened: string[] = [];
  const places: readonly (readonly [string, ByteStore])[] = [
    ["s3://refs/folder/", container],
    ["s3://bucket/", bucket],
    ["https://host/data/", bucket],
  ];
  return {
    container,
    bucket,
    opened,
    options: {
      folder: "s3://refs/folder/",
      isAllowed: (url) => places.some(([prefix]) => url.startsWith(prefix)),
      openTarget(url) {
        opened.push(url);
        const [prefix, store] = places.find(([prefix]) => url.startsWith(prefix))!;
        return { store, key: url.slice(prefix.length) };
      },
    },
  };
}

/** Reads a key as text; undefined if it is absent. */
export async function textOf(store: ByteStore, key: string): Promise<string | undefined> {
  const read = await store.read(key);
  return read && Buffer.from(read.bytes).toString();
}

const code = (expected: string, message = /./) => ({ name: "ZpublishError", code: expected, message });
const DATA = "0123456789";

async function open(document: unknown, data: Readonly<Record<string, string>> = { "data.bin": DATA }) {
  const text = typeof document === "string" ? document : JSON.stringify(document);
  const stage = createReferenceStage({ "refs.json": text });
  for (const [key, content] of Object.entries(data)) stage.bucket.put(key, content);
  return { ...stage, store: await openReferences(stage.container, "refs.json", stage.options) };
}

const refs = {
  ".zgroup": '{"zarr_format": 2}',
  "t/.zarray": { zarr_format: 2, shape: [1] },
  "t/0": ["s3://bucket/data.bin", 2, 3],
  "t/1": ["s3://bucket/data.bin"],
  "t/2": "base64:AP8=",
  "t/3": "",
  "t/4": ["s3://bucket/data.bin", 4, 0],
  "é x/0.0": ["s3://bucket/a b é.nc", 0, 1],
};

t.test("reads texts, base64, objects, whole objects and parts of them", async (t) => {
  for (const document of [refs, { version: 1, refs }, { refs, templates: {}, version: 1 }]) {
    const { store, bucket, container } = await open(document, { "data.bin": DATA, "a b é.nc": "A" });
    t.equal(await textOf(store, ".zgroup"), '{"zarr_format": 2}');
    t.equal(await textOf(store, "t/.zarray"), '{"zarr_format":2,"shape":[1]}');
    t.equal(await textOf(store, "t/0"), "234");
    t.equal(await textOf(store, "t/1"), DATA);
    t.same(Buffer.from((await store.read("t/2"))!.bytes), Buffer.from([0, 255]));
    t.equal(await textOf(store, "t/3"), "", "an empty text is no absence");
    t.equal(await textOf(store, "t/4"), "");
    t.equal(await textOf(store, "é x/0.0"), "A");
    t.same(container.takeRequests(), ["read refs.json"]);
    t.same(bucket.takeRequests(), [
      "read data.bin 2+3",
      "read data.bin",
      "read data.bin 4+0",
      "read a b é.nc 0+1",
    ]);
    t.equal(await textOf(store, "t/9"), undefined);
    t.equal(await textOf(store, "constructor"), undefined);
    t.same(container.takeRequests(), ["stat refs.json", "stat refs.json"], "absence is checked");
    t.same(await store.list!(""), { objects: [".zgroup"], prefixes: ["t", "é x"] });
    t.same((await store.list!("t/")).objects, [".zarray", "0", "1", "2", "3", "4"]);
    t.equal(store.location, "s3://refs/folder/refs.json");
  }
});

t.test("reads ranges of what a key refers to", async (t) => {
  const { store, bucket } = await open(refs);
  const rangeOf = async (key: string, range: { last: number } | { offset: number; byteLength: number }) => {
    const read = await store.read(key, { range });
    return [Buffer.from(read!.bytes).toString(), read!.objectByteLength];
  };
  t.same(await rangeOf("t/0", { offset: 1, byteLength: 2 }), ["34", 3]);
  t.same(await rangeOf("t/0", { last: 1 }), ["4", 3]);
  t.same(await rangeOf("t/1", { last: 2 }), ["89", 10]);
  t.same(await rangeOf("t/2", { last: 0 }), ["", 2]);
  t.same(bucket.takeRequests(), ["read data.bin 3+2", "read data.bin 4+1", "read data.bin -2"]);
  for (const range of [{ last: 4 }, { offset: 2, byteLength: 2 }]) {
    await t.rejects(store.read("t/0", { range }), code("corrupt-chunk"), "never beyond the part");
  }
  await t.rejects(store.read("t/0", { maxByteLength: 2 }), code("corrupt-chunk"));
  await t.rejects(store.read("t/2", { maxByteLength: 1 }), code("corrupt-chunk"));
  bucket.put("data.bin", "012");
  await t.rejects(store.read("t/0"), code("corrupt-chunk"), "the object is too short");
});

t.test("has the version of the object in which the bytes lie", async (t) => {
  const { store, bucket, container } = await open(refs);
  const target = (await bucket.stat("data.bin"))!.version;
  t.same(await store.stat("t/0"), { version: target, byteLength: 3 });
  t.same(await store.stat("t/1"), { version: target, byteLength: 10 });
  t.same(await store.stat(".zgroup"), { version: store.version, byteLength: 18 });
  t.same((await store.read("t/0"))?.version, target);
  t.equal(store.objectOf!("t/0"), "s3://bucket/data.bin");
  t.equal(store.objectOf!("t/1"), "s3://bucket/data.bin");
  t.equal(store.objectOf!(".zgroup"), "refs.json");
  t.equal(store.objectOf!("none"), undefined);
  t.equal(await store.readIfChanged("t/0", target), "unchanged");
  t.equal(await store.readIfChanged(".zgroup", store.version), "unchanged");
  t.match(await store.readIfChanged(".zgroup", target), { objectByteLength: 18 });
  bucket.put("data.bin", "abcdefghij");
  await t.rejects(store.read("t/0", { version: target }), code("source-changed"));
  t.match(await store.readIfChanged("t/0", target), { objectByteLength: 3 });
  bucket.remove("data.bin");
  const refers = code("source-unreadable", /'t\/\d' refers to 's3:\/\/bucket\/data.bin'/);
  for (const read of [store.read("t/0"), store.read("t/1"), store.readIfChanged("t/0", target)])
    await t.rejects(read, refers, "not absent");
  await t.rejects(store.stat("t/0"), code("source-unreadable"));
  container.put("refs.json", "{}");
  await t.rejects(store.read("none"), code("source-changed"));
  await t.rejects(store.stat(".zgroup"), code("source-changed"));
  await t.rejects(store.readIfChanged(".zgroup", store.version), code("source-changed"));
  await t.rejects(store.read(".zgroup", { version: target }), code("source-changed"));
});

t.test("fills in templates", async (t) => {
  const { store } = await open({
    version: 1,
    templates: { u: "bucket", data: "bucket/data.bin" },
    gen: [],
    refs: {
      key0: "{{u}}",
      key1: ["s3://{{u}}/data.bin", 0, 4],
      key2: ["s3://{{ data }}", 1, 2],
      key3: ["s3://bucket/data.bin"],
    },
  });
  t.equal(await textOf(store, "key0"), "{{u}}", "text is left as it is");
  t.equal(await textOf(store, "key1"), "0123");
  t.equal(await textOf(store, "key2"), "12");
  t.equal(await textOf(store, "key3"), DATA);
  t.equal(store.objectOf!("key2"), "s3://bucket/data.bin");
  const plain = await open({ version: 1, refs: { key: ["s3://bucket/{{u}}"] } }, { "{{u}}": "braces" });
  t.equal(await textOf(plain.store, "key"), "braces", "without templates, braces are part of the URL");
});

t.test("refuses what is not {{name}}, by name, when the file is opened", async (t) => {
  const refused = (document: unknown, message: RegExp) =>
    t.rejects(open(document), code("unsupported", message), JSON.stringify(document).slice(0, 100));
  for (const url of ["{{ u | upper }}", "{% if u %}x{% endif %}{{u}}", "{{ u", "{{ f() }}", "{{ }}"]) {
    const document = { version: 1, templates: { u: "x" }, refs: { key: [url, 0, 1] } };
    await refused(document, /^references: expected templates of the form \{\{name\}\}.*, received '/);
  }
  const templates = { u: "x", one: "{{u}}" };
  await refused(
    { version: 1, templates, refs: {} },
    /expected templates that name no others, received '\{\{u\}\}'/,
  );
  const none = { version: 1, templates: { u: "x" }, refs: { key: ["{{none}}"] } };
  await refused(none, /expected 'none' among the templates/);
});

t.test("refuses generated references at once, even those that are none", async (t) => {
  const generator = { key: "a{{i}}", url: "b", dimensions: { j: { stop: 1e15 }, i: { stop: 0 } } };
  for (const gen of [[generator], {}]) {
    await t.rejects(
      open({ version: 1, gen, refs: {} }),
      code("unsupported", /^references: expected each reference under 'refs', received .*'gen'$/),
    );
  }
});

t.test("what templates make has at most 16,384 characters", async (t) => {
  const open1 = (u: string, url: string) => open({ version: 1, templates: { u }, refs: { key: [url] } });
  const half = "x".repeat(8_192);
  await t.resolves(open1(half, "{{u}}{{u}}"));
  await t.rejects(open1(half, "{{u}}{{u}}/"), code("unsupported", /expected at most 16384 characters once/));
  await t.rejects(open1("x", "{{u}}".repeat(10_000)), code("unsupported", /expected at most 16384 char/));
  await t.rejects(open1("x", "{{".repeat(8_000)), code("unsupported", /the form/));
});

t.test("refuses documents that are no references", async (t) => {
  for (const document of ["", "{", "[]", '{"version": 1, "refs": []}', '{"version": 1, "templates": 1}']) {
    await t.rejects(open(document), code("invalid-metadata"), document);
  }
  for (const version of [0, 2, "1", null]) {
    await t.rejects(open({ version, refs: {} }), code("unsupported"), `version ${version}`);
  }
  const bad = [[], ["u", 1], ["u", 1, 2, 3], [1, 1, 1], ["u", -1, 1], ["u", 0.5, 1], ["u", "0", "1"]];
  for (const reference of [...bad, [""], ["u", 2 ** 53, 1], "base64:?", 1, null, true]) {
    await t.rejects(open({ key: reference }), code("invalid-metadata", /'key'/), JSON.stringify(reference));
  }
  const { container, options } = createReferenceStage({});
  await t.rejects(openReferences(container, "none", options), code("source-unreadable"));
});

t.test("leads only where it may", async (t) => {
  const { store, bucket, container } = await open({
    "near/0": ["data/x.bin", 0, 2],
    "near/1": ["./data/../data/x.bin"],
    "near/2": ["/folder/data/x.bin"],
    "web/0": ["https://host/data/a%20b?sig=SECRET", 0, 1],
    "web/1": ["https://host/data/a%20b?sig=OTHER", 0, 1],
    "out/0": ["../x", 0, 1],
    "out/1": ["s3://bucket/../refs/x", 0, 1],
    "out/2": ["s3://other/x?sig=SECRET", 0, 1],
    "out/3": ["file:///etc/passwd"],
    "out/4": ["/etc/passwd"],
    "out/5": ["https://user:SECRET@host/data/x"],
    "out/6": ["https://host/data/../x"],
    "out/7": ["https://host/data/%2e%2e/x"],
    "out/8": ["https://host/data/..%2fx"],
    "out/9": ["simplecache::s3://bucket/data.bin"],
    "out/10": ["https://host/data\\..\\..\\x"],
    "out/11": ["s3://bucketeer/x"],
    "out/12": ["HTTPS://[bad/x"],
    "out/13": ["https://host/data/%"],
  });
  container.put("data/x.bin", "near");
  bucket.put("a%20b?sig=SECRET", "A");
  t.equal(await textOf(store, "near/0"), "ne");
  t.equal(await textOf(store, "near/1"), "near");
  t.equal(await textOf(store, "near/2"), "near");
  t.equal(await textOf(store, "web/0"), "A");
  const [first, second] = [store.objectOf!("web/0"), store.objectOf!("web/1")];
  t.match(first, /^https:\/\/host\/data\/a%20b\?[0-9a-f]{16}$/);
  t.not(first, second);
  for (let number = 0; number <= 13; number++) {
    const error = await store.read(`out/${number}`).catch((thrown: Error) => thrown);
    t.match(error, code("unsupported"), `out/${number}`);
    t.equal(store.objectOf!(`out/${number}`), `out/${number}`);
    t.notMatch(String(error), /SECRET/, "no credential, no query");
  }
});

t.test("names the places that are not allowed, without reading anything", async (t) => {
  const refused = async (document: unknown, message: string) => {
    const { store, bucket } = await open(document);
    await t.rejects(store.assertAllowed(), { code: "unsupported", message });
    t.same(bucket.takeRequests(), []);
  };
  const expected = 'which the configuration does not allow: expected "references": {"allow":';
  await refused(
    { "t/0": ["s3://bucket/x"], "t/1": ["s3://other/a/x?sig=SECRET"], "t/2": ["s3://other/a/y", 0, 1] },
    `its references lead to "s3://other/a/", ${expected} ["s3://other/a/"]}`,
  );
  await refused(
    { version: 1, templates: { u: "s3://other" }, refs: { "t/0": ["{{u}}/x"] } },
    `its references lead to "s3://other/", ${expected} ["s3://other/"]}`,
  );
  const many = Object.fromEntries([1, 2, 3, 4, 5].map((number) => [`t/${number}`, [`/data/${number}/x`]]));
  const named = ["s3://refs/data/1/", "s3://refs/data/2/", "s3://refs/data/3/"];
  const quoted = named.map((place) => JSON.stringify(place)).join(", ");
  await refused(many, `its references lead to ${quoted} and 2 other places, ${expected} [${quoted}, …]}`);
  await refused(
    { "t/0": ["simplecache::s3://bucket/x"] },
    "a reference leads to 'simplecache::s3://bucket/x', expected a URL of one object",
  );
  await refused(
    { "t/0": ["zip://t/0::s3://bucket/x.zip"] },
    "a reference leads to 'zip://t/0::s3://bucket/x.zip', expected a URL of one object",
  );
  await t.resolves((await open(refs)).store.assertAllowed());
});

t.test("tells references by their first bytes", async (t) => {
  const looks = (text: string) => isReferences(Buffer.from(text));
  for (const document of [
    refs,
    { version: 1, refs },
    { version: 1, templates: {}, gen: [{}] },
    { refs: {}, version: 1 },
    { "t/.zattrs": {} },
    { "zarr.json": "{}" },
    { "t/0.0": ["s3://bucket/x", 1, 2] },
    { "t/0.0": ["s3://bucket/x"] },
    { "t/0.0": "base64:AA==" },
  ]) {
    t.ok(looks(JSON.stringify(document)), JSON.stringify(document).slice(0, 60));
    t.ok(looks(` ${JSON.stringify(document, null, 4)}`));
  }
  for (const text of [
    "",
    "{",
    "[]",
    '{"version": 2, "refs": {}}',
    '{"version": 1, "name": "a"}',
    '{"zarr_format": 3}',
    '{"metadata": {".zgroup": {}}, "zarr_consolidated_format": 1}',
    '{"type": "FeatureCollection"}',
    "PK\x03\x04",
  ])
    t.notOk(looks(text), text);
  t.ok(isReferences(Buffer.from(JSON.stringify({ version: 1, refs })).subarray(0, 30)), "a prefix is enough");
});

/** Written by `write_parquet_references.py`. */
const FIXTURES = join(PACKAGE_ROOT, "test/fixtures/parquet-references");
const WRITERS = ["fastparquet", "plain"];

async function openParquet(writer: string, changes: Partial<ReferenceOptions> = {}) {
  const folder = join(FIXTURES, writer);
  const files: Record<string, Uint8Array> = {};
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath ?? entry.path, entry.name);
    if (entry.isFile()) files[`refs/${path.slice(folder.length + 1)}`] = await readFile(path);
  }
  const stage = createReferenceStage({
    ...files,
    "data.bin": "0123456789abcdefghijklmnopqrstuvwxyz",
    "whole.bin": "all",
  });
  const options = { ...stage.options, ...changes };
  return { ...stage, store: await openParquetReferences(stage.container, "refs/", options) };
}

t.test("places of parquet files are those of the first references of each array", async (t) => {
  for (const writer of WRITERS) {
    const { store, container } = await openParquet(writer);
    await t.resolves(store.assertAllowed());
    const first = ["refs/g/grid/refs.0.parq", "refs/t/refs.0.parq"];
    const read = container.takeRequests().filter((request) => first.some((name) => request.endsWith(name)));
    t.equal(read.length, 2, "read once, and kept");
    const { store: strict } = await openParquet(writer, { isAllowed: () => false });
    await t.rejects(strict.assertAllowed(), code("unsupported", /references lead to "s3:/));
  }
});

t.test("reads what fsspec and pyarrow write", async (t) => {
  for (const writer of WRITERS) {
    const { store, container } = await openParquet(writer);
    t.equal(await textOf(store, ".zgroup"), '{"zarr_format": 2}', writer);
    t.equal(await textOf(store, "t/.zattrs"), '{"units": "K", "scale": 1.0}', "every digit is kept");
    t.same(container.takeRequests(), ["read refs/.zmetadata"], "no record is read for documents");
    for (let number = 0; number < 10; number++) {
      const expected = "0123456789abcdefghijklmnopqrstuvwxyz".slice(number * 3, number * 3 + 3);
      t.equal(await textOf(store, `t/${number}`), number === 6 ? undefined : expected, `t/${number}`);
    }
    const records = container.takeRequests().filter((request) => request.endsWith(".parq"));
    const once = [0, 1, 2].map((record) => `read refs/t/refs.${record}.parq`);
    t.same(records, once, "each record once");
    t.same(Buffer.from((await store.read("g/grid/0.0"))!.bytes), Buffer.from("raw \x00\xff bytes", "latin1"));
    t.equal(await textOf(store, "g/grid/0.1"), undefined);
    t.equal(await textOf(store, "g/grid/0.2"), "all");
    t.equal(await textOf(store, "g/grid/1.1"), "56789ab");
    t.equal(await textOf(store, "scalar/0"), "1");
    for (const key of ["t/10", "t/00", "t/-1", "t/x", "t/0.0", "g/grid/0.3", "g/0", "none/0", "0", "t"]) {
      t.equal(await textOf(store, key), undefined, key);
    }
    t.same(await store.list!(""), { objects: [".zgroup"], prefixes: ["empty", "g", "scalar", "t"] });
    t.equal(store.objectOf!("t/0"), "s3://refs/folder/data.bin");
    t.equal(store.objectOf!("t/6"), undefined);
    t.equal(store.objectOf!("t/99"), undefined);
    t.equal(store.objectOf!("empty/0"), "empty/0", "its record has not been read");
    t.equal(store.objectOf!("t/.zarray"), "refs/.zmetadata");
    t.same(await store.stat("t/1"), { version: (await container.stat("data.bin"))!.version, byteLength: 3 });
  }
});

t.test("refuses other pages and compressions by name", async (t) => {
  for (const [writer, message] of [
    ["snappy", /expected a page without compression or of zstd, received codec 1/],
    ["zstd-pages", /expected data pages of version 1, received a page of type 3/],
  ] as const) {
    const { store } = await openParquet(writer);
    await t.rejects(store.read("t/0"), code("invalid-metadata", message));
  }
});

t.test("an array without records has no chunks, as long as the references are there", async (t) => {
  const { store, container } = await openParquet("fastparquet");
  t.equal(await textOf(store, "empty/0"), undefined);
  const metadata = await container.read("refs/.zmetadata");
  container.remove("refs/.zmetadata");
  await t.rejects(store.read("empty/0"), code("source-unreadable"));
  container.put("refs/.zmetadata", metadata!.bytes);
  await t.rejects(store.read("empty/0"), code("source-changed"));
  container.failWith(new ZpublishError("source-unreadable", "503"));
  await t.rejects(store.read("t/0"), code("source-unreadable"));
  await t.rejects(store.read("empty/0"), code("source-unreadable"));
  container.failWith(undefined);
  t.equal(await textOf(store, "t/0"), "012", "a failure is not remembered");
});

t.test("refuses damaged records and metadata", async (t) => {
  for (const writer of WRITERS) {
    const { container, options } = await openParquet(writer);
    const name = "refs/t/refs.0.parq";
    const whole = (await container.read(name))!.bytes;
    for (const bytes of [whole.subarray(0, -1), whole.subarray(4), new Uint8Array(0), new Uint8Array(1000)]) {
      container.put(name, bytes);
      const store = await openParquetReferences(container, "refs/", options);
      await t.rejects(store.read("t/0"), code("invalid-metadata"));
    }
    for (const text of [
      "",
      "{}",
      '{"metadata": {}, "record_size": 0}',
      '{"metadata": [], "record_size": 1}',
    ]) {
      container.put("refs/.zmetadata", text);
      await t.rejects(openParquetReferences(container, "refs/", options), code("invalid-metadata"), text);
    }
    container.remove("refs/.zmetadata");
    await t.rejects(openParquetReferences(container, "refs/", options), code("source-unreadable"));
  }
});

t.test("tells the metadata of references from that of a Zarr store", async (t) => {
  t.ok(isParquetMetadata(await readFile(join(FIXTURES, "fastparquet/.zmetadata"), "utf8")));
  t.notOk(isParquetMetadata('{"metadata": {}, "zarr_consolidated_format": 1}'));
});

t.test("a damaged byte ends in an error or in other references, never in a crash or a hang", async (t) => {
  for (const writer of WRITERS) {
    const whole = await readFile(join(FIXTURES, writer, "t/refs.0.parq"));
    let refused = 0;
    for (let at = 0; at < whole.length; at++) {
      const damaged = Uint8Array.from(whole);
      damaged[at]! ^= 0xff;
      try {
        await readParquetRecord("refs.0.parq", damaged);
      } catch (error) {
        refused++;
        if (!(error instanceof ZpublishError && error.code === "invalid-metadata"))
          t.fail(`byte ${at}: ${error}`);
      }
    }
    t.ok(refused > 100, `${writer}: ${refused} refused`);
    for (let length = 0; length < whole.length; length += 7) {
      await t.rejects(readParquetRecord("refs.0.parq", Uint8Array.from(whole.subarray(0, length))), {
        code: "invalid-metadata",
        message: /^'refs.0.parq': /,
      });
    }
  }
});
