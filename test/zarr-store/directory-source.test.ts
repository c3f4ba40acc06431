import { chmod, mkdir, rename, rm, symlink, utimes } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { openChunkReader } from "../../src/open/chunk-reader.js";
import type { StoredTree } from "../../src/zarr/stored-tree.js";
import { createDirectorySource } from "../../src/zarr-store/zarr-source.js";
import { makeDirectory, v3Array, v3Group, writeFiles, zarray, zgroup } from "../support/write-store.js";

const read = (root: string) => createDirectorySource(root).readTree();
const groupPaths = (tree: StoredTree) => tree.groups.map((group) => group.path);
const arrayPaths = (tree: StoredTree) =>
  tree.groups.flatMap((group) => group.arrays.map((array) => array.path));

t.test("reads trees of any depth, v2 and v3, parents first and siblings sorted", async (t) => {
  const v2 = await makeDirectory(t);
  await writeFiles(v2, {
    ".zgroup": zgroup,
    ".zattrs": { title: "t" },
    "c/.zgroup": zgroup,
    "a/.zgroup": zgroup,
    "a/b/.zgroup": zgroup,
    "a/b/v/.zarray": zarray,
    "a/b/v/.zattrs": { units: "K" },
    "a-/.zgroup": zgroup,
    "z/.zarray": zarray,
    "y/.zarray": zarray,
    "y/0": "never looked at",
  });
  const v3 = await makeDirectory(t);
  await writeFiles(v3, {
    "zarr.json": { ...v3Group, attributes: { title: "t" } },
    "c/zarr.json": v3Group,
    "a/zarr.json": v3Group,
    "a/b/zarr.json": v3Group,
    "a/b/v/zarr.json": { ...v3Array, attributes: { units: "K" } },
    "a-/zarr.json": v3Group,
    "z/zarr.json": v3Array,
    "y/zarr.json": v3Array,
    "y/c/0": "never looked at",
  });
  for (const root of [v2, v3]) {
    const tree = await read(root);
    t.same(groupPaths(tree), ["/", "/a", "/a/b", "/a-", "/c"]);
    t.same(arrayPaths(tree), ["y", "z", "a/b/v"]);
    t.same(tree.groups[0]?.attrs, { title: "t" });
    t.same(tree.groups[2]?.arrays[0]?.attrs, { units: "K" });
    t.same([tree.refused, tree.warnings], [[], []]);
  }
});

t.test("reports how many arrays are read", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { ".zgroup": zgroup, "a/.zarray": zarray, "b/.zarray": zarray });
  const seen: number[] = [];
  await createDirectorySource(root).readTree((arraysRead) => seen.push(arraysRead));
  t.same(seen, [1, 2]);
});

t.test("a single array is a dataset of one variable, named after its directory", async (t) => {
  for (const documents of [
    { ".zarray": zarray, "0": "ab" },
    { "zarr.json": v3Array, "c/0": "ab" },
  ]) {
    const root = join(await makeDirectory(t), "air.v1.zarr");
    await writeFiles(root, documents);
    const tree = await read(root);
    t.same(arrayPaths(tree), ["air.v1"]);
    t.same(groupPaths(tree), ["/"]);
    const array = tree.groups[0]?.arrays[0];
    const chunk = await openChunkReader(array?.chunks as never).read([0]);
    t.equal(Buffer.from(chunk?.bytes ?? []).toString(), "ab");
  }
});

t.test("groups without metadata of their own are groups, other directories are not", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, {
    ".zgroup": zgroup,
    "a/b/v/.zarray": zarray,
    "docs/images/readme.txt": "nothing of ours",
    ".git/hooks/.zarray": zarray,
  });
  const tree = await read(root);
  t.same(groupPaths(tree), ["/", "/a", "/a/b"]);
  t.same(arrayPaths(tree), ["a/b/v"]);
  t.match(tree.warnings, [/'a': a group without metadata/, /'a\/b': a group without/]);
});

