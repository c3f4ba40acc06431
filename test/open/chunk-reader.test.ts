import { mkdir, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { crc32c } from "../../src/codec/checksums.js";
import type { ChunkSource, FileChunks, ShardChunks, ShardLevel } from "../../src/zarr/chunk-reader.js";
import { openReader } from "../support/async-reader.js";
import { makeDirectory, makeOld, writeFiles, zarray } from "../support/write-store.js";

function files(root: string, changes: Partial<FileChunks> = {}): FileChunks {
  return {
    kind: "files",
    directory: join(root, "v"),
    root,
    metadataFile: join(root, "v/.zarray"),
    keyEncoding: { name: "v2", separator: "." },
    ...changes,
  };
}

t.test("a chunk comes with its bytes, length and version", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "v/.zarray": zarray, "v/1.2": "chunk", "v/1.3": "" });
  const reader = openReader(files(root));
  const chunk = await reader.read([1, 2]);
  t.equal(Buffer.from(chunk?.bytes ?? []).toString(), "chunk");
  t.equal(chunk?.bytes.buffer.byteLength, 5, "the memory is the caller's alone");
  t.equal(await reader.version([1, 2]), chunk?.version);
  t.match(chunk?.version, /^[0-9a-z]+\.5$/);
  t.equal((await reader.read([1, 3]))?.bytes.byteLength, 0);
});

t.test("an absent chunk is undefined", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "v/.zarray": zarray, "v/0": "a file, not a directory" });
  for (const separator of [".", "/"] as const) {
    const reader = openReader(files(root, { keyEncoding: { name: "v2", separator } }));
    t.equal(await reader.read([0, 7]), undefined);
    t.equal(await reader.version([0, 7]), undefined);
  }
});

t.test("a store that is gone is a failure, not an absent chunk", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "v/.zarray": zarray, "v/0": "x" });
  const reader = openReader(files(root));
  t.ok(await reader.read([0]));
  await rm(join(root, "v"), { recursive: true });
  for (const ask of [reader.read, reader.version]) {
    await t.rejects(async () => void (await ask([0])), {
      code: "source-unreadable",
      message: /metadata of its array is no longer/,
    });
  }
});

t.test("anything but a file is a failure, and is not waited for", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "v/.zarray": zarray });
  await mkdir(join(root, "v/0"));
  const reader = openReader(files(root));
  for (const ask of [reader.read, reader.version]) {
    const error = await ask([0]).catch((error: Error) => error);
    t.match(error, { code: "source-unreadable", message: "'v/0' expected a file, found a directory" });
  }
});

t.test("links within the store are followed, others are refused by name", async (t) => {
  const outside = await makeDirectory(t);
  const root = await makeDirectory(t);
  await writeFiles(outside, { secret: "secret", "dir/0": "secret" });
  await writeFiles(root, { "v/.zarray": zarray, "objects/a": "inside" });
  await symlink(join(root, "objects/a"), join(root, "v/0"));
  await symlink(join(outside, "secret"), join(root, "v/1"));
  await symlink(join(root, "objects/nothing"), join(root, "v/2"));
  await symlink(join(outside, "dir"), join(root, "v/3"));
  await symlink("4", join(root, "v/4"));
  const reader = openReader(files(root));
  t.equal(Buffer.from((await reader.read([0]))?.bytes ?? []).toString(), "inside");
  const nested = openReader(files(root, { keyEncoding: { name: "v2", separator: "/" } }));
  const leaves = { code: "source-unreadable", message: /leaves the store/ };
  await t.rejects(reader.read([1]), {
    ...leaves,
    message: "'v/1' is reached by a link that leaves the store",
  });
  await t.rejects(reader.version([1]), leaves);
  await t.rejects(nested.read([3, 0]), leaves);
  await t.rejects(nested.version([3, 0]), leaves);
  await t.rejects(reader.read([2]), {
    code: "source-unreadable",
    message: /a link that leads nowhere \(ENOENT\)/,
  });
  await t.rejects(reader.read([4]), { code: "source-unreadable", message: /leads nowhere \(ELOOP\)/ });
});

t.test("a directory in one store is refused to another store whose link leads there", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "inner/.zgroup": "{}", "outside/0": "chunk" });
  await symlink(join(root, "outside"), join(root, "inner/v"));
  const directory = join(root, "inner/v");
  const outer = openReader(files(root, { directory, metadataFile: join(root, "inner/.zgroup") }));
  const inner = openReader(files(join(root, "inner"), { directory }));
  t.ok(await outer.version([0]));
  t.ok(await outer.read([0]));
  await t.rejects(inner.version([0]), { message: "'v/0' is reached by a link that leaves the store" });
  await t.rejects(inner.read([0]), { code: "source-unreadable", message: /leaves the store/ });
  t.equal(inner.versionNow([0]), undefined);
});

