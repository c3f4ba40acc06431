import { rename, rm, symlink, truncate, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { createFileSource } from "../../src/formats/file-source.js";
import { createFileStore } from "../../src/stores/file-store.js";
import type { StoredTree } from "../../src/zarr/stored-tree.js";
import { openReader } from "../support/async-reader.js";
import { DATA_OFFSET, plainArray, plainFile, plainFormat } from "../support/plain-format.js";
import { makeDirectory, makeOld } from "../support/write-store.js";

const TWENTY = Uint8Array.from({ length: 20 }, (_, item) => 100 + item);

/** Offsets and lengths of the pieces of one chunk. */
const PIECES = [
  [2, 1],
  [0, 2],
];
const MADE = [PIECES];

/** An array of each kind of table. */
const ARRAYS = [
  plainArray({
    name: "listed",
    shape: [2, 6],
    chunkShape: [1, 4],
    chunks: {
      kind: "listed",
      offsets: Float64Array.of(DATA_OFFSET + 4, -1, DATA_OFFSET + 12, DATA_OFFSET),
      byteLengths: Uint32Array.of(4, 4, 4, 4),
      variants: Uint8Array.of(0, 0, 1, 0),
    },
    variants: [[{ id: "zlib", level: 1 }]],
  }),
  plainArray({
    name: "sparse",
    shape: [100],
    chunkShape: [1],
    chunks: {
      kind: "listed",
      numbers: Float64Array.of(3, 50, 99),
      offsets: Float64Array.of(DATA_OFFSET, DATA_OFFSET + 1, DATA_OFFSET + 2),
      byteLengths: Uint32Array.of(1, 1, 1),
    },
  }),
  plainArray({
    name: "strided",
    shape: [5, 2],
    chunkShape: [2, 1],
    chunks: {
      kind: "strided",
      start: DATA_OFFSET + 1,
      strides: [4, 2],
      byteLength: 2,
      last: { axis: 0, byteLength: 1 },
    },
  }),
  plainArray({
    name: "inline",
    shape: [3],
    chunkShape: [3],
    chunks: { kind: "inline", bytes: Uint8Array.of(7, 8, 9) },
  }),
  plainArray({ name: "never", shape: [3], chunkShape: [3], chunks: { kind: "inline", bytes: null } }),
  plainArray({ name: "made", shape: [6], chunkShape: [3], chunks: { kind: "made", recipe: MADE } }),
];

async function writePlain(t: Parameters<typeof makeDirectory>[0], data = TWENTY) {
  const directory = await makeDirectory(t);
  const path = join(directory, "a.plain");
  await writeFile(path, plainFile({ arrays: ARRAYS, data }));
  await makeOld(path);
  return { directory, path };
}

function openPlain(directory: string) {
  return createFileSource({
    ...{ location: "a.plain", store: createFileStore(directory), key: "a.plain" },
    ...{ formats: [plainFormat], freshness: "always" },
  });
}

function readersOf(tree: StoredTree) {
  const arrays = new Map(tree.groups.flatMap((group) => group.arrays).map((array) => [array.path, array]));
  return (name: string) => {
    const array = arrays.get(name);
    if (array === undefined) throw new Error(`expected an array ${name}`);
    return openReader(array.chunks);
  };
}

t.test("reads chunks of every kind of table, with and without waiting", async (t) => {
  const { directory } = await writePlain(t);
  const tree = await openPlain(directory).readTree();
  t.equal(tree.format, "Plain");
  const reader = readersOf(tree);
  const expected: [string, number[], number[] | undefined, number?][] = [
    ["listed", [0, 0], [104, 105, 106, 107]],
    ["listed", [0, 1], undefined],
    ["listed", [1, 0], [112, 113, 114, 115], 1],
    ["listed", [1, 1], [100, 101, 102, 103]],
    ["sparse", [3], [100]],
    ["sparse", [99], [102]],
    ["sparse", [0], undefined],
    ["sparse", [51], undefined],
    ["strided", [0, 0], [101, 102]],
    ["strided", [1, 1], [107, 108]],
    ["strided", [2, 0], [109, 0]],
    ["strided", [2, 1], [111, 0]],
    ["inline", [0], [7, 8, 9]],
    ["never", [0], undefined],
    ["made", [0], [102, 100, 101]],
    ["made", [1], undefined],
  ];
  for (const [name, coords, bytes, variant] of expected) {
    const what = `${name} ${coords.join(".")}`;
    const found = await reader(name).read(coords);
    t.same(found && [...found.bytes], bytes, what);
    t.equal(found?.variant, variant, `variant of ${what}`);
    t.equal(reader(name).places?.variantOf(coords), variant ?? 0, what);
    const now = reader(name).readNow(coords);
    t.same(now && [...now.bytes], name === "made" ? undefined : bytes, `${what} now`);
    if (found !== undefined) {
      t.equal(await reader(name).version(coords), found.version);
      t.equal(reader(name).versionNow(coords), found.version);
    } else if (name !== "made") {
      t.equal(await reader(name).version(coords), undefined);
    }
    if (bytes !== undefined)
      await t.rejects(reader(name).read(coords, { maxByteLength: 0 }), { code: "corrupt-chunk" });
  }
});

t.test("reads into the memory of the caller, padding included", async (t) => {
  const { directory } = await writePlain(t);
  const reader = readersOf(await openPlain(directory).readTree());
  for (const [name, coords, bytes] of [
    ["strided", [2, 0], [109, 0]],
    ["listed", [0, 0], [104, 105, 106, 107]],
  ] as const) {
    const given: Uint8Array[] = [];
    const allocate = (byteLength: number) => {
      const memory = new Uint8Array(byteLength).fill(255);
      given.push(memory);
      return memory;
    };
    for (const found of [
      await reader(name).read(coords, { allocate }),
      reader(name).readNow(coords, { allocate }),
    ])
      t.ok(found !== undefined && given.includes(found.bytes));
    t.same(
      given.map((memory) => [...memory]),
      [bytes, bytes],
    );
  }
});

t.test("a file that is replaced is never read with the index of the one before", async (t) => {
  const { directory, path } = await writePlain(t);
  const source = openPlain(directory);
  const before = await source.readTree();
  t.equal(await source.readTree(), before, "unchanged");
  t.equal(await source.fingerprint(), before.fingerprint);
  await writeFile(path, plainFile({ arrays: ARRAYS, data: TWENTY.map((item) => item + 100) }));
  const reader = readersOf(before);
  const changed = { code: "source-changed", details: { staleIdentity: before.identity } };
  for (const [name, coords] of [
    ["listed", [0, 0]],
    ["listed", [0, 1]],
    ["strided", [2, 0]],
    ["inline", [0]],
    ["made", [0]],
    ["never", [0]],
  ] as const) {
    if (name !== "made") await t.rejects(reader(name).version(coords), changed);
    if (name !== "inline") await t.rejects(reader(name).read(coords), changed);
  }
  t.not(await source.fingerprint(), before.fingerprint);
  const after = await source.readTree();
  t.equal(after.fingerprint, await source.fingerprint());
  t.same((await readersOf(after)("listed").read([0, 0]))?.bytes, [204, 205, 206, 207]);
});

t.test("a damaged file refuses what was served, and is served again once it is whole", async (t) => {
  const { directory, path } = await writePlain(t);
  const source = openPlain(directory);
  const before = await source.readTree();
  await truncate(path, 100);
  for (const _ of [1, 2]) {
    const { groups, refused, fingerprint } = await source.readTree();
    t.same(groups, [{ path: "/", attrs: { title: "plain" }, arrays: [] }]);
    const paths = refused.map((refusal) => refusal.path);
    t.same(paths, ["inline", "listed", "made", "never", "sparse", "strided"]);
    t.equal(fingerprint, await source.fingerprint());
  }
  await writeFile(path, "another format");
  t.match((await source.readTree()).refused, [
    { reason: /expected a file of a known format \(hdf5\), found another one/ },
  ]);
  await writeFile(path, plainFile({ arrays: ARRAYS, data: TWENTY }));
  t.same((await source.readTree()).groups.length, before.groups.length);
  await unlink(path);
  await t.rejects(source.readTree(), {
    code: "source-unreadable",
    message: "a.plain: it is no longer there",
  });
  await t.rejects(source.fingerprint(), { code: "source-unreadable" });
});

t.test("a link that leads to another file is followed", async (t) => {
  const { directory, path } = await writePlain(t);
  const fewer = TWENTY.map((item) => item - 100);
  const other = await writePlain(t, fewer);
  const link = join(directory, "link");
  await symlink(path, link);
  let target = { store: createFileStore(directory), key: "a.plain" };
  const source = createFileSource({
    ...{ location: "link", ...target, formats: [plainFormat], freshness: "always" },
    locate: async () => target,
  });
  const before = await source.readTree();
  await rename(link, `${link}2`);
  target = { store: createFileStore(other.directory), key: "a.plain" };
  t.not(await source.fingerprint(), before.fingerprint);
  const after = await source.readTree();
  t.same((await readersOf(after)("sparse").read([3]))?.bytes, [0]);
  t.same((await readersOf(before)("sparse").read([3]))?.bytes, [100], "the old one is still there");
  await unlink(path);
  const changed = { code: "source-changed", details: { staleIdentity: before.identity } };
  await t.rejects(readersOf(before)("sparse").version([3]), changed, "the dataset is read again");
  await t.rejects(readersOf(before)("sparse").read([3]), changed);
  await rm(other.directory, { recursive: true });
  await t.rejects(readersOf(after)("sparse").version([3]), { code: "source-unreadable" });
  await t.rejects(readersOf(after)("sparse").read([3]), { code: "source-unreadable" });
});

t.test("a file that is replaced by one of another format is served", async (t) => {
  const { directory, path } = await writePlain(t);
  const other = {
    ...plainFormat,
    id: "tiff",
    recognizes: (head: Uint8Array) => head[0] === 0,
    async readIndex() {
      const root = { path: "/", attrs: { title: "other" }, arrays: [] };
      return { format: "Other", groups: [root], refused: [], warnings: [] };
    },
  } as const;
  const source = createFileSource({
    ...{ location: "a.plain", store: createFileStore(directory), key: "a.plain" },
    ...{ formats: [plainFormat, other], freshness: "always" },
  });
  t.equal((await source.readTree()).format, "Plain");
  await writeFile(path, Buffer.alloc(100));
  const { format, groups } = await source.readTree();
  t.same([format, groups[0]?.attrs], ["Other", { title: "other" }]);
});

t.test(
  "arrays and groups whose names or types cannot be served are refused, and the others served",
  async (t) => {
    const directory = await makeDirectory(t);
    const inline = { kind: "inline", bytes: null } as const;
    const named = (name: string, more: object = {}) =>
      plainArray({ name, shape: [1], chunkShape: [1], chunks: inline, ...more });
    const variants = { kind: "listed", offsets: Float64Array.of(0), byteLengths: Uint32Array.of(1) } as const;
    const groups = [
      {
        path: "/",
        attrs: { _ARRAY_DIMENSIONS: ["x"], title: "t" },
        arrays: [
          named("a/b"),
          named(".zarray"),
          named("many", { chunks: { ...variants, variants: Uint8Array.of(1) } }),
          named("odd", { dtype: "<q9" }),
          named("right#", { attrs: { _ARRAY_DIMENSIONS: ["x"], units: "m" } }),
        ],
      },
      { path: "/..", attrs: {}, arrays: [named("in")] },
      { path: "/g", attrs: {}, arrays: [named("y")] },
    ];
    const file = plainFile({
      arrays: [],
      index: { groups, refused: [{ path: "z", reason: "no" }] },
      data: TWENTY,
    });
    await writeFile(join(directory, "a.plain"), file);
    const tree = await openPlain(directory).readTree();
    t.same(
      tree.groups.map(({ path, attrs, arrays }) => [
        path,
        attrs,
        arrays.map((array) => [array.path, array.attrs]),
      ]),
      [
        ["/", { title: "t" }, [["right#", { units: "m" }]]],
        ["/g", {}, [["g/y", {}]]],
      ],
    );
    t.match(tree.refused, [
      { path: "z", reason: "no" },
      { path: "a/b", reason: "expected a name without a slash" },
      { path: ".zarray", reason: /the name of a document/ },
      { path: "many", reason: "expected variants of at most 0, received 1" },
      { path: "odd", reason: /dtype|type/ },
      { path: "..", reason: /expected a name/ },
    ]);
    t.same(tree.warnings, [`'right#': many clients cannot ask for a name with "#"`]);
  },
);