t.test(
  "nodes that only .zmetadata lists are added, and documents of their own count before it",
  async (t) => {
    const root = await makeDirectory(t);
    await writeFiles(root, {
      ".zmetadata": {
        zarr_consolidated_format: 1,
        metadata: {
          ".zgroup": zgroup,
          ".zattrs": { from: "consolidated" },
          "g/.zgroup": zgroup,
          "g/v/.zarray": zarray,
          "g/v/.zattrs": { a: 1 },
          "own/.zarray": { ...zarray, shape: [99] },
          "own/.zattrs": { stale: true },
          "../../etc/.zarray": zarray,
          "own/inner/.zarray": zarray,
        },
      },
      "g/v/0": "ab",
      "own/.zarray": zarray,
    });
    const tree = await read(root);
    t.same(groupPaths(tree), ["/", "/g"]);
    t.same(arrayPaths(tree), ["own", "g/v"]);
    t.same(tree.groups[0]?.attrs, { from: "consolidated" });
    t.match(tree.groups[0]?.arrays[0], { shape: [2], attrs: {} });
    t.same(tree.groups[1]?.arrays[0]?.attrs, { a: 1 });
    t.match(tree.refused, [
      { path: "../../etc", reason: 'expected a name, received ".."' },
      { path: "own/inner", reason: "it is inside of the array 'own'" },
    ]);
    const reader = openChunkReader(tree.groups[1]?.arrays[0]?.chunks as never);
    t.equal((await reader.read([0]))?.bytes.length, 2);
    t.equal(await reader.read([1]), undefined);
  },
);

t.test("a damaged .zmetadata is ignored if the store can be read without it", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { ".zmetadata": "{", ".zgroup": zgroup, "v/.zarray": zarray });
  const tree = await read(root);
  t.same(arrayPaths(tree), ["v"]);
  t.match(tree.warnings, [/^\.zmetadata: invalid JSON: .*; consolidated metadata is ignored$/]);
  await rm(join(root, ".zgroup"));
  await t.rejects(read(root), { code: "invalid-metadata", message: /: \.zmetadata: invalid JSON/ });
});

t.test("v2 counts before v3 and an array before a group, with a warning", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, {
    ".zgroup": zgroup,
    "zarr.json": v3Group,
    "v/.zarray": zarray,
    "v/zarr.json": v3Array,
    "both/.zarray": zarray,
    "both/.zgroup": zgroup,
  });
  const tree = await read(root);
  t.match(tree.groups[0]?.arrays[1]?.chunks, { keyEncoding: { name: "v2" } });
  t.same(arrayPaths(tree), ["both", "v"]);
  t.same([...tree.warnings].sort(), [
    "'/': metadata of Zarr v2 and v3 at one place; v2 is served",
    "'both': an array and a group at one place; the array is served",
    "'v': metadata of Zarr v2 and v3 at one place; v2 is served",
  ]);
});

t.test("an array or group that cannot be understood does not affect others", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, {
    ".zgroup": zgroup,
    "good/.zarray": zarray,
    "json/.zarray": '{"shape": [',
    "field/.zarray": { ...zarray, order: "X" },
    "attrs/.zarray": zarray,
    "attrs/.zattrs": "[]",
    "bytes/.zarray": Buffer.from([0x22, 0xff, 0x22]),
    "group/.zgroup": "nope",
    "group/v/.zarray": zarray,
    "v3/zarr.json": { ...v3Array, codecs: [{ name: "bytes" }, { name: "wavelet" }] },
    "directory/.zarray/file": "",
  });
  const tree = await read(root);
  t.same(arrayPaths(tree), ["good"]);
  t.equal(tree.refused.length, 8);
  const reasons = Object.fromEntries(tree.refused.map((refusal) => [refusal.path, refusal.reason]));
  t.match(reasons, {
    attrs: ".zattrs: expected the document to be an object, received []",
    bytes: ".zarray: expected UTF-8, received other bytes",
    directory: "'directory/.zarray' expected a file, found a directory",
    field: '.zarray: expected order to be "C" or "F", received "X"',
    group: /^\.zgroup: invalid JSON/,
    "group/v": "it is inside of 'group', which is refused",
    json: /^\.zarray: invalid JSON: expected a JSON value at line 1, column 12/,
    v3: 'zarr.json: expected a codec known here, received "wavelet"',
  });
});

/** Runs `work` as another user, since root may read everything. */
async function asNobody<T>(run: () => Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) return run();
  process.seteuid?.("nobody");
  try {
    return await run();
  } finally {
    process.seteuid?.(0);
  }
}

t.test("what cannot be read is refused, and the rest is served", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, {
    ".zgroup": zgroup,
    "a/.zarray": zarray,
    "b/.zarray": zarray,
    "g/.zgroup": zgroup,
  });
  await chmod(root, 0o755);
  await chmod(join(root, "a/.zarray"), 0);
  await chmod(join(root, "g"), 0o311);
  const tree = await asNobody(() => read(root));
  t.same(arrayPaths(tree), ["b"]);
  t.match(tree.refused.map((refusal) => refusal.reason).sort(), [
    /'a\/.zarray' cannot be read \(EACCES\)/,
    /EACCES/,
  ]);
  await chmod(join(root, "g"), 0o755);
});