t.test("a rewrite changes the version, however quick it is", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "v/.zarray": zarray });
  const path = join(root, "v/0");
  const reader = openReader(files(root));
  const versions = new Set<string | undefined>();
  for (let i = 0; i < 10; i++) {
    await writeFile(path, String(i));
    const chunk = await reader.read([0]);
    t.equal(Buffer.from(chunk?.bytes ?? []).toString(), String(i));
    versions.add(chunk?.version);
    t.equal(await reader.version([0]), chunk?.version);
  }
  t.equal(versions.size, 10);
});

t.test("a chunk that is read while it is rewritten has one whole state", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "v/.zarray": zarray });
  const path = join(root, "v/0");
  await writeFile(path, Buffer.alloc(500_001, 1));
  await makeOld(path);
  let isDone = false;
  const writing = (async () => {
    for (let value = 2; !isDone; value = (value % 250) + 1) {
      await writeFile(`${path}.new`, Buffer.alloc(500_000 + value, value));
      await rename(`${path}.new`, path);
    }
  })();
  const reader = openReader(files(root));
  for (let i = 0; i < 20; i++) {
    const bytes = (await reader.read([0]))?.bytes as Uint8Array;
    const value = bytes[0] as number;
    if (bytes.length !== 500_000 + value || bytes.some((byte) => byte !== value)) {
      t.fail(`received a mixture of ${bytes.length} bytes`);
    }
  }
  isDone = true;
  await writing;
});

function level(changes: Partial<ShardLevel> = {}): ShardLevel {
  return {
    chunksPerShard: [2, 2],
    indexLocation: "end",
    indexChecksum: true,
    indexByteOrder: "<",
    ...changes,
  };
}

/** A source of shards, outermost level first. */
function shard(root: string, ...levels: readonly Partial<ShardLevel>[]): ShardChunks {
  return {
    kind: "shards",
    directory: join(root, "v"),
    root,
    keyEncoding: { name: "default", separator: "/" },
    levels: (levels.length === 0 ? [{}] : levels).map(level),
  };
}

/** A shard of the given chunks; null is an absent one. */
function writeShard(chunks: readonly (string | Buffer | null)[], layout: ShardLevel = level()): Buffer {
  const indexLength = chunks.length * 16 + (layout.indexChecksum ? 4 : 0);
  let offset = layout.indexLocation === "start" ? indexLength : 0;
  const index = Buffer.alloc(indexLength);
  const put = (value: bigint, at: number) =>
    layout.indexByteOrder === "<" ? index.writeBigUInt64LE(value, at) : index.writeBigUInt64BE(value, at);
  chunks.forEach((chunk, i) => {
    put(chunk === null ? 2n ** 64n - 1n : BigInt(offset), i * 16);
    put(chunk === null ? 2n ** 64n - 1n : BigInt(chunk.length), i * 16 + 8);
    offset += chunk?.length ?? 0;
  });
  if (layout.indexChecksum) index.writeUInt32LE(crc32c(index.subarray(0, -4)), indexLength - 4);
  const body = Buffer.concat(chunks.map((chunk) => Buffer.from(chunk ?? "")));
  return Buffer.concat(layout.indexLocation === "start" ? [index, body] : [body, index]);
}

t.test("inner chunks are found whether the index is at the start or end of their shard", async (t) => {
  for (const indexLocation of ["start", "end"] as const) {
    for (const indexChecksum of [true, false]) {
      for (const indexByteOrder of ["<", ">"] as const) {
        const root = await makeDirectory(t);
        const layout = level({ indexLocation, indexChecksum, indexByteOrder });
        const source = shard(root, layout);
        await writeFiles(root, {
          "v/c/0/0": writeShard(["a", "bb", null, "dddd"], layout),
          "v/c/1/2": writeShard(["e", "f", "ggg", ""], layout),
        });
        const reader = openReader(source);
        const text = async (...coords: number[]) => {
          const chunk = await reader.read(coords);
          return chunk === undefined ? undefined : Buffer.from(chunk.bytes).toString();
        };
        t.equal(await text(0, 0), "a");
        t.equal(await text(0, 1), "bb");
        t.equal(await text(1, 0), undefined);
        t.equal(await text(1, 1), "dddd");
        t.equal(await text(3, 4), "ggg");
        t.equal(await text(3, 5), "");
        t.equal(await text(9, 9), undefined);
        t.equal(await reader.version([0, 0]), (await reader.read([1, 1]))?.version);
        t.equal(await reader.version([9, 9]), undefined);
      }
    }
  }
});

