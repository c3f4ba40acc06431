import { join } from "node:path";
import { FileSystemStore, ReferenceStore, ZipFileStore } from "@zarrita/storage";
import t, { type Test } from "tap";
import * as zarr from "zarrita";
import * as zpublish from "../../src/index.js";
import {
  bytes,
  consolidated,
  filesOf,
  mapOf,
  serve,
  writeStores,
} from "../support/datasets/sample-stores.js";
import { startFaultyOrigin } from "../support/origins/faulty-origin.js";
import { makeDirectory, zarray, zgroup } from "../support/write-store.js";
import { writeZip } from "../support/write-zip.js";

/** Paths below a dataset that are compared: documents, all chunks, and chunks that are not there. */
const V2_PATHS = [
  ...["zarr/.zmetadata", "zarr/t/.zarray", "zarr3/zarr.json", "zarr/t/9.9"],
  ...["t", "g/u"].flatMap((path) => ["0.0", "0.1", "1.0", "1.1"].map((key) => `zarr/${path}/${key}`)),
];
const V3_PATHS = [
  ...["zarr/.zmetadata", "zarr3/zarr.json"],
  ...["0", "1", "2"].map((shard) => `zarr3/s/c/${shard}`),
  ...["0", "1", "2", "3", "4", "5"].map((key) => `zarr/s/${key}`),
];

/** Creates every store over the files of a directory, by name. */
async function storesOver(t: Test, directory: string, name: string): Promise<Record<string, zarr.Readable>> {
  const files = await filesOf(join(directory, name));
  const zip = writeZip([...files].map(([name, content]) => ({ name, content })));
  const packed = Buffer.concat([...files.values()]);
  const origin = await startFaultyOrigin(t, { directory, objects: { "store.zip": zip, packed } });
  const fetched = new zarr.FetchStore(`${origin.url}/${name}`);
  let offset = 0;
  const refs = Object.fromEntries(
    [...files].map(([key, content]) => {
      offset += content.length;
      return [key, [`${origin.url}/packed`, offset - content.length, content.length]];
    }),
  );
  return {
    Map: mapOf(files),
    FileSystemStore: new FileSystemStore(join(directory, name)),
    FetchStore: fetched,
    "FetchStore with suffixes": new zarr.FetchStore(fetched.url, { useSuffixRequest: true }),
    "ZipFileStore of a blob": ZipFileStore.fromBlob(new Blob([zip])),
    "ZipFileStore of a URL": ZipFileStore.fromUrl(`${origin.url}/store.zip`),
    ReferenceStore: ReferenceStore.fromSpec({ version: 1, refs }),
    withConsolidatedMetadata: await zarr.withConsolidatedMetadata(fetched),
    withRangeCoalescing: zarr.withRangeCoalescing(fetched),
    withByteCaching: zarr.withByteCaching(fetched),
    "all of these": zarr.withByteCaching(
      zarr.withRangeCoalescing(await zarr.withConsolidatedMetadata(fetched)),
    ),
  };
}

for (const [name, paths] of [
  ["v2", V2_PATHS],
  ["v3", V3_PATHS],
] as const) {
  t.test(`every store of zarrita serves what the directory serves (${name})`, async (t) => {
    const directory = await writeStores(t);
    const stores = await storesOver(t, directory, name);
    const location = join(directory, name);
    const encoding = { chunks: name === "v2" ? [3, 3] : [5], compressor: { id: "zlib", level: 1 } };
    const datasets: Record<string, zpublish.DatasetOptions> = {
      "local-stored": { source: location },
      "local-packed": { source: location, encoding },
    };
    const ids = Object.keys(stores).map((store, index) => [store, `store-${index}`] as const);
    for (const [store, id] of ids) {
      const source = await zpublish.zarrStoreSource(stores[store] as zarr.Readable);
      datasets[`${id}-stored`] = { source };
      datasets[`${id}-packed`] = { source, encoding };
    }
    const { get } = await serve(t, datasets);
    for (const variant of ["stored", "packed"]) {
      for (const path of paths) {
        const expected = await contentOf(await get(`local-${variant}/${path}`));
        for (const [store, id] of ids) {
          // Twice: a store may keep what it returned.
          for (const time of ["first", "second"]) {
            const received = await contentOf(await get(`${id}-${variant}/${path}`));
            t.same(received, expected, `${store} ${variant} ${path}, ${time} time`);
          }
        }
      }
    }
  });
}