t.test("a damaged root is an error, and so is a directory that is not a store", async (t) => {
  const root = await makeDirectory(t);
  const invalid = (message: RegExp) => ({ code: "invalid-metadata", message });
  await t.rejects(
    read(root),
    invalid(/is no Zarr store: expected \.zgroup, .* or zarr\.json in it, found nothing/),
  );
  await writeFiles(root, { "b.nc": "", "a.txt": "" });
  await t.rejects(read(root), invalid(/found a\.txt, b\.nc$/));
  await t.rejects(read(join(root, "a.txt")), invalid(/expected a directory, found a file/));
  await t.rejects(read(join(root, "missing")), invalid(/missing: it does not exist/));
  await t.rejects(read(join(root, "a.txt/below")), invalid(/does not exist/));
  await writeFiles(root, { ".zgroup": "x" });
  await t.rejects(read(root), invalid(/: \.zgroup: invalid JSON/));
  await writeFiles(root, { ".zgroup": zgroup, ".zattrs": "[" });
  await t.rejects(read(root), invalid(/: \.zattrs: invalid JSON/));
  const v3 = await makeDirectory(t);
  await writeFiles(v3, { "zarr.json": { ...v3Group, zarr_format: 4 } });
  await t.rejects(read(v3), invalid(/zarr_format to be 3, received 4/));
});

t.test("links within the store are followed, others are refused by name", async (t) => {
  const outside = await makeDirectory(t);
  const root = await makeDirectory(t);
  await writeFiles(outside, { "v/.zarray": zarray, ".zarray": zarray });
  await writeFiles(root, {
    ".zgroup": zgroup,
    "g/.zgroup": zgroup,
    "g/v/.zarray": zarray,
    "g/v/0": "ab",
    "file/readme": "",
  });
  await symlink(join(outside, "v"), join(root, "leaves"));
  await symlink(join(root, "g/v"), join(root, "inside"));
  await symlink("..", join(root, "g/loop"));
  await symlink("nothing", join(root, "dangling"));
  await mkdir(join(root, "document"));
  await symlink(join(outside, ".zarray"), join(root, "document/.zarray"));
  const tree = await read(root);
  t.same(arrayPaths(tree), ["inside", "g/v"]);
  const reasons = Object.fromEntries(tree.refused.map((refusal) => [refusal.path, refusal.reason]));
  t.match(reasons, {
    leaves: "it is a link that leaves the store",
    "g/loop": "it is a link to a group it is in",
    dangling: /cannot be followed \(ENOENT\)/,
    document: "'document/.zarray' is reached by a link that leaves the store",
  });
  const reader = openChunkReader(tree.groups[0]?.arrays[0]?.chunks as never);
  t.equal((await reader.read([0]))?.bytes.length, 2);

  const link = join(outside, "link.zarr");
  await symlink(root, link);
  t.same(arrayPaths(await read(link)), ["inside", "g/v"], "the root itself may be a link");
});

t.test(
  "names that no client can request are refused, and names that some cannot request are warnings",
  async (t) => {
    const root = await makeDirectory(t);
    await writeFiles(root, {
      ".zgroup": zgroup,
      "a#b/.zarray": zarray,
      "50%/.zgroup": zgroup,
      "line\nbreak/.zarray": zarray,
      "é 中/.zarray": zarray,
    });
    const invalidName = Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x66, 0xff])]);
    await mkdir(invalidName);
    const deep = Array.from({ length: 5 }, () => "n".repeat(250)).join("/");
    await writeFiles(root, { [`${deep}/.zarray`]: zarray });
    const tree = await read(root);
    t.same(arrayPaths(tree), ["a#b", "é 中"]);
    t.match([...tree.warnings].sort(), [/'50%': many clients cannot ask for a name with "%"/, /'a#b'.*"#"/]);
    const reasons = tree.refused.map((refusal) => `${refusal.path.slice(0, 20)}: ${refusal.reason}`).sort();
    t.match(reasons, [
      /^f\ufffd: the name is no valid UTF-8/,
      /^line\\u000abreak: the name has control characters/,
      /^n+: expected a path of at most 1024 bytes, received 1254/,
    ]);
  },
);

