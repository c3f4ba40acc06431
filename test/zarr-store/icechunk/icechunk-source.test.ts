import t from "tap";
import { openChunkReader } from "../../../src/open/chunk-reader.js";
import { openSource } from "../../../src/open/open-source.js";
import { createFileStore } from "../../../src/stores/file-store.js";
import type { StoredArray } from "../../../src/zarr/stored-array.js";
import type { StoredTree } from "../../../src/zarr/stored-tree.js";
import { createIcechunkSource } from "../../../src/zarr-store/icechunk/icechunk-source.js";
import { isRepository, type RepositoryRef } from "../../../src/zarr-store/icechunk/repository.js";
import {
  type ChunkRefSpec,
  fileOf,
  type RepositorySpec,
  repositoryFiles,
  type SnapshotSpec,
} from "../../support/icechunk-repository.js";
import { LOCATION_DICTIONARY, LOCATIONS } from "../../support/locations-dictionary.js";
import { createMemoryStore } from "../../support/memory-store.js";
import { makeDirectory, v3Array, v3Group, writeFiles } from "../../support/write-store.js";

const MAIN: RepositoryRef = { kind: "branch", name: "main" };
const row = { ...v3Array, shape: [8], attributes: { units: "K" }, dimension_names: ["x"] };
const DATA = Uint8Array.of(...Array.from({ length: 20 }, (_, index) => index));

/** A snapshot of one array of four chunks. */
function snapshot(name: string, manifest: string, more: Partial<SnapshotSpec> = {}): SnapshotSpec {
  const manifests = [{ name: manifest, extents: [[0, 4] as const] }];
  const nodes = [
    { path: "/", document: v3Group },
    { path: "/a", document: { ...v3Group, attributes: { title: "A" } } },
    { path: "/a/row", document: row, manifests },
  ];
  return { name, nodes, ...more };
}

const REFS: readonly ChunkRefSpec[] = [
  { index: [0], chunk: "one", offset: 2, length: 2 },
  { index: [1], inline: Uint8Array.of(8, 9) },
  { index: [2], chunk: "one", offset: 0, length: 0 },
];

const SPEC: RepositorySpec = {
  snapshots: [
    snapshot("s1", "m1", { message: "first", time: 1e15 }),
    snapshot("s2", "m1", { time: 1.1e15, parent: "s1" }),
  ],
  branches: { dev: "s1", main: "s2" },
  tags: { v1: "s1" },
  manifests: { m1: { arrays: { "/a/row": REFS } } },
  chunks: { one: DATA },
};

let opened = 0;

/** Opens a repository in a store of its own: manifests are remembered by store. */
function open(spec: RepositorySpec = SPEC, ref = MAIN) {
  const store = createMemoryStore(repositoryFiles(spec), `memory://${++opened}`);
  const bucket = createMemoryStore({ "data.bin": DATA });
  const source = createIcechunkSource({
    ...{ location: "x", store, ref, rootArrayName: "x" },
    references: {
      folder: "s3://refs/",
      isAllowed: (url) => url.startsWith("s3://bucket/"),
      openTarget: (url) => ({ store: bucket, key: url.slice("s3://bucket/".length) }),
    },
  });
  const put = (next: RepositorySpec) => {
    for (const [key, bytes] of Object.entries(repositoryFiles(next))) store.put(key, bytes);
  };
  return { store, bucket, source, put };
}

function arrayOf({ groups }: StoredTree): StoredArray {
  return groups.find(({ path }) => path === "/a")!.arrays[0]!;
}

async function readChunk(array: StoredArray, index: number): Promise<readonly number[] | undefined> {
  const found = await openChunkReader(array.chunks).read([index]);
  return found && [...found.bytes];
}

for (const format of [1, 2] as const)
  t.test(`format ${format}: groups, arrays, and chunks of every kind`, async (t) => {
    const { source, store } = open({ ...SPEC, format });
    const tree = await source.readTree();
    t.equal(tree.format, `Icechunk ${format}, branch main, snapshot ${fileOf("s2")}`);
    t.same(
      tree.groups.map(({ path, attrs }) => [path, attrs]),
      [
        ["/", {}],
        ["/a", { title: "A" }],
      ],
    );
    const array = arrayOf(tree);
    t.same([array.path, array.shape, array.attrs], ["a/row", [8], { units: "K" }]);
    store.takeRequests();
    t.same(await readChunk(array, 0), [2, 3]);
    t.same(store.takeRequests(), [`read manifests/${fileOf("m1")}`, `read chunks/${fileOf("one")} 2+2`]);
    t.same(await readChunk(array, 1), [8, 9]);
    t.equal(await readChunk(array, 2), undefined, "a reference of length 0 is an absent chunk");
    t.equal(await readChunk(array, 3), undefined);
    t.same(store.takeRequests(), [], "the manifest is in memory");
  });

