import { appendFileSync } from "node:fs";
import { symlink, utimes } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import type { FileChunks, ShardChunks, StoredChunk } from "../../../src/zarr/chunk-reader.js";
import { openReader } from "../../support/async-reader.js";
import { makeDirectory, writeFiles, zarray } from "../../support/write-store.js";

function files(root: string, changes: Partial<FileChunks> = {}): FileChunks {
  const directory = join(root, "v");
  const metadataFile = join(directory, ".zarray");
  return {
    kind: "files",
    directory,
    root,
    metadataFile,
    keyEncoding: { name: "v2", separator: "." },
    ...changes,
  };
}

const textOf = (chunk: StoredChunk | undefined) => chunk && Buffer.from(chunk.bytes).toString();

t.test("a direct read yields the same as another read", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "v/.zarray": zarray, "v/0": "chunk", "v/1": "", "v/2": Buffer.alloc(100_000, 7) });
  await symlink(join(root, "v"), join(root, "link"));
  const linked = openReader({ ...files(root), directory: join(root, "link") });
  t.equal(linked.readNow([0]), undefined, "a link may lead to what does not answer");
  t.equal(textOf(await linked.read([0])), "chunk");
  t.ok(linked.readNow([0]));
  const reader = openReader(files(root));
  t.ok(reader.readNow([0]), "a directory of the store itself is verified at once");
  for (const key of [0, 1, 2]) {
    const read = await reader.read([key]);
    const now = reader.readNow([key]);
    t.ok(now !== undefined);
    t.same([textOf(now), now?.version], [textOf(read), read?.version]);
  }
  const memory = new Uint8Array(5);
  const allocate = (byteLength: number) => memory.subarray(0, byteLength);
  t.equal(reader.readNow([0], { allocate, maxByteLength: 5 })?.bytes.buffer, memory.buffer);
});

t.test("unusual files are not read directly", async (t) => {
  const outside = await makeDirectory(t);
  const root = await makeDirectory(t);
  await writeFiles(outside, { secret: "secret" });
  await writeFiles(root, { "v/.zarray": zarray, "v/0": "chunk", "v/4": "chunk", "v/5/0": "chunk" });
  await symlink(join(root, "v/0"), join(root, "v/1"));
  await symlink(join(outside, "secret"), join(root, "v/2"));
  const reader = openReader(files(root));
  await reader.read([0]);
  const now = (key: number, options = {}) => reader.readNow([key], options);
  t.ok(now(0));
  t.equal(now(1), undefined, "a link");
  t.equal(textOf(await reader.read([1])), "chunk");
  t.equal(now(2), undefined, "a link that leaves the store");
  await t.rejects(reader.read([2]), { message: /leaves the store/ });
  t.equal(now(3), undefined, "an absent chunk");
  t.equal(now(5), undefined, "a directory");
  t.equal(now(0, { maxByteLength: 4 }), undefined, "one that is too long");
  await t.rejects(reader.read([0], { maxByteLength: 4 }), { code: "corrupt-chunk" });
  await utimes(join(root, "v/4"), new Date(), new Date());
  t.equal(now(4), undefined, "one that was written just now");
  t.equal(textOf(await reader.read([4])), "chunk");
});

t.test("a chunk that changes during a direct read is read again", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "v/.zarray": zarray, "v/0": "chunk" });
  const reader = openReader(files(root));
  await reader.read([0]);
  let changes = 0;
  const allocate = (byteLength: number) => {
    if (changes++ === 0) appendFileSync(join(root, "v/0"), "s");
    return new Uint8Array(byteLength);
  };
  t.equal(textOf(await reader.read([0], { allocate })), "chunks");
});

t.test("an inner chunk is read directly, and the indexes of its shards", async (t) => {
  const root = await makeDirectory(t);
  const source: ShardChunks = {
    kind: "shards",
    directory: join(root, "v"),
    root,
    keyEncoding: { name: "default", separator: "/" },
    levels: [{ chunksPerShard: [3], indexLocation: "start", indexChecksum: false, indexByteOrder: "<" }],
  };
  const index = new BigUint64Array([48n, 1n, 2n ** 64n - 1n, 2n ** 64n - 1n, 49n, 2n]);
  const shard = Buffer.concat([Buffer.from(index.buffer), Buffer.from("abb")]);
  await writeFiles(root, { "v/c/0": shard, "v/c/1": shard });
  const reader = openReader(source);
  await reader.version([0]);
  t.equal(textOf(reader.readNow([0])), "a", "its index is read before");
  for (const key of [0, 1, 2]) {
    const [now, read] = [reader.readNow([key]), await reader.read([key])];
    t.same([textOf(now), now?.version], [textOf(read), read?.version]);
  }
  t.equal(textOf(reader.readNow([2])), "bb");
  t.equal(reader.readNow([2], { maxByteLength: 1 }), undefined);
  t.equal(textOf(reader.readNow([3])), "a", "another shard");
  await writeFiles(root, { "v/c/0": Buffer.concat([shard, Buffer.from("c")]) });
  t.not(reader.readNow([0])?.version, reader.versionNow([3]), "a shard that was written again");
});

t.test(
  "after a slow read a store is read by other threads for a while, and other stores are not",
  async (t) => {
    const readers: ReturnType<typeof openReader>[] = [];
    for (const _ of [1, 2]) {
      const root = await makeDirectory(t);
      await writeFiles(root, { "v/.zarray": zarray, "v/0": "chunk" });
      const reader = openReader(files(root));
      await reader.read([0]);
      readers.push(reader);
    }
    const [slow, quick] = [readers[0]!, readers[1]!];
    const allocate = (byteLength: number) => {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60);
      return new Uint8Array(byteLength);
    };
    t.equal(textOf(slow.readNow([0], { allocate })), "chunk", "this slow read still succeeds");
    t.equal(slow.readNow([0]), undefined);
    t.equal(textOf(await slow.read([0])), "chunk");
    t.equal(textOf(quick.readNow([0])), "chunk");
    while (slow.readNow([0]) === undefined) await new Promise((resolve) => setTimeout(resolve, 20));
  },
);
