import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { ZpublishError } from "../../../src/errors.js";
import { isParquetMetadata, openParquetReferences } from "../../../src/stores/references.js";
import { PACKAGE_ROOT } from "../../client-generation.js";
import { createReferenceStage, textOf } from "./open-store.js";

/** Written by `write_parquet_references.py`. */
const FIXTURES = join(PACKAGE_ROOT, "test/fixtures/parquet-references");
const WRITERS = ["fastparquet", "snappy", "zstd-pages", "plain"];
const code = (expected: string) => ({ name: "ZpublishError", code: expected });

async function open(writer: string) {
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
  return { ...stage, store: await openParquetReferences(stage.container, "refs/", stage.options) };
}

t.test("reads what fsspec and pyarrow write", async (t) => {
  for (const writer of WRITERS) {
    const { store, container } = await open(writer);
    t.equal(await textOf(store, ".zgroup"), '{"zarr_format": 2}', writer);
    t.equal(await textOf(store, "t/.zattrs"), '{"units": "K", "scale": 1.0}', "every digit is kept");
    t.same(container.takeRequests(), ["read refs/.zmetadata"], "no record is read for documents");
    for (let number = 0; number < 10; number++) {
      const expected = "0123456789abcdefghijklmnopqrstuvwxyz".slice(number * 3, number * 3 + 3);
      t.equal(
        await textOf(store, `t/${number}`),
        number === 6 ? undefined : expected,
        `${writer} t/${number}`,
      );
    }
    const records = container.takeRequests().filter((request) => request.endsWith(".parq"));
    t.same(
      records,
      [0, 1, 2].map((record) => `read refs/t/refs.${record}.parq`),
      "each record once",
    );
    t.same(Buffer.from((await store.read("g/grid/0.0"))!.bytes), Buffer.from("raw \x00\xff bytes", "latin1"));
    t.equal(await textOf(store, "g/grid/0.1"), undefined);
    t.equal(await textOf(store, "g/grid/0.2"), "all");
    t.equal(await textOf(store, "g/grid/1.1"), "56789ab");
    t.equal(await textOf(store, "scalar/0"), "1");
    for (const key of [
      "t/10",
      "t/00",
      "t/-1",
      "t/x",
      "t/0.0",
      "g/grid/0.3",
      "g/grid/2.0",
      "g/0",
      "none/0",
      "0",
      "t",
    ]) {
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

t.test("an array without records has no chunks, as long as the references are there", async (t) => {
  const { store, container } = await open("fastparquet");
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
    const { container, options } = await open(writer);
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
      '{"metadata": {}}',
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