t.test("versions of chunks are their content, and no request asks for them", async (t) => {
  const { source, store, put } = open();
  const before = arrayOf(await source.readTree());
  const versionOf = async (array: StoredArray, index: number) =>
    (await openChunkReader(array.chunks).version([index])).token;
  const versions = await Promise.all([0, 1, 2].map((index) => versionOf(before, index)));
  t.match(versions, [/^n[0-9a-z]{20}\.2\.2$/, /^i[0-9a-f]{20}$/, undefined]);
  put({
    ...SPEC,
    snapshots: [...SPEC.snapshots, snapshot("s3", "m2")],
    branches: { main: "s3" },
    manifests: {
      m2: { arrays: { "/a/row": [...REFS.slice(0, 1), { index: [1], inline: Uint8Array.of(7, 7) }] } },
    },
  });
  store.takeRequests();
  t.not(await source.fingerprint(), (await open().source.readTree()).fingerprint);
  const after = arrayOf(await source.readTree());
  t.not(after, before);
  t.equal(await versionOf(after, 0), versions[0], "a chunk that a commit leaves alone keeps its version");
  t.not(await versionOf(after, 1), versions[1]);
  t.same(await readChunk(before, 1), [8, 9], "the tree that was read before stays what it was");
});

t.test(
  "a refresh is one conditional request, and arrays without a change are the same objects",
  async (t) => {
    for (const format of [1, 2] as const) {
      const { source, store, put } = open({ ...SPEC, format });
      const tree = await source.readTree();
      store.takeRequests();
      t.equal(await source.fingerprint(), tree.fingerprint);
      t.equal(store.takeRequests().length, 1, `format ${format}`);
      t.equal(await source.readTree(), tree);
      put({
        ...SPEC,
        format,
        snapshots: [...SPEC.snapshots, snapshot("s3", "m1")],
        branches: { main: "s3" },
      });
      t.not(await source.fingerprint(), tree.fingerprint);
      const next = await source.readTree();
      t.not(next, tree);
      t.equal(arrayOf(next), arrayOf(tree));
    }
  },
);

t.test("branches, tags and snapshots", async (t) => {
  for (const format of [1, 2] as const) {
    const spec = { ...SPEC, format, tags: { v1: "s1", gone: "s1" }, deletedTags: ["gone"] };
    const refs: readonly (readonly [RepositoryRef, string])[] = [
      [{ kind: "branch", name: "dev" }, "s1"],
      [{ kind: "tag", name: "v1" }, "s1"],
      [{ kind: "snapshot", name: fileOf("s2") }, "s2"],
    ];
    for (const [ref, name] of refs)
      t.match((await open(spec, ref).source.readTree()).format, new RegExp(`snapshot ${fileOf(name)}$`));
    const wrong = (ref: RepositoryRef, message: RegExp) =>
      t.rejects(open(spec, ref).source.readTree(), { code: "invalid-metadata", message });
    await wrong({ kind: "branch", name: "v1" }, /expected a branch among .*"main".*, received "v1"/);
    await wrong({ kind: "tag", name: "main" }, /expected a tag among .*"v1".*, received "main"/);
    await wrong({ kind: "snapshot", name: fileOf("s9") }, /it has expired, or never was/);
    if (format === 1)
      await wrong({ kind: "tag", name: "gone" }, /expected a tag among "v1", received "gone"/);
  }
});

t.test("lists versions from the newest on, and opens tags and snapshots", async (t) => {
  for (const format of [1, 2] as const) {
    const { source } = open({ ...SPEC, format });
    const versions = source.versions!;
    const listed = await versions.list();
    t.same(
      listed.map(({ kind, name, message }) => [kind, name, message]),
      [
        ["branch", "main", "s2"],
        ["branch", "dev", "first"],
        ["tag", "v1", "first"],
        ["snapshot", fileOf("s2"), "s2"],
        ["snapshot", fileOf("s1"), "first"],
      ],
    );
    t.equal(listed[2]?.time, "2001-09-09T01:46:40.000Z");
    t.equal(await versions.list(), listed);
    const tagged = await versions.open("v1");
    t.equal((await tagged!.readTree()).format, `Icechunk ${format}, tag v1, snapshot ${fileOf("s1")}`);
    t.ok(await versions.open(fileOf("s1")));
    t.equal(await versions.open("main"), undefined, "a branch moves on");
    t.equal(await versions.open("v2"), undefined);
  }
});

