import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { openChunkReader } from "../../src/source/chunk-reader.js";
import { createLocalDirectorySource } from "../../src/source/local-directory/create-local-directory-source.js";
import { createDirectoryPool, readDirectories } from "../../src/source/verified-directories.js";
import { makeDirectory, writeFiles, zarray } from "./write-store.js";

t.setTimeout(120_000);
const found = Object.freeze({ real: "/r", device: 1n });

t.test("users of a pool have one bound, and see nothing of each other", async (t) => {
  const pool = createDirectoryPool(10);
  const users = Array.from({ length: 4 }, () => pool.open());
  let largest = 0;
  for (let n = 0; n < 100; n++) {
    users[n % 4]?.set(`/${n}`, found);
    largest = Math.max(largest, pool.size);
  }
  t.equal(largest, 10);
  const counts = users.map((user) =>
    Array.from({ length: 100 }, (_, n) => user.get(`/${n}`)).filter(Boolean),
  );
  t.equal(counts.flat().length, pool.size, "it says what there is");
  t.equal(users[3]?.get("/99"), found, "the last one is kept");
  t.equal(users[0]?.get("/99"), undefined);
});

t.test("a directory that is verified again is counted once", async (t) => {
  const pool = createDirectoryPool(2);
  const user = pool.open();
  user.set("/a", found);
  for (let n = 0; n < 5; n++) user.set("/b", { ...found, device: BigInt(n) });
  t.equal(pool.size, 2);
  t.equal(user.get("/a"), found);
  t.equal(user.get("/b")?.device, 4n);
});

t.test("many readers of many directories keep a bounded number of them", async (t) => {
  const MAX = 8192;
  const ARRAYS = 24;
  const DIRECTORIES = 400;
  const root = await makeDirectory(t);
  for (let n = 0; n < ARRAYS * DIRECTORIES; n++) {
    const directory = join(root, `v${Math.floor(n / DIRECTORIES)}`, String(n % DIRECTORIES));
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, "0"), "chunk");
  }
  const readers = Array.from({ length: ARRAYS }, (_, array) =>
    openChunkReader(
      array % 2 === 0
        ? {
            kind: "files",
            directory: join(root, `v${array}`),
            root,
            keyEncoding: { name: "v2", separator: "/" },
          }
        : {
            kind: "shards",
            directory: join(root, `v${array}`),
            root,
            keyEncoding: { name: "v2", separator: "/" },
            chunksPerShard: [1, 1],
            indexLocation: "end",
            indexChecksum: false,
            indexByteOrder: "<",
          },
      true,
    ),
  );
  let largest = 0;
  for (const reader of readers) {
    const stamps = Array.from({ length: DIRECTORIES }, async (_, n) => {
      const stamp = await reader.stamp([n, 0]);
      largest = Math.max(largest, readDirectories.size);
      return stamp;
    });
    if ((await Promise.all(stamps)).includes(undefined)) t.fail("expected a chunk");
  }
  // It may have been full, and emptied, between two looks.
  t.ok(largest <= MAX && largest > MAX / 2, `${largest} of ${ARRAYS * DIRECTORIES}`);
  t.equal(readDirectories.size, ARRAYS * DIRECTORIES - MAX);
  t.equal(readers[0]?.lookNow?.([0, 0]), undefined, "what was forgotten is not taken for verified");
  t.match(await readers[0]?.stamp([0, 0]), /^[0-9a-z]+\.5$/, "but verified anew");
  t.ok(readers[0]?.lookNow?.([0, 0]));
});

t.test("directories of a store's metadata leave those of chunks alone", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { ".zgroup": { zarr_format: 2 }, "g/v/.zarray": zarray });
  const before = readDirectories.size;
  const source = createLocalDirectorySource(root);
  t.equal((await source.readTree()).groups.flatMap(({ arrays }) => arrays).length, 1);
  await source.close();
  t.equal(readDirectories.size, before);
});
