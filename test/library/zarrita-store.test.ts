import { join } from "node:path";
import { FileSystemStore, ReferenceStore, ZipFileStore } from "@zarrita/storage";
import t, { type Test } from "tap";
import * as zarr from "zarrita";
import * as zpublish from "../../src/index.js";
import { filesOf, mapOf, serve, writeStores } from "../support/datasets/sample-stores.js";
import { startFaultyOrigin } from "../support/origins/faulty-origin.js";
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