t.test("what is declared immutable has the identity of its snapshot, not of its name", async (t) => {
  const { store, source } = open(SPEC, { kind: "tag", name: "v1" });
  const { identity } = await source.readTree();
  for (const [key, bytes] of Object.entries(repositoryFiles({ ...SPEC, tags: { v1: "s2" } })))
    store.put(key, bytes);
  const tagged = await (await source.versions!.open("v1"))!.readTree();
  t.not(tagged.identity, identity, "of another repository in the same place");
});

t.test("a repository whose format is raised is served on", async (t) => {
  const { store, source, put } = open({ ...SPEC, format: 1 });
  await source.readTree();
  await source.versions!.list();
  for (const key of ["branch.main", "branch.dev", "tag.v1"]) store.remove(`refs/${key}/ref.json`);
  put({ ...SPEC, snapshots: [...SPEC.snapshots, snapshot("s3", "m1")], branches: { main: "s3" } });
  await t.rejects(source.readTree(), { code: "invalid-metadata" });
  t.match((await source.readTree()).format, /^Icechunk 2/);
});

t.test("a name that is too long for a file is no version", async (t) => {
  const directory = await makeDirectory(t);
  await writeFiles(directory, repositoryFiles({ ...SPEC, format: 1 }));
  const { versions } = await openSource(directory);
  t.ok(await versions!.open("v1"));
  t.equal(await versions!.open("v".repeat(600)), undefined);
});

t.test("many snapshots do not hold up the event loop", async (t) => {
  const names = Array.from({ length: 10_000 }, (_, index) => `s${index}`);
  const snapshots = names.map((name, time) => ({ name, nodes: [], time }));
  const { source } = open({ snapshots, branches: { main: "s0" } });
  let turns = 0;
  let turn = setImmediate(function count() {
    turns += 1;
    turn = setImmediate(count);
  });
  t.equal((await source.versions!.list()).length, 10_001);
  clearImmediate(turn);
  t.ok(turns > 1, `${turns} turns`);
});

t.test("only so many manifests are read at a time", async (t) => {
  const names = Array.from({ length: 40 }, (_, index) => `m${index}`);
  const manifests = names.map((name, index) => ({ name, extents: [[index, index + 1] as const] }));
  const { store, source } = open({
    snapshots: [{ name: "s1", nodes: [{ path: "/a/row", document: { ...row, shape: [80] }, manifests }] }],
    branches: { main: "s1" },
    manifests: Object.fromEntries(
      names.map((name, index) => [
        name,
        { arrays: { "/a/row": [{ index: [index], inline: Uint8Array.of(index, 0) }] } },
      ]),
    ),
  });
  const array = arrayOf(await source.readTree());
  const { read } = store;
  let [now, most] = [0, 0];
  store.read = async (...request) => {
    most = Math.max(most, ++now);
    await new Promise(setImmediate);
    now -= 1;
    return read(...request);
  };
  const found = await Promise.all(names.map((_, index) => readChunk(array, index)));
  t.same(
    found,
    names.map((_, index) => [index, 0]),
  );
  t.ok(most > 1 && most <= 8, `${most} at a time`);
});

