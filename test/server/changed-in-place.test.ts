import { mkdir, readFile, rename, rm, stat, symlink, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { openConnection, type RawConnection } from "../support/servers/raw-request.js";
import { startServer } from "../support/servers/start-server.js";

const CHUNK = "/datasets/d/zarr/v/0";

/** Writes one array of bytes in two chunks of 8, uncompressed. */
async function serve(t: Test, served: object = {}, cache = true) {
  const directory = t.testdir({ store: { v: {} }, cache: {} });
  const location = join(directory, "store");
  const document = {
    chunks: [8],
    compressor: null,
    dtype: "|u1",
    fill_value: 0,
    filters: null,
    order: "C",
    shape: [16],
    zarr_format: 2,
  };
  await writeFile(join(location, ".zgroup"), '{"zarr_format":2}');
  await writeFile(join(location, "v/.zarray"), JSON.stringify(document));
  for (const key of ["0", "1"]) await writeFile(join(location, `v/${key}`), "first...");
  await sleep(30);
  const { url } = await startServer(t, {
    cache: cache ? { directory: join(directory, "cache"), maxBytes: 2 ** 22 } : null,
    datasets: [{ id: "d", location, immutable: false, encoding: {}, variables: {}, ...served }],
  });
  const connection = await openConnection(Number(new URL(url).port));
  t.teardown(() => connection.socket.destroy());
  return { directory, location, file: join(location, "v/0"), connection };
}

async function ask(connection: RawConnection, headers = "") {
  connection.send(`GET ${CHUNK} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`);
  return connection.answer();
}

/** Requests it until it takes the shortest way. */
async function askOften(connection: RawConnection) {
  for (let i = 0; i < 8; i++) await ask(connection);
}

for (const [title, served] of [
  ["passed through", {}],
  ["rechunked", { encoding: { chunks: [4], compressor: null } }],
] as const) {
  for (const cache of [true, false]) {
    t.test(
      `${title}, ${cache ? "cached" : "not cached"}: rewritten chunks are never served stale`,
      async (t) => {
        const { file, connection } = await serve(t, served, cache);
        let etag: string | undefined;
        let modified: bigint | undefined;
        for (let round = 0; round < 40; round++) {
          const content = `round ${String(round).padStart(2, "0")}`;
          // In place with the same length, or by another file, as zarr-python does.
          if (round % 2 === 0) await writeFile(file, content);
          else {
            await writeFile(`${file}.new`, content);
            await rename(`${file}.new`, file);
          }
          const answer = await ask(connection);
          t.equal(answer.status, 200);
          t.equal(answer.body.toString(), content.slice(0, answer.body.length));
          // The clock of a virtual machine that was stopped for a moment may give two files one time.
          const { mtimeNs } = await stat(file, { bigint: true });
          if (mtimeNs !== modified) t.not(answer.headers.etag, etag);
          modified = mtimeNs;
          etag = answer.headers.etag;
          const again = await ask(connection, `If-None-Match: ${etag}\r\n`);
          t.equal(again.status, 304);
          if (round % 4 === 0) await askOften(connection);
        }
      },
    );
  }
}

t.test("a warm chunk that is removed is absent, and one that is written is served", async (t) => {
  const { file, connection } = await serve(t);
  await askOften(connection);
  await unlink(file);
  t.equal((await ask(connection)).status, 404);
  await writeFile(file, "again...");
  t.equal((await ask(connection)).body.toString(), "again...");
});

t.test("a warm chunk of a store that disappears is a failure, not absent", async (t) => {
  const { location, connection } = await serve(t);
  await askOften(connection);
  await rm(location, { recursive: true });
  t.equal((await ask(connection)).status, 500);
  await mkdir(location);
});

t.test("a link in place of a warm chunk is followed within the store only", async (t) => {
  const { directory, location, file, connection } = await serve(t);
  await askOften(connection);
  await unlink(file);
  await symlink(join(location, "v/1"), file);
  t.equal((await ask(connection)).body.toString(), "first...");
  await askOften(connection);
  await writeFile(join(location, "v/1"), "changed.");
  t.equal((await ask(connection)).body.toString(), "changed.");
  await unlink(file);
  await writeFile(join(directory, "secret"), "secret..");
  await symlink(join(directory, "secret"), file);
  const answer = await ask(connection);
  t.equal(answer.status, 500);
  t.notMatch(answer.body.toString(), "secret");
  t.ok(await readFile(file));
});