async function contentOf(answer: Response): Promise<readonly [number, Buffer | undefined]> {
  const body = Buffer.from(await answer.arrayBuffer());
  // Errors name the dataset and the request.
  return [answer.status, answer.ok ? body : undefined];
}

t.test(
  "stores without a location share nothing in the cache, though their chunks have equal names",
  async (t) => {
    const files = await filesOf(join(await writeStores(t), "v2"));
    const other = mapOf(files);
    other.set("/t/0.0", bytes(200));
    const cache = { directory: await makeDirectory(t) };
    const encoding = { chunks: [4, 4], compressor: null };
    const datasets = {
      one: await zpublish.zarrStoreSource(mapOf(files)),
      other: await zpublish.zarrStoreSource(other),
    };
    const server = await zpublish.createServer({
      datasets: {
        ...datasets,
        one4: { source: datasets.one, encoding },
        other4: { source: datasets.other, encoding },
      },
      ...{ workers: 1, log: "fatal", cache },
    });
    t.teardown(() => server.close());
    const { url } = await server.listen({ port: 0 });
    const first = async (id: string) => {
      const answer = await fetch(`${url}/datasets/${id}/zarr/t/0.0`);
      return { value: new Uint8Array(await answer.arrayBuffer())[0], etag: answer.headers.get("etag") };
    };
    for (const [one, two] of [
      ["one", "other"],
      ["one4", "other4"],
    ] as const) {
      const [a, b] = [await first(one), await first(two)];
      t.same([a.value, b.value], [0, 200]);
      t.not(a.etag, b.etag);
    }
  },
);

t.test("servers that do not know ranges, or do not say lengths, never lead to wrong bytes", async (t) => {
  const directory = await writeStores(t);
  for (const fault of [
    { ignoreRange: true },
    { chunked: true, ignoreRange: true },
    { chunked: true },
  ] as const) {
    const origin = await startFaultyOrigin(t, { directory, fault: () => fault });
    const source = await zpublish.zarrStoreSource(new zarr.FetchStore(`${origin.url}/v3`));
    const { get } = await serve(t, { x: source });
    const answer = await get("x/zarr/s/0");
    t.equal(answer.status, 500, JSON.stringify(fault));
    // Whole objects need no range.
    const whole = await get("x/zarr3/s/c/0");
    if (!("ignoreRange" in fault)) t.equal(whole.status, 200);
  }
});

t.test("a version that changes is noticed, and versions are not mixed", async (t) => {
  const store = mapOf(await filesOf(join(await writeStores(t), "v2")));
  let version = "1";
  const source = await zpublish.zarrStoreSource(store, { version: async () => version });
  const { server, get } = await serve(t, { x: source });
  t.same(await answerOf(get("x/zarr/t/0.0")), [200, Buffer.from(bytes(0))]);
  t.equal((await get("x/zarr/t/1.0")).status, 404);
  store.set("/t/0.0", bytes(70));
  store.set("/t/1.0", bytes(80));
  store.set("/.zmetadata", consolidated({ title: "changed" }));
  version = "2";
  await server.refresh();
  t.same(await answerOf(get("x/zarr/t/0.0")), [200, Buffer.from(bytes(70))]);
  // Its absence is believed for a second.
  while ((await get("x/zarr/t/1.0")).status === 404);
  t.same(await answerOf(get("x/zarr/t/1.0")), [200, Buffer.from(bytes(80))]);
  t.match(await (await get("x/zarr/.zattrs")).json(), { title: "changed" });
});

t.test("bytes that were read while the version changed are not served", async (t) => {
  const files = mapOf(await filesOf(join(await writeStores(t), "v2")));
  let version = 1;
  let changes = 0;
  const store: zarr.AsyncReadable = {
    async get(key) {
      const found = files.get(key);
      if (key === "/t/0.0" && changes > 0) {
        changes -= 1;
        files.set(key, bytes(90 + changes));
        version += 1;
      }
      return found;
    },
  };
  const source = await zpublish.zarrStoreSource(store, { version: () => String(version) });
  const { get } = await serve(t, { x: source });
  changes = 1;
  t.same(await answerOf(get("x/zarr/t/0.0")), [200, Buffer.from(bytes(90))]);
  changes = Number.POSITIVE_INFINITY;
  t.equal((await get("x/zarr/t/0.0")).status, 503);
});