t.test("inner chunks of nested shards are found through every index", async (t) => {
  const root = await makeDirectory(t);
  const outer = level({ chunksPerShard: [1, 2], indexLocation: "start" });
  const inner = level({ indexByteOrder: ">", indexChecksum: false });
  const source = shard(root, outer, inner);
  const first = writeShard(["a", "bb", null, "dddd"], inner);
  await writeFiles(root, {
    "v/c/0/0": writeShard([first, writeShard(["e", "ff", "ggg", "h"], inner)], outer),
    "v/c/1/0": writeShard([null, first], outer),
  });
  const reader = openReader(source);
  const expected = [
    ["a", "bb", "e", "ff"],
    [undefined, "dddd", "ggg", "h"],
    [undefined, undefined, "a", "bb"],
    [undefined, undefined, undefined, "dddd"],
    [undefined],
  ];
  const read = async (coords: readonly number[]) => {
    const chunk = await reader.read(coords);
    return chunk && Buffer.from(chunk.bytes).toString();
  };
  for (const indexes of ["read", "cached"]) {
    for (const [row, texts] of expected.entries()) {
      for (const [column, text] of texts.entries()) {
        t.equal(await read([row, column]), text, `${row}, ${column}, indexes ${indexes}`);
      }
    }
  }
  t.equal(await reader.version([0, 0]), (await reader.read([1, 3]))?.version, "the whole file's");

  const layouts = [level({ chunksPerShard: [1, 3] }), level({ chunksPerShard: [2, 1] }), level()] as const;
  const chunk = writeShard(["a", "b", "c", "d"], layouts[2]);
  await writeFiles(root, {
    "v/c/0/0": writeShard([null, writeShard([null, chunk], layouts[1]), null], layouts[0]),
  });
  const deep = openReader(shard(root, ...layouts));
  t.equal(Buffer.from((await deep.read([3, 2]))?.bytes ?? []).toString(), "c");
  t.equal(await deep.read([1, 2]), undefined);
  t.equal(await deep.read([3, 1]), undefined);
});

/** A copy with another byte in its index. */
const flip = (shard: Buffer) =>
  shard.map((byte, at) => (at === shard.length - 30 ? byte ^ 1 : byte)) as Buffer;

t.test("a damaged shard within a shard is corrupt, and the error names it", async (t) => {
  const root = await makeDirectory(t);
  const unchecked = level({ indexChecksum: false });
  const good = writeShard(["a", "bb", null, "dddd"]);
  const flipped = flip(good);
  const outside = writeShard(["a", "bb", null, "dddd"], unchecked);
  // Within the file, but outside of its own shard.
  outside.writeBigUInt64LE(71n, 7);
  await writeFiles(root, {
    "v/c/0/0": writeShard(["", flipped, good.subarray(0, 67), good]),
    "v/c/1/0": writeShard([outside, good, good, good]),
  });
  const corrupt = (message: string) => ({ code: "corrupt-chunk", message, details: { key: "c/0/0" } });
  const reader = openReader(shard(root, {}, {}));
  const expected = "expected at least the 68 bytes of its index, received";
  await t.rejects(reader.read([0, 0]), corrupt(`shard 'c/0/0', inner shard 0: ${expected} 0 bytes`));
  await t.rejects(reader.read([0, 2]), {
    code: "corrupt-chunk",
    message: /^shard 'c\/0\/0', inner shard 1: expected its index to have crc32c \d+, received \d+$/,
  });
  t.equal(Buffer.from((await reader.read([3, 3]))?.bytes ?? []).toString(), "dddd");
  await t.rejects(openReader(shard(root, {}, unchecked)).read([4, 0]), {
    code: "corrupt-chunk",
    message:
      "shard 'c/1/0', inner shard 0: expected inner chunk 0 within its 71 bytes, received offset 71 and length 1",
  });
  await t.rejects(reader.read([3, 3], { maxByteLength: 3 }), {
    code: "corrupt-chunk",
    message: "shard 'c/0/0', inner shard 3: inner chunk 3: expected at most 3 stored bytes, received 4",
  });
});

t.test("a rewritten shard is read by its new index", async (t) => {
  const root = await makeDirectory(t);
  const source = shard(root);
  await writeFiles(root, { "v/c/0/0": writeShard(["a", "bb", null, "dddd"]) });
  const reader = openReader(source);
  t.equal((await reader.read([0, 1]))?.bytes.length, 2);
  await writeFile(join(root, "v/c/0/0"), writeShard(["aaaa", "b", "c", null]));
  t.equal(Buffer.from((await reader.read([0, 1]))?.bytes ?? []).toString(), "b");
  t.equal(await reader.read([1, 1]), undefined);
});

