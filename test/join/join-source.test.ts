import { rename, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { LosslessNumber } from "lossless-json";
import t, { type Test } from "tap";
import { ZpublishError } from "../../src/errors.js";
import { createFileFinder } from "../../src/find/collection-root.js";
import { createKeptIndexes } from "../../src/formats/kept-indexes.js";
import type { KnownPart } from "../../src/join/describe-part.js";
import { createJoinSource, type Joining } from "../../src/join/join-source.js";
import { createKeptDescriptions } from "../../src/join/kept-descriptions.js";
import { createOpenPlaced } from "../../src/join/part-places.js";
import { openSource } from "../../src/open/open-source.js";
import { PIECED } from "../../src/zarr/chunk-reader.js";
import type { StoredArray } from "../../src/zarr/stored-array.js";
import type { Source, StoredTree } from "../../src/zarr/stored-tree.js";
import { openReader } from "../support/async-reader.js";
import { writeNetcdfPart, writeZarrPart } from "../support/write-parts.js";
import { makeDirectory, writeFiles, zarray } from "../support/write-store.js";
import { describePart } from "./describe-part.js";

const CONCAT: Joining = { kind: "concat", dimension: "time" };

interface Joined extends Source {
  /** Names of the parts that were opened so far. */
  readonly opened: string[];
}

/**
 * Opens all files of a folder as one dataset.
 * @param cache Directory of what is kept between runs.
 * @param open Opens a file. Default: as the server does.
 */
function openFolder(folder: string, joining = CONCAT, cache?: string, open = openSource): Joined {
  const opened: string[] = [];
  const finder = createFileFinder({ root: folder, withVersions: true });
  const source = createJoinSource({
    ...{ location: "joined", finder, patterns: "", join: joining },
    kept: cache === undefined ? undefined : createKeptIndexes(cache),
    openPlaced: createOpenPlaced((name) => finder.locationOf(name), {}),
    openPart(location) {
      opened.push(location.slice(location.lastIndexOf("/") + 1));
      return open(location);
    },
  });
  return { ...source, opened };
}

function arrayOf(tree: StoredTree, path: string): StoredArray {
  const found = tree.groups.flatMap(({ arrays }) => arrays).find((array) => array.path === path);
  if (found === undefined) throw new Error(`expected an array '${path}'`);
  return found;
}

const lengthsOf = ({ join }: StoredTree) => join?.parts.map(({ length }) => length);

function readerOf(tree: StoredTree, path: string) {
  const { chunks } = arrayOf(tree, path);
  if (chunks.kind !== "parts") throw new Error(`expected chunks of parts, received ${chunks.kind}`);
  return openReader(chunks);
}

async function writeThree(t: Test): Promise<string> {
  const folder = await makeDirectory(t);
  await writeZarrPart(folder, "a.zarr", { first: 0, count: 4 });
  await writeNetcdfPart(folder, "b.nc", { first: 4, count: 3 });
  await writeZarrPart(folder, "c.zarr", { first: 7, count: 2 });
  return folder;
}

t.test("parts are described once, and only the first is opened again, for its coordinates", async (t) => {
  const folder = await writeThree(t);
  const source = openFolder(folder);
  const tree = await source.readTree();
  t.same(source.opened.toSorted(), ["a.zarr", "b.nc", "c.zarr"]);
  t.same(tree.join, {
    ...CONCAT,
    parts: [
      { name: "a.zarr", start: 0, length: 4 },
      { name: "b.nc", start: 4, length: 3 },
      { name: "c.zarr", start: 7, length: 2 },
    ],
  });
  source.opened.length = 0;
  t.equal(await source.fingerprint(), tree.fingerprint);
  t.equal((await source.readTree()).groups, tree.groups);
  const reader = readerOf(tree, "v");
  for (const row of [0, 1, 2, 3, 4]) await reader.version([row, 0]);
  t.same(source.opened, [], "their places are known");
  t.equal(reader.versionNow([1, 0], true), await reader.version([1, 0]));
  t.equal((await reader.read([1, 0]))?.version, await reader.version([1, 0]));
  await readerOf(tree, "area").read([0, 0]);
  t.same(source.opened, []);
  const coordinate = readerOf(tree, "y");
  await Promise.all([coordinate.version([0]), coordinate.version([0]), coordinate.read([0])]);
  t.same(source.opened, ["a.zarr"], "shared by all requests");
  t.type(await reader.version([0, 0]), "string", "and by all arrays");
});

t.test("if nothing is kept, files are opened once, until they change", async (t) => {
  const folder = await makeDirectory(t);
  await writeNetcdfPart(folder, "a.nc", { first: 0, count: 4 });
  await writeNetcdfPart(folder, "b.nc", { first: 4, count: 3 });
  const source = openFolder(folder);
  const versionsOf = (tree: StoredTree) =>
    Promise.all([0, 1].map((index) => readerOf(tree, "v").version([index, 0])));
  source.opened.length = 0;
  const before = await versionsOf(await source.readTree());
  t.same(source.opened.toSorted(), ["a.nc", "b.nc"]);

  await writeNetcdfPart(folder, "b.nc", { first: 5, count: 3 });
  await source.fingerprint();
  const after = await versionsOf(await source.readTree());
  t.same(source.opened.slice(2), ["b.nc"]);
  t.equal(after[0], before[0]);
  t.not(after[1], before[1]);
});

t.test("a restart reads no part that is known", async (t) => {
  const folder = await writeThree(t);
  const cache = await makeDirectory(t);
  const first = openFolder(folder, CONCAT, cache);
  const tree = await first.readTree();
  await first.close();
  const again = openFolder(folder, CONCAT, cache);
  const restored = await again.readTree();
  t.same(again.opened, []);
  t.equal(restored.identity, tree.identity);
  t.equal(restored.fingerprint, tree.fingerprint);
  t.same(restored.join, tree.join);
  const withoutChunks = ({ groups }: StoredTree) =>
    groups.map((group) => ({ ...group, arrays: group.arrays.map(({ chunks: _, ...array }) => array) }));
  t.same(withoutChunks(restored), withoutChunks(tree));
  for (const row of [0, 2, 4])
    t.equal(await readerOf(restored, "v").version([row, 0]), await readerOf(tree, "v").version([row, 0]));
  t.same(await readerOf(restored, "v").read([1, 0]), await readerOf(tree, "v").read([1, 0]));
  t.same(again.opened, [], "nor for its chunks");

  await again.close();
  await writeNetcdfPart(folder, "d.nc", { first: 9, count: 2 });
  await rm(join(folder, "c.zarr"), { recursive: true });
  const grown = openFolder(folder, CONCAT, cache);
  t.same(lengthsOf(await grown.readTree()), [4, 3, 2]);
  t.same(grown.opened, ["d.nc"]);
  await grown.close();
});

t.test("what was one dataset before a restart is one after it", async (t) => {
  const folder = await writeThree(t);
  const cache = await makeDirectory(t);
  const first = openFolder(folder, CONCAT, cache);
  await first.readTree();
  await first.close();
  await writeZarrPart(folder, "odd.zarr", { first: 9, count: 1, rows: 3 });
  await t.rejects(openFolder(folder).readTree(), {
    code: "invalid-metadata",
    message: /odd.zarr.*a.zarr/,
  });
  const again = openFolder(folder, CONCAT, cache);
  const { warnings, join } = await again.readTree();
  t.match(warnings.at(-1), /'odd.zarr' is left out: .*/);
  t.equal(join?.parts.length, 3);
  await again.close();
});

t.test("a file that would take an array away is left out", async (t) => {
  const folder = await writeThree(t);
  const cache = await makeDirectory(t);
  const first = openFolder(folder, CONCAT, cache);
  await first.readTree();
  await writeZarrPart(folder, "d.zarr", { first: 9, count: 1 });
  await rm(join(folder, "d.zarr/v"), { recursive: true });
  const reason = /'d.zarr' is left out: 'v' cannot be joined: /;
  const grown = await first.readTree();
  t.match(grown.warnings.at(-1), reason);
  t.equal(arrayOf(grown, "v").shape[0], 9);
  await first.close();
  const again = openFolder(folder, CONCAT, cache);
  t.match((await again.readTree()).warnings.at(-1), reason, "after a restart, too");
  await again.close();
});

t.test("a folder without files is refused, and so is one of which none can be opened", async (t) => {
  const folder = await makeDirectory(t);
  await t.rejects(openFolder(folder).readTree(), {
    code: "invalid-metadata",
    message: /expected files to join, found none/,
  });
  await writeFiles(folder, { "a.nc": "CDF?", "b.nc": "CDF?" });
  await t.rejects(openFolder(folder).readTree(), {
    code: "invalid-metadata",
    message: /a.nc cannot be opened, nor 1 others: /,
  });
});

t.test("files are left out by name, but not without a bound", async (t) => {
  const folder = await writeThree(t);
  for (let index = 0; index < 30; index++) await writeFiles(folder, { [`x${index}.nc`]: "CDF?" });
  const { warnings } = await openFolder(folder).readTree();
  t.equal(warnings.filter((warning) => warning.includes("left out")).length, 20);
  t.match(warnings.at(-1), "10 more");
});

t.test("stores are stacked, with a coordinate from their paths", async (t) => {
  const folder = await makeDirectory(t);
  for (const run of [10, 2, 1])
    await writeZarrPart(folder, `run-${run}.zarr`, { first: 0, count: 3, plus: run });
  await writeZarrPart(folder, "other.zarr", { first: 0, count: 3 });
  const source = openFolder(folder, { kind: "stack", dimension: "run", coordinate: "run-(\\d+)" });
  const tree = await source.readTree();
  t.match(tree.warnings, [/'other.zarr' is left out: expected a path that matches/]);
  t.match(tree.join?.parts, [{ name: "run-1.zarr" }, { name: "run-2.zarr" }, { name: "run-10.zarr" }]);
  const array = arrayOf(tree, "v");
  t.match(array, { shape: [3, 3, 2], chunkShape: [1, 2, 2] });
  const reader = readerOf(tree, "v");
  for (const [index, run] of [1, 2, 10].entries()) {
    const bytes = (await reader.read([index, 1, 0]))?.bytes as Uint8Array;
    t.same([...new Float32Array(bytes.slice().buffer)].slice(0, 2), [20 + run, 21 + run]);
  }
});

t.test("a file that cannot be read at present is tried again", async (t) => {
  const folder = await writeThree(t);
  let isAway = true;
  const source = openFolder(folder, CONCAT, undefined, async (location) => {
    if (isAway && location.endsWith("b.nc")) throw new ZpublishError("source-unreadable", "away");
    return openSource(location);
  });
  const first = await source.readTree();
  t.same(lengthsOf(first), [4, 2]);
  t.match(first.warnings.at(-1), "'b.nc' is left out: away");
  source.opened.length = 0;
  await source.fingerprint();
  t.same((await source.readTree()).groups, first.groups);
  t.same(source.opened, ["b.nc"]);
  isAway = false;
  await source.fingerprint();
  const second = await source.readTree();
  t.same(lengthsOf(second), [4, 3, 2]);
  t.notMatch(second.warnings.join(), "left out");
  t.equal(await source.fingerprint(), second.fingerprint);

  isAway = true;
  await writeNetcdfPart(folder, "b.nc", { first: 4, count: 2 });
  await source.fingerprint();
  t.same(lengthsOf(await source.readTree()), [4, 2]);
  isAway = false;
  await source.fingerprint();
  t.same(lengthsOf(await source.readTree()), [4, 2, 2]);
});

t.test("a part that turns out to be another one is described again", async (t) => {
  const folder = await writeThree(t);
  const source = openFolder(folder);
  const before = await source.readTree();
  const { shape: _, ...rest } = zarray;
  const array = { ...rest, shape: [1, 2], chunks: [2, 2], dtype: "<f4", fill_value: null };
  const time = { ...rest, shape: [1], chunks: [2], dtype: "<i4", fill_value: null };
  await writeFiles(join(folder, "c.zarr"), { "v/.zarray": array, "time/.zarray": time });
  t.equal(await source.fingerprint(), before.fingerprint, "documents of the root count");
  const failure = await readerOf(before, "v")
    .version([4, 0])
    .catch((error: unknown) => error);
  t.match(failure, {
    code: "source-changed",
    message: "part 'c.zarr'",
    details: { staleIdentity: before.identity },
  });
  t.not(await source.fingerprint(), before.fingerprint);
  const after = await source.readTree();
  t.same(lengthsOf(after), [4, 3, 1]);
  t.equal(await source.fingerprint(), after.fingerprint);
  t.ok(await readerOf(after, "v").version([3, 0]));
});

t.test("places of chunks are those of one version of a file, wherever it lies", async (t) => {
  const folder = await makeDirectory(t);
  const cache = await makeDirectory(t);
  const link = join(await makeDirectory(t), "data");
  await symlink(folder, link);
  await writeNetcdfPart(folder, "a.nc", { first: 0, count: 1 });
  await writeNetcdfPart(folder, "b.nc", { first: 1, count: 1 });
  await writeZarrPart(folder, "c.zarr", { first: 2, count: 1, chunk: 1 });
  const first = openFolder(link, CONCAT, cache);
  await first.readTree();
  await first.close();

  const again = openFolder(link, CONCAT, cache);
  const tree = await again.readTree();
  const valueAt = async (of: StoredTree, row: number) => {
    const chunk = await readerOf(of, "v").read([row, 0]);
    return Buffer.from(chunk?.bytes ?? []).readFloatBE(0);
  };
  t.equal(await valueAt(tree, 1), 10);
  t.same(again.opened, []);
  // In place of the file that has been read, and of one that has not.
  for (const [name, step] of [
    ["a.nc", 0],
    ["b.nc", 1],
  ] as const)
    await writeNetcdfPart(folder, name, { first: step, count: 1, plus: 5, since: 1 });
  for (const row of [0, 1])
    await t.rejects(readerOf(tree, "v").read([row, 0]), {
      code: "source-changed",
      details: { staleIdentity: tree.identity },
    });
  await again.fingerprint();
  const replaced = await again.readTree();
  t.same([await valueAt(replaced, 0), await valueAt(replaced, 1)], [5, 15]);

  // The files have moved, and a link leads there.
  await again.close();
  const moved = join(await makeDirectory(t), "moved");
  await rename(folder, moved);
  await rm(link);
  await symlink(moved, link);
  const later = openFolder(link, CONCAT, cache);
  const there = await later.readTree();
  t.same(later.opened, [], "they are the same files");
  await t.rejects(readerOf(there, "v").read([0, 0]), { code: "source-changed" });
  t.type(await readerOf(there, "v").version([2, 0]), "string", "a store is looked for where it is now");
  await later.fingerprint();
  t.equal(await valueAt(await later.readTree(), 0), 5);
  t.same(later.opened, ["a.nc"]);
  await later.close();
});

t.test("chunks that no part has are absent, and other absent chunks are the fill value", async (t) => {
  const folder = await makeDirectory(t);
  await writeZarrPart(folder, "a.zarr", { first: 0, count: 4 });
  await writeZarrPart(folder, "b.zarr", { first: 4, count: 3 });
  await writeZarrPart(folder, "c.zarr", { first: 7, count: 3 });
  for (const name of ["a.zarr/v/1.0", "b.zarr/v/1.0", "c.zarr/v/1.0"]) await rm(join(folder, name));
  const reader = readerOf(await openFolder(folder).readTree(), "v");
  t.type(await reader.version([0, 0]), "string");
  t.equal(await reader.version([1, 0]), undefined, "passed through");
  t.equal(await reader.read([1, 0]), undefined);
  t.type(await reader.version([3, 0]), "string", "made of one that is there and one that is not");
  t.equal(reader.parts?.variantOf([3, 0]), PIECED);
  const pieces = (await reader.parts?.piecesOf([3, 0])) ?? [];
  t.same(
    pieces.map(({ coords, origin, begin, end }) => ({ coords, origin, begin, end })),
    [
      { coords: [1, 0], origin: [6, 0], begin: [6, 0], end: [7, 2] },
      { coords: [0, 0], origin: [7, 0], begin: [7, 0], end: [9, 2] },
    ],
  );
  t.equal(reader.versionNow([3, 0]), undefined, "absence takes a look at the metadata");
});

function partOf(name: string, history: string, version: string): KnownPart {
  const exact = new LosslessNumber("1e-05");
  const codecs = [{ id: "zlib", level: 1 }];
  const arrays = {
    time: { dims: ["time"], values: [1, 2, 3], attrs: { units: "days since 2000-01-01" } },
    y: { dims: ["y"], dtype: "<i8", values: [1n, 2n ** 60n], attrs: { exact } },
    "g/v": { dims: ["time", "y"], shape: [3, 2], dtype: "<f4", fill: "NaN", codecs },
  };
  const description = describePart(name, arrays, { history });
  const keyEncoding = { name: "v2", separator: "." } as const;
  const files = {
    kind: "files",
    root: "",
    directory: "/g/v",
    metadataFile: "/g/v/.zarray",
    keyEncoding,
  } as const;
  const places = { kind: "store", layout: { chunks: [null, null, files] }, records: [] } as const;
  return { name, version, identity: `identity of ${name}`, description, places };
}

t.test("descriptions come back as they were, and equal pieces are one object", async (t) => {
  const cache = await makeDirectory(t);
  const kept = createKeptDescriptions(createKeptIndexes(cache), "dataset");
  t.equal(await kept.read(), undefined);
  const parts = Array.from({ length: 600 }, (_, index) =>
    kept.share(partOf(`${index}.zarr`, `made by ${index}`, `v${index}`)),
  );
  const broken = [{ name: "b.nc", version: "v", reason: "no" }];
  await kept.write({ parts, broken });
  const again = createKeptDescriptions(createKeptIndexes(cache), "dataset");
  const found = await again.read();
  t.same(found, { parts, broken });
  t.equal(await createKeptDescriptions(createKeptIndexes(cache), "other").read(), undefined);

  const [one, other] = [found?.parts[0]?.description, found?.parts[599]?.description];
  for (const index of [0, 1, 2]) {
    t.equal(one?.arrays[index]?.stored, other?.arrays[index]?.stored);
    t.equal(one?.arrays[index]?.values, other?.arrays[index]?.values);
  }
  const layouts = found?.parts.map(({ places }) => places?.kind === "store" && places.layout);
  t.equal(layouts?.[0], layouts?.[599]);
  t.not(one?.groups[0], other?.groups[0], "with another history");
  t.equal(one?.groups[1], other?.groups[1]);
  const { description: shared } = again.share(partOf("new.zarr", "made by 7", "v"));
  t.equal(shared.arrays[2]?.stored, one?.arrays[2]?.stored, "with those of new parts, too");
  t.equal(shared.groups[0], found?.parts[7]?.description.groups[0]);
});

t.test("places have a bound, for which files that were replaced do not count", async (t) => {
  const cache = createKeptIndexes(await makeDirectory(t));
  const kept = createKeptDescriptions(cache, "dataset");
  // 20 MiB of the 64 MiB.
  const [offsets, byteLengths] = [new Float64Array(10 ** 6), new Uint32Array(10 ** 6)];
  const file = { version: { token: "v" }, byteLength: 1 };
  const places = {
    ...({ kind: "file", store: "file:/a", key: "b.nc", file, format: "netcdf3" } as const),
    tables: [{ kind: "listed", offsets, byteLengths } as const, null],
  };
  const share = (version: string) => kept.share({ ...partOf("b.nc", "history", version), places });
  const shared = ["1", "2", "3", "4"].map(share);
  t.same(
    shared.map((part) => part.places !== undefined),
    [true, true, true, false],
  );
  for (let part = shared[0]!, version = 5; version < 9; part = share(`${version++}`)) {
    t.ok(part.places, part.version);
    await kept.write({ parts: [part], broken: [] });
  }
  const [found] = (await createKeptDescriptions(cache, "dataset").read())?.parts ?? [];
  t.equal(found?.version, "7");
  t.same(found?.places, places);
});

t.test("the last of several writes counts", async (t) => {
  const kept = createKeptDescriptions(createKeptIndexes(await makeDirectory(t)), "dataset");
  const [first, second] = ["one", "other"].map((history) =>
    kept.share(partOf("a.zarr", history, history)),
  ) as [KnownPart, KnownPart];
  void kept.write({ parts: [first], broken: [] });
  void kept.write({ parts: [first, second], broken: [] });
  void kept.write({ parts: [second], broken: [] });
  await kept.close();
  t.same((await kept.read())?.parts, [second]);
});