t.test("a store is walked by its list, if nothing is consolidated", async (t) => {
  const files = mapOf(await filesOf(join(await writeStores(t), "v2")));
  files.delete("/.zmetadata");
  await t.rejects(zpublish.zarrStoreSource(files), {
    code: "unsupported",
    message: /expected consolidated metadata/,
  });
  const asked: string[] = [];
  const list = async (prefix: string) => {
    asked.push(prefix);
    return { "": ["t", "g"], "g/": ["u"] }[prefix] ?? [];
  };
  const tree = await zpublish.zarrStoreSource(files, { list });
  t.same([...tree.groups.keys()], ["/", "/g"]);
  t.same([...(tree.groups.get("/g")?.variables.keys() ?? [])], ["u"]);
  t.same(asked.sort(), ["", "g/"]);
  const { get } = await serve(t, { x: tree });
  t.same(await answerOf(get("x/zarr/g/u/1.1")), [200, Buffer.from(bytes(50))]);
  t.equal((await get("x/zarr/g/u/1.0")).status, 404);
});

t.test("chunks whose names no URL has are refused, not read from elsewhere", async (t) => {
  const names = ["a#b", "a?b", "a%20b", "http:b", "a\\b"];
  const origin = await startFaultyOrigin(t, {
    objects: {
      ".zmetadata": JSON.stringify({
        zarr_consolidated_format: 1,
        metadata: {
          ".zgroup": zgroup,
          ...Object.fromEntries(names.map((name) => [`${name}/.zarray`, zarray])),
        },
      }),
      // What FetchStore would ask for.
      ...{ a: "xx", "b/0": "xx", "a b/0": "xx", "a/b/0": "xx" },
    },
  });
  const tree = await zpublish.zarrStoreSource(new zarr.FetchStore(origin.url));
  const { get } = await serve(t, { x: tree });
  for (const name of names) {
    if (tree.root.variables.has(name))
      t.equal((await get(`x/zarr/${encodeURIComponent(name)}/0`)).status, 500, name);
    else t.ok(tree.refused.length > 0, name);
  }
  t.ok(tree.root.variables.size >= 3);
});

t.test("what a store does wrong is an error that says so", async (t) => {
  const files = mapOf(await filesOf(join(await writeStores(t), "v2")));
  const broken = (get: (key: string) => unknown) =>
    ({ get: async (key: string) => get(key) }) as zarr.AsyncReadable;
  const failing = (message: string) => () => {
    throw new TypeError(message);
  };
  const secret = broken(failing("fetch https://user:secret@host/?token=1 failed"));
  const seven = (() => 7) as unknown as () => string;
  const received = /expected zarrita to return a/;
  for (const [store, options, code, message] of [
    [secret, { location: "my data" }, "source-unreadable", /^(?!.*secret).*my data cannot be read/],
    [broken(() => undefined), {}, "invalid-metadata", /no Zarr store/],
    [broken(() => "text"), {}, "source-unreadable", received],
    [files, { version: failing("no version") }, "source-unreadable", /./],
    [files, { version: seven }, "source-unreadable", received],
  ] as const)
    await t.rejects(zpublish.zarrStoreSource(store, options), { code, message });
  let fails = false;
  const source = await zpublish.zarrStoreSource(
    broken((key) => {
      if (fails) throw new Error("gone");
      return files.get(key as `/${string}`);
    }),
  );
  const { get } = await serve(t, { x: source });
  fails = true;
  t.equal((await get("x/zarr/t/0.0")).status, 500);
  fails = false;
  t.equal((await get("x/zarr/t/0.0")).status, 200);
  // A store that has lost everything has no absent chunks.
  files.clear();
  t.equal((await get("x/zarr/t/0.1")).status, 500);
});

async function answerOf(asked: Promise<Response>): Promise<readonly [number, Buffer]> {
  const answer = await asked;
  return [answer.status, Buffer.from(await answer.arrayBuffer())];
}