t.test("the fingerprint changes with the metadata, and only with it", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, {
    ".zgroup": zgroup,
    "g/.zgroup": zgroup,
    "g/v/.zarray": zarray,
    "w/zarr.json": v3Array,
  });
  const source = createDirectorySource(root);
  const tree = await source.readTree();
  t.equal(await source.fingerprint(), tree.fingerprint);
  t.equal(await createDirectorySource(root).fingerprint(), tree.fingerprint);
  await writeFiles(root, { "g/v/0": "chunk", "w/c/0": "chunk" });
  t.equal(await source.fingerprint(), tree.fingerprint, "chunks are not metadata");

  let last = tree;
  const changes: readonly (readonly [string, () => Promise<unknown>])[] = [
    ["new attributes", () => writeFiles(root, { "g/v/.zattrs": { a: 1 } })],
    ["a grown array", () => writeFiles(root, { "g/v/.zarray": { ...zarray, shape: [4] } })],
    ["a new array", () => writeFiles(root, { "g/u/.zarray": zarray })],
    ["a new group", () => writeFiles(root, { "g/h/.zgroup": zgroup })],
    ["consolidated metadata", () => writeFiles(root, { ".zmetadata": { metadata: {} } })],
    ["changed v3 metadata", () => writeFiles(root, { "w/zarr.json": { ...v3Array, attributes: {} } })],
    ["an array that is gone", () => rm(join(root, "g/u"), { recursive: true })],
    [
      "a replaced document of equal time and size",
      async () => {
        await writeFiles(root, { "g/v/new": { ...zarray, shape: [5] } });
        await rename(join(root, "g/v/new"), join(root, "g/v/.zarray"));
      },
    ],
  ];
  for (const [name, change] of changes) {
    await change();
    t.not(await source.fingerprint(), last.fingerprint, name);
    last = await source.readTree();
    t.equal(await source.fingerprint(), last.fingerprint, name);
  }
  t.not(last.identity, tree.identity);
});

t.test("documents that have not changed are not read again", async (t) => {
  const root = await makeDirectory(t);
  const metadata = {
    ".zgroup": zgroup,
    "listed/.zarray": zarray,
    "listed/.zattrs": { a: 1 },
    "other/.zarray": zarray,
    "own/.zarray": zarray,
  };
  await writeFiles(root, {
    ".zgroup": zgroup,
    ".zmetadata": { metadata },
    "own/.zarray": zarray,
    "g/.zgroup": zgroup,
    "g/v/.zarray": zarray,
    "g/w/zarr.json": v3Array,
    "other/0": "ab",
  });
  const source = createDirectorySource(root);
  const arraysOf = (tree: StoredTree) =>
    Object.fromEntries(tree.groups.flatMap(({ arrays }) => arrays.map((array) => [array.path, array])));
  const first = arraysOf(await source.readTree());
  t.same(Object.keys(first), ["listed", "other", "own", "g/v", "g/w"]);

  await writeFiles(root, { "g/v/.zattrs": { new: true }, "g/x/.zarray": zarray });
  await source.fingerprint();
  const second = arraysOf(await source.readTree());
  t.same(Object.keys(second), ["listed", "other", "own", "g/v", "g/w", "g/x"]);
  for (const path of ["listed", "other", "own", "g/w"]) t.equal(second[path], first[path], path);
  t.same(second["g/v"]?.attrs, { new: true });

  await writeFiles(root, {
    ".zmetadata": { metadata: { ...metadata, "listed/.zattrs": { a: 2 } } },
    "other/.zattrs": { beside: true },
  });
  const third = arraysOf(await source.readTree());
  for (const path of ["own", "g/v", "g/w", "g/x"]) t.equal(third[path], second[path], path);
  t.same(third.listed?.attrs, { a: 2 });
  t.same(third.other?.attrs, { beside: true });

  await rm(join(root, "own/.zarray"));
  await rm(join(root, "g/x"), { recursive: true });
  const fourth = arraysOf(await source.readTree());
  t.same(Object.keys(fourth), ["listed", "other", "own", "g/v", "g/w"]);
  t.match(fourth.own?.chunks, { metadataFile: `${root}/.zmetadata` }, "it is removed, but still listed");
});

t.test("a change is found after a read that failed", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { ".zgroup": zgroup, "v/.zarray": zarray, "v/.zattrs": { units: "K" } });
  const source = createDirectorySource(root);
  await source.readTree();
  for (const [units, look] of [
    ["degC", async () => undefined],
    ["degree_F", source.fingerprint],
  ] as const) {
    await rm(join(root, ".zgroup"));
    await look();
    await t.rejects(source.readTree(), { code: "invalid-metadata" });
    await writeFiles(root, { ".zgroup": zgroup, "v/.zattrs": { units } });
    const tree = await source.readTree();
    t.same(tree.groups[0]?.arrays[0]?.attrs, { units });
  }
});