t.test(
  "a shard is read by the index of its present metadata, even if an index of earlier metadata is cached",
  async (t) => {
    const root = await makeDirectory(t);
    const layout = level({ indexChecksum: false });
    await writeFiles(root, { "v/c/0/0": writeShard(["a", "bb", "ccc", "dddd"], layout) });
    const first = async (corrected: Partial<ShardLevel>) => {
      const chunk = await openReader(shard(root, { ...layout, ...corrected })).read([0, 0]);
      return Buffer.from(chunk?.bytes ?? []).toString();
    };
    t.equal(await first({ chunksPerShard: [1, 2] }), "ccc");
    t.equal(await first({}), "a");
    await t.rejects(first({ indexLocation: "start" }), { code: "corrupt-chunk" });
    t.equal(await first({}), "a");
  },
);

t.test("a chunk that is too long is refused before memory is allocated for it", async (t) => {
  const root = await makeDirectory(t);
  const source = shard(root);
  await writeFiles(root, {
    "v/.zarray": zarray,
    "v/0": "chunk",
    "v/c/0/0": writeShard(["a", "bb", null, "dddd"]),
  });
  let allocated = 0;
  const allocate = (byteLength: number) => {
    allocated += byteLength;
    return new Uint8Array(byteLength);
  };
  const read = async (from: ChunkSource, coords: readonly number[], maxByteLength: number | undefined) =>
    (await openReader(from).read(coords, { allocate, maxByteLength }))?.bytes.length;
  await t.rejects(read(files(root), [0], 4), {
    code: "corrupt-chunk",
    message: "chunk '0': expected at most 4 stored bytes, received 5",
    details: { expected: 4, received: 5 },
  });
  await t.rejects(read(source, [1, 1], 3), {
    code: "corrupt-chunk",
    message: "shard 'c/0/0': inner chunk 3: expected at most 3 stored bytes, received 4",
  });
  t.equal(allocated, 0);
  t.equal(await read(files(root), [0], 5), 5);
  t.equal(await read(files(root), [0], undefined), 5);
  t.equal(await read(source, [0, 1], 3), 2, "whatever the length of its shard");
  t.equal(await read(source, [1, 0], 0), undefined);
});

t.test("a damaged shard is corrupt, and the error says why", async (t) => {
  const root = await makeDirectory(t);
  const source = shard(root);
  const good = writeShard(["a", "bb", null, "dddd"]);
  const flipped = flip(good);
  const unchecked = level({ indexChecksum: false });
  const outside = writeShard(["a", "bb", null, "dddd"], unchecked);
  outside.writeBigUInt64LE(1000n, 7);
  const empty = Buffer.from(outside);
  empty.writeBigUInt64LE(2n ** 64n - 1n, 7);
  await writeFiles(root, {
    "v/c/0/0": flipped,
    "v/c/1/0": good.subarray(0, 20),
    "v/c/2/0": outside,
    "v/c/3/0": empty,
  });
  const reader = openReader(source);
  const other = openReader(shard(root, unchecked));
  for (const [from, row, message] of [
    [reader, 0, /shard 'c\/0\/0': expected its index to have crc32c \d+, received \d+/],
    [reader, 2, /expected at least the 68 bytes of its index, received 20 bytes/],
    [other, 4, /inner chunk 0 within its 71 bytes, received offset 1000 and length 1/],
    [other, 6, /received offset 18446744073709551615 and length 1/],
  ] as const)
    await t.rejects(from.read([row, 0]), { code: "corrupt-chunk", message });
});

t.test("an array in memory is its one chunk, shared", async (t) => {
  const buffer = new SharedArrayBuffer(8);
  new Uint8Array(buffer).set([0, 1, 2, 3, 4, 5, 6, 7]);
  const reader = openReader({ kind: "memory", buffer, byteOffset: 2, byteLength: 4 });
  const chunk = await reader.read([0, 0]);
  t.same([...(chunk?.bytes ?? [])], [2, 3, 4, 5]);
  t.equal(chunk?.bytes.buffer, buffer);
  t.equal(await reader.version([0]), chunk?.version);
});

t.test("files that are not modified have the same version", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "v/.zarray": zarray, "v/0": "x" });
  const first = await openReader(files(root)).version([0]);
  t.equal(await openReader(files(root)).version([0]), first);
  const { mtimeNs, size } = await stat(join(root, "v/0"), { bigint: true });
  t.equal(first, `${mtimeNs.toString(36)}.${size.toString(36)}`);
});
