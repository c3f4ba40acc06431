import t from "tap";
import { createFileFinder } from "../../src/find/collection-root.js";
import type { FileFinder, FileFinderOptions, Findings } from "../../src/find/file-finder.js";
import { objectVersion } from "../../src/find/object-finder.js";
import { openByteStore } from "../../src/stores/open-byte-store.js";
import { type FaultyOrigin, startFaultyOrigin } from "../support/origins/faulty-origin.js";
import { startS3Origin } from "../support/origins/s3-origin.js";
import type { Teardown } from "../support/write-store.js";

const pathsOf = ({ files }: Findings) => files.map(({ path }) => path);
const problemsOf = ({ problems }: Findings) => problems.map(({ path, reason }) => `${path}: ${reason}`);

async function look(finder: FileFinder): Promise<string[]> {
  return pathsOf(await finder.look());
}

async function start(
  t: Teardown,
  keys: readonly string[],
  options: Partial<FileFinderOptions> = {},
  pageSize = 2,
): Promise<[FaultyOrigin, FileFinder]> {
  const objects = Object.fromEntries(keys.map((key) => [key, key]));
  const origin = await startFaultyOrigin(t, { objects, s3: { bucket: "data", pageSize } });
  const stores = [{ name: "s", url: "s3://data/", endpoint: origin.url, anonymous: true }];
  return [origin, createFileFinder({ root: "s3://data/in", stores, ...options })];
}

const KEYS = [
  "in/a.nc",
  "in/b.txt",
  "in/2024/01/x.nc",
  "in/2024/02/y.nc",
  "in/2024/.hidden/z.nc",
  "in/s.zarr/.zgroup",
  "in/s.zarr/t/.zarray",
  "in/s.zarr/t/0.nc",
  "in/plain/zarr.json",
  "in/plain/t/zarr.json",
  "in/plain/inside.nc",
  "in/repo/repo",
  "in/repo/snapshots/A",
  "in/repo/chunks/inside.nc",
  "in/older/refs/branch.main/ref.json",
  "in/older/snapshots/A",
  "outside.nc",
];

t.test("objects and stores below a prefix are found", async (t) => {
  const [origin, finder] = await start(t, [...KEYS, "in/"]);
  const found = await finder.look();
  t.same(found.files, [
    { path: "2024/01/x.nc", isStore: false },
    { path: "2024/02/y.nc", isStore: false },
    { path: "a.nc", isStore: false },
    { path: "older", isStore: true },
    { path: "plain", isStore: true },
    { path: "repo", isStore: true },
    { path: "s.zarr", isStore: true },
  ]);
  t.same(found.problems, []);
  t.equal(await finder.look(), found);
  t.notOk(origin.requests.some(({ query }) => /s\.zarr|plain\/t|hidden/.test(query.get("prefix") ?? "")));
  t.equal(finder.root, "s3://data/in/");
  t.equal(finder.locationOf("2024/01/x.nc"), "s3://data/in/2024/01/x.nc");
});

t.test("no prefix is listed that cannot have what is asked for", async (t) => {
  const [origin, finder] = await start(t, KEYS, { include: ["2024/*/*.nc"], exclude: ["2024/02"] });
  t.same(await look(finder), ["2024/01/x.nc"]);
  const listed = new Set(origin.requests.map(({ query }) => query.get("prefix")));
  t.same([...listed], ["in/", "in/2024/", "in/2024/01/"]);
  const [, stores] = await start(t, KEYS, { include: ["*"] });
  t.same(await look(stores), ["a.nc", "b.txt", "older", "plain", "repo", "s.zarr"]);
});

t.test("what comes and goes is found in the next look", async (t) => {
  const [origin, finder] = await start(t, KEYS, { include: ["**/*.nc"] });
  t.same(await look(finder), ["2024/01/x.nc", "2024/02/y.nc", "a.nc"]);
  origin.put("in/2025/01/02/x.nc", "new");
  origin.remove("in/2024/02/y.nc");
  t.same(await look(finder), ["2024/01/x.nc", "2025/01/02/x.nc", "a.nc"]);
});