t.test("virtual chunks are read where they may be, in the state that is recorded", async (t) => {
  const refs: ChunkRefSpec[] = [
    { index: [0], location: "s3://bucket/data.bin", offset: 4, length: 2 },
    { index: [1], location: "vcc://held/data%2ebin", offset: 6, length: 2 },
    { index: [2], location: "s3://elsewhere/data.bin", offset: 0, length: 2 },
    { index: [3], location: "vcc://unknown/data.bin", offset: 0, length: 2 },
  ];
  const containers = { held: "s3://bucket/", far: "s3://elsewhere/" };
  const { source, bucket } = open({ ...SPEC, containers, manifests: { m1: { arrays: { "/a/row": refs } } } });
  const tree = await source.readTree();
  t.match(tree.warnings, [/"s3:\/\/elsewhere\/" are not read: expected "references": \{"allow"/]);
  t.equal(tree.warnings.length, 1);
  const array = arrayOf(tree);
  t.same(await readChunk(array, 0), [4, 5]);
  t.same(await readChunk(array, 1), [6, 7]);
  await t.rejects(readChunk(array, 2), { code: "unsupported", message: /a\/row\/c\/2.*elsewhere/ });
  await t.rejects(readChunk(array, 3), { code: "unsupported", message: /a container of the name "unknown"/ });
  bucket.remove("data.bin");
  await t.rejects(readChunk(array, 0), {
    code: "source-unreadable",
    message: /s3:\/\/bucket\/data.bin' is not there/,
  });
});

t.test("a virtual chunk has another version if its container leads elsewhere", async (t) => {
  const manifests = {
    m1: { arrays: { "/a/row": [{ index: [0], location: "vcc://held/data.bin", length: 2 }] } },
  };
  const { source, put } = open({ ...SPEC, manifests, containers: { held: "s3://bucket/" } });
  const versionNow = async () =>
    (await openChunkReader(arrayOf(await source.readTree()).chunks).version([0])).token;
  const before = await versionNow();
  t.equal(await versionNow(), before);
  put({ ...SPEC, manifests, containers: { held: "s3://bucket/moved/" } });
  t.not(await versionNow(), before);
});

t.test("locations that are compressed with a dictionary", async (t) => {
  const [first, second] = LOCATIONS;
  const compressed = ({ encoded }: (typeof LOCATIONS)[number], index: number): ChunkRefSpec => ({
    ...{ index: [index], compressed: encoded, length: 2 },
  });
  const arrays = { "/a/row": [compressed(first!, 0), compressed(second!, 1), compressed(first!, 3)] };
  const { source } = open({ ...SPEC, manifests: { m1: { arrays, dictionary: LOCATION_DICTIONARY } } });
  const array = arrayOf(await source.readTree());
  for (const [index, { url }] of [first!, second!].entries())
    await t.rejects(readChunk(array, index), { message: new RegExp(url) });
  t.equal(await readChunk(array, 2), undefined);
  const without = open({ ...SPEC, manifests: { m1: { arrays } } });
  await t.rejects(readChunk(arrayOf(await without.source.readTree()), 0), {
    code: "invalid-metadata",
    message: /expected a dictionary/,
  });
});

t.test("what is damaged, missing, too new or offline is refused by name", async (t) => {
  await t.rejects(open({ ...SPEC, offline: "moved" }).source.readTree(), {
    message: /found it offline: moved/,
  });
  const manifest = `manifests/${fileOf("m1")}`;
  const cases: readonly (readonly [
    key: string,
    change: (bytes: Uint8Array) => Uint8Array,
    message: RegExp,
  ])[] = [
    ["repo", (bytes) => bytes.with(36, 3), /'repo': expected a format of at most 2, received format 3/],
    ["repo", (bytes) => bytes.with(0, 0), /'repo' is damaged: expected a file of Icechunk/],
    ["repo", (bytes) => bytes.with(37, 1), /'repo' is damaged: expected type 6 \(repo\), received type 1/],
    ["repo", (bytes) => bytes.with(38, 1), /'repo' is damaged: zstd/],
    ["repo", (bytes) => bytes.with(38, 2), /expected compression 0 or 1, received compression 2/],
    ["repo", (bytes) => bytes.subarray(0, 60), /'repo' is damaged: expected tables of the format/],
    [
      `snapshots/${fileOf("s2")}`,
      (bytes) => bytes.subarray(0, 80),
      /is damaged: expected tables of the format/,
    ],
    [manifest, (bytes) => bytes.subarray(0, 80), /manifests\/.* is damaged/],
  ];
  for (const [key, change, message] of cases) {
    const { source, store } = open();
    store.put(key, change(repositoryFiles(SPEC)[key]!));
    const reading = source.readTree().then((tree) => readChunk(arrayOf(tree), 0));
    await t.rejects(reading, { name: "ZpublishError", message }, String(message));
  }
  const { source, store } = open();
  store.remove(`chunks/${fileOf("one")}`);
  const array = arrayOf(await source.readTree());
  await t.rejects(readChunk(array, 0), { code: "source-unreadable", message: /chunks\/.* is not there/ });
  const shifted = { arrays: { "/a/row": REFS.toReversed() } };
  const { source: unsorted } = open({
    ...SPEC,
    snapshots: [snapshot("s2", "m3")],
    branches: { main: "s2" },
    tags: {},
    manifests: { m3: shifted },
  });
  await t.rejects(readChunk(arrayOf(await unsorted.readTree()), 0), { message: /in ascending order/ });
  const none = createMemoryStore({});
  const empty = createIcechunkSource({
    ...{ location: "x", store: none, ref: MAIN, rootArrayName: "x" },
    references: { folder: "", isAllowed: () => false, openTarget: () => ({ store: none, key: "" }) },
  });
  await t.rejects(empty.readTree(), { message: /no Icechunk repository: expected 'repo' or/ });
});

t.test("a Zarr store with a group of the name is no repository", async (t) => {
  const directory = await makeDirectory(t);
  await writeFiles(directory, { "zarr.json": v3Group, "repo/zarr.json": v3Group, "refs/zarr.json": v3Group });
  t.notOk(await isRepository(createFileStore(directory)));
  t.match((await (await openSource(directory)).readTree()).groups, [
    { path: "/" },
    { path: "/refs" },
    { path: "/repo" },
  ]);
  t.notOk(await isRepository(createMemoryStore({ repo: "short" })));
  t.ok(await isRepository(createMemoryStore(repositoryFiles(SPEC))));
  t.ok(await isRepository(createMemoryStore(repositoryFiles({ ...SPEC, format: 1 }))));
});