t.test("a node that loses its own documents is found in .zmetadata", async (t) => {
  const root = await makeDirectory(t);
  const metadata = {
    ".zgroup": zgroup,
    "a/.zarray": zarray,
    "b/.zarray": zarray,
    "b/.zattrs": { from: "it" },
  };
  const documents = { ".zgroup": zgroup, "a/.zarray": zarray, "b/.zarray": zarray };
  await writeFiles(root, { ...documents, ".zmetadata": { metadata } });
  const source = createDirectorySource(root);
  await source.readTree();
  await writeFiles(root, { "a/.zattrs": { new: 1 }, "c/.zarray": zarray });
  t.same(arrayPaths(await source.readTree()), ["a", "b", "c"], "not used");
  await rm(join(root, "b/.zarray"));
  const tree = await source.readTree();
  t.same(arrayPaths(tree), ["a", "b", "c"]);
  t.same(tree.groups[0]?.arrays[1]?.attrs, { from: "it" });
  await rm(join(root, "b"), { recursive: true });
  t.same(arrayPaths(await source.readTree()), ["a", "b", "c"]);
  await writeFiles(root, { ...documents, ".zmetadata": { metadata: { ".zgroup": zgroup } } });
  await rm(join(root, "b"), { recursive: true });
  t.same(arrayPaths(await source.readTree()), ["a", "c"]);
});

t.test("a check does not read the whole store, and throws what reading would throw", async (t) => {
  const root = await makeDirectory(t);
  const check = (path: string) => createDirectorySource(join(root, path)).check?.();
  await writeFiles(root, {
    "v2/.zgroup": zgroup,
    "v2/broken/.zarray": "{",
    "v3/zarr.json": v3Group,
    "array/.zarray": zarray,
    "listed/.zmetadata": { metadata: { "v/.zarray": zarray } },
  });
  const broken = {
    file: "x",
    "no-store/readme.txt": "",
    "no-json/.zgroup": "x",
    "no-attrs/.zgroup": zgroup,
    "no-attrs/.zattrs": "[]",
    "v4/zarr.json": { ...v3Group, zarr_format: 4 },
    "no-array/.zarray": { ...zarray, order: "X" },
    "no-metadata/.zmetadata": "{",
  };
  await writeFiles(root, broken);
  for (const path of ["v2", "v3", "array", "listed"]) await t.resolves(check(path) as Promise<void>, path);
  for (const path of ["missing", ...new Set(Object.keys(broken).map((name) => name.split("/")[0]!))]) {
    const said = await read(join(root, path)).catch((error: unknown) => error);
    const { code, message } = said as { code: string; message: string };
    t.match(message, /^\//, "with the location");
    await t.rejects(check(path) as Promise<void>, { code, message }, path);
  }
  await mkdir(join(root, "closed"));
  await writeFiles(root, { "closed/.zgroup": zgroup });
  await chmod(join(root, "closed"), 0o311);
  await chmod(root, 0o755);
  const closed = { code: "source-unreadable", message: /cannot be listed \(EACCES\)$/ };
  for (const look of [() => read(join(root, "closed")), async () => check("closed")])
    await t.rejects(asNobody<unknown>(look), closed);
});

t.test("a location that now leads elsewhere is another store", async (t) => {
  const parent = await makeDirectory(t);
  await writeFiles(parent, { "one/.zgroup": zgroup, "two/.zgroup": zgroup });
  const location = join(parent, "current");
  await symlink("one", location);
  const source = createDirectorySource(location);
  const first = await source.readTree();
  await symlink("two", `${location}.new`);
  await rename(`${location}.new`, location);
  t.not(await source.fingerprint(), first.fingerprint);
  t.not((await source.readTree()).identity, first.identity);
  await rm(location);
  await t.rejects(source.fingerprint(), { message: /does not exist/ });
});

t.test(
  "a fresh document of a file system with whole seconds is read when another write must change its time",
  async (t) => {
    const root = await makeDirectory(t);
    await writeFiles(root, { ".zgroup": zgroup, ".zattrs": { title: "old" } });
    const second = Math.floor(Date.now() / 1_000);
    await utimes(join(root, ".zattrs"), second, second);
    await createDirectorySource(root).readTree();
    t.ok(Date.now() >= (second + 2) * 1_000);
  },
);