t.test("a look makes a bounded number of requests, few at a time, and looks take turns", async (t) => {
  const keys = Array.from({ length: 600 }, (_, index) => `in/${index}/a.nc`);
  const [origin, finder] = await start(t, keys, {}, 1_000);
  t.equal((await look(finder)).length, 600);
  t.equal(origin.requests.length, 601);
  t.ok(origin.maxInFlight() <= 8);
  for (const index of [0, 300, 599]) origin.put(`in/${index}/b.nc`, "");
  const counts: number[] = [];
  for (let i = 0; i < 3; i++) {
    origin.resetCounts();
    await finder.look();
    counts.push(origin.requests.length);
  }
  t.same(counts, [256, 256, 256]);
  t.equal((await look(finder)).length, 603);
});

t.test("names that no location can have, and prefixes that cannot be listed, are named", async (t) => {
  const keys = ["in/a?.nc", "in/#/a.nc", "in//b.nc", "in/good.nc", "in/bad/a.nc", "in/c.zarr/.zgroup"];
  const [origin, finder] = await start(t, keys);
  await finder.look();
  origin.setFault(({ query }) => (query.get("prefix") === "in/bad/" ? { code: "AccessDenied" } : undefined));
  for (let i = 0; i < 2; i++) {
    const found = await finder.look();
    t.same(pathsOf(found), ["bad/a.nc", "c.zarr", "good.nc"]);
    t.match(problemsOf(found), [
      ': expected a name, received ""',
      '#: no location can have "?" or "#" in it',
      'a?.nc: no location can have "?" or "#" in it',
      /^bad: it cannot be read: .*AccessDenied/,
    ]);
  }
  origin.setFault(() => undefined);
  t.equal((await finder.look()).problems.length, 3);
});

t.test("a root that cannot be listed, or is a store, is an error", async (t) => {
  const [origin, finder] = await start(t, KEYS);
  const found = await finder.look();
  origin.setFault(() => ({ code: "AccessDenied" }));
  await t.rejects(finder.look(), { code: "source-unreadable", message: /cannot be listed: .*AccessDenied/ });
  origin.setFault(() => undefined);
  t.equal((await finder.look()).files, found.files);
  origin.put("in/.zgroup", "{}");
  await t.rejects(finder.look(), { code: "invalid-config", message: /found a Zarr store/ });
  await t.rejects(finder.look(AbortSignal.abort()), { name: "AbortError" });
});

t.test("versions come with the listing; a store is asked for its root document", async (t) => {
  const { endpoint, put, remove } = await startS3Origin(t);
  for (const key of ["a.nc", "b/c.nc", "s.zarr/.zgroup", "u.zarr/t/0", "plain/zarr.json"]) {
    await put("data", `in/${key}`, key);
  }
  const stores = [{ name: "s", url: "s3://data/", endpoint, anonymous: true }];
  const finder = createFileFinder({ root: "s3://data/in/", stores, withVersions: true });
  const first = await finder.look();
  t.same(pathsOf(first), ["a.nc", "b/c.nc", "plain", "s.zarr"]);
  t.ok(first.files.every(({ version }) => version !== undefined && version.length > 8));
  t.match(problemsOf(first), [/^u.zarr: it is named like a Zarr store: expected zarr.json/]);
  t.equal(await finder.look(), first);
  await put("data", "in/a.nc", "x.nc");
  await put("data", "in/s.zarr/.zattrs", "{}");
  await put("data", "in/u.zarr/.zarray", "{}");
  await remove("data", "in/plain/zarr.json");
  const second = await finder.look();
  t.same(pathsOf(second), ["a.nc", "b/c.nc", "s.zarr", "u.zarr"]);
  t.not(second.files[0]?.version, first.files[0]?.version);
  t.same(second.files[1], first.files[1]);
  const store = openByteStore("s3://data/in/", stores);
  t.equal(await objectVersion(store, { path: "s.zarr", isStore: true }), second.files[2]?.version);
  t.type(await objectVersion(store, { path: "a.nc", isStore: false }), "string");
  t.equal(await objectVersion(store, { path: "plain", isStore: true }), undefined);
  t.not(second.files[2]?.version, first.files[3]?.version);
  t.same(second.problems, []);
});
