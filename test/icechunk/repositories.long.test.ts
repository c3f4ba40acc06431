import { cp, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import t, { type Test } from "tap";
import { filesOf } from "../support/datasets/sample-stores.js";
import { effort } from "../support/effort.js";
import { checkOldRepository } from "../support/icechunk/old-repositories.js";
import { type Icechunk, icechunkMissing, openIcechunk } from "../support/icechunk/open-icechunk.js";
import {
  array,
  chunk,
  compareWithIcechunk,
  dataset,
  group,
  numbersOf,
} from "../support/icechunk/sample-repository.js";
import { until } from "../support/servers/process-table.js";
import { startServer } from "../support/servers/start-server.js";
import { writeFiles } from "../support/write-store.js";
import { writeZip } from "../support/write-zip.js";

t.setTimeout(600_000);

const skip = icechunkMissing();
const VERSIONS = [1, 2] as const;

/** Serves locations by id, refreshed only when the test says so. */
async function serve(t: Test, locations: Readonly<Record<string, string>>, more: object = {}) {
  const datasets = Object.entries(locations).map(([id, location]) => dataset(id, location, more));
  return startServer(t, { datasets, refreshSeconds: 3_600 });
}

/** A repository of an array whose chunks are inline, one whose chunks are files, and one without chunks. */
async function createSample(icechunk: Icechunk, specVersion: 1 | 2, config: object = {}) {
  const repository = await icechunk.create({
    specVersion,
    config: { inlineChunkThresholdBytes: 12, ...config },
  });
  const first = await repository.commit("first", [
    group("", { title: "sample" }),
    group("g"),
    array("small", [8], [2]),
    array("g/large", [8, 8], [4, 4]),
    array("g/empty", [4], [2]),
    ...[0, 1, 3].map((at) => chunk(`small/c/${at}`, 2, at)),
    ...["0/0", "0/1", "1/1"].map((at, index) => chunk(`g/large/c/${at}`, 16, 10 + index)),
  ]);
  return { repository, first };
}

for (const specVersion of VERSIONS) {
  t.test(
    `format ${specVersion}: branches, tags and snapshots are what Icechunk reads`,
    { skip },
    async (t) => {
      const icechunk = await openIcechunk(t);
      const { repository, first } = await createSample(icechunk, specVersion);
      await repository.call("createTag", "v1", first);
      await repository.call("createBranch", "dev", first);
      await repository.commit("dev", [chunk("small/c/2", 2, 99), { delete: "small/c/0" }], "dev");
      await repository.commit("second", [
        chunk("g/large/c/1/0", 16, 77),
        array("added", [3], [3]),
        chunk("added/c/0", 3, 5),
      ]);
      await repository.call("createTag", "gone", first);
      await repository.call("deleteTag", "gone");
      const location = `icechunk:${repository.path}`;
      const server = await serve(t, {
        main: location,
        found: repository.path,
        branch: `${location}?branch=dev`,
        tag: `${location}?tag=v1`,
        snapshot: `${location}?snapshot=${first}`,
      });
      for (const [id, at, expected] of [
        ["main", { branch: "main" }, 8],
        ["found", { branch: "main" }, 8],
        ["branch", { branch: "dev" }, 6],
        ["tag", { tag: "v1" }, 6],
        ["snapshot", { snapshotId: first }, 6],
      ] as const) {
        const { differences, chunks } = await compareWithIcechunk(server, id, repository, at);
        t.same(differences, [], id);
        t.equal(chunks, expected, id);
        t.match(await server.json(`/datasets/${id}/zarr/.zattrs`), { title: "sample" });
      }
      await t.rejects(serve(t, { x: `${location}?tag=gone` }), {
        message: /expected a tag among "v1", received "gone"/,
      });
      await t.rejects(serve(t, { x: `${location}?branch=never` }), {
        message: /expected a branch among "main", "dev", received "never"/,
      });
    },
  );

  t.test(
    `format ${specVersion}: a commit is served after a refresh, and other chunks keep their ETags`,
    { skip },
    async (t) => {
      const icechunk = await openIcechunk(t);
      const { repository } = await createSample(icechunk, specVersion);
      const server = await serve(t, { x: `icechunk:${repository.path}` });
      const etagOf = async (key: string) =>
        (await server.get(`/datasets/x/zarr3/${key}`)).headers.get("etag");
      const keys = ["small/c/0", "small/c/1", "g/large/c/0/0", "g/large/c/0/1"];
      const before = await Promise.all(keys.map(etagOf));
      await repository.commit("second", [chunk("small/c/0", 2, -5), chunk("g/large/c/0/1", 16, -6)]);
      t.same(await Promise.all(keys.map(etagOf)), before, "until then, the state before is served");
      await server.server.refresh();
      const after = await Promise.all(keys.map(etagOf));
      t.same(
        after.map((etag, index) => etag === before[index]),
        [false, true, true, false],
        "ETags of chunks that the commit changed",
      );
      t.same((await compareWithIcechunk(server, "x", repository, { branch: "main" })).differences, []);
      await repository.commit("grown", [array("small", [12], [2]), chunk("small/c/5", 2, 55)]);
      await server.server.refresh();
      t.same((await compareWithIcechunk(server, "x", repository, { branch: "main" })).differences, []);
      await repository.commit("less", [{ delete: "g/empty/zarr.json" }, { delete: "small/c/1" }]);
      await server.server.refresh();
      t.equal((await server.get("/datasets/x/zarr3/g/empty/zarr.json")).status, 404);
      t.same((await compareWithIcechunk(server, "x", repository, { branch: "main" })).differences, []);
    },
  );

  t.test(`format ${specVersion}: a history with rebases, amends and resets`, { skip }, async (t) => {
    const icechunk = await openIcechunk(t);
    const { repository, first } = await createSample(icechunk, specVersion);
    const server = await serve(t, { x: `icechunk:${repository.path}` });
    const check = async (what: string) => {
      await server.server.refresh();
      const { differences, chunks } = await compareWithIcechunk(server, "x", repository, { branch: "main" });
      t.same(differences, [], what);
      return chunks;
    };
    t.equal(await check("first"), 6);
    await repository.race([chunk("small/c/0", 2, 1000)], [chunk("g/large/c/1/0", 16, 2000)]);
    t.equal(await check("rebased"), 7);
    for (let commit = 0; commit < effort(40); commit++) {
      await repository.commit(`commit ${commit}`, [chunk("small/c/2", 2, commit)]);
      if (commit % 8 === 0) t.equal(await check(`commit ${commit}`), 8);
    }
    if (specVersion === 2) {
      await repository.amend("amended", [chunk("small/c/3", 2, 3000)]);
      t.equal(await check("amended"), 8);
      await repository.commit("moved", [{ move: "/g/large", to: "/moved" }]);
      t.equal(await check("moved"), 8);
      t.equal((await server.get("/datasets/x/zarr3/g/large/zarr.json")).status, 404);
    }
    await repository.call("resetBranch", "main", first);
    t.equal(await check("reset"), 6);
  });
}

t.test("manifests that are split, and split otherwise by later commits", { skip }, async (t) => {
  const icechunk = await openIcechunk(t);
  const split = (sizes: readonly object[]) => ({
    manifest: { splitting: { split_sizes: [[{ name_matches: { regex: "large|small" } }, sizes]] } },
  });
  const { repository } = await createSample(
    icechunk,
    2,
    split([
      { condition: { Axis: 0 }, num_chunks: 1 },
      { condition: "Any", num_chunks: 2 },
    ]),
  );
  await repository.commit("an array of many manifests", [
    array("cube_large", [10, 12, 6], [2, 3, 2]),
    ...Array.from({ length: 5 * 4 * 3 }, (_, at) => at)
      .filter((at) => at % 7 !== 3)
      .map((at) => chunk(`cube_large/c/${Math.floor(at / 12)}/${Math.floor(at / 3) % 4}/${at % 3}`, 12, at)),
  ]);
  const server = await serve(t, { x: `icechunk:${repository.path}` });
  const whole = await startServer(t, {
    datasets: [
      dataset("x", `icechunk:${repository.path}`, {
        variables: { cube_large: { chunks: [-1, -1, -1], compressor: null } },
      }),
    ],
  });
  const check = async (what: string) => {
    await server.server.refresh();
    const { differences, chunks } = await compareWithIcechunk(server, "x", repository, { branch: "main" });
    t.same(differences, [], what);
    t.ok(chunks > 50, what);
  };
  await check("split by one and two chunks");
  const snapshot = (await repository.call("lookupBranch", "main")) as string;
  const manifests = (await repository.call("lookupManifestFiles", snapshot)) as readonly unknown[];
  t.ok(manifests.length > 15, `${manifests.length} manifests`);
  await repository.commit(
    "rewritten",
    [chunk("cube_large/c/0/0/0", 12, 500), chunk("cube_large/c/4/3/2", 12, 501)],
    "main",
    split([{ condition: "Any", num_chunks: 3 }]),
  );
  await check("split by three");
  const cube = new Int32Array(await (await whole.get("/datasets/x/zarr/cube_large/0.0.0")).arrayBuffer());
  t.equal(cube.length, 10 * 12 * 6, "the whole array as one chunk, of many manifests");
  t.equal(cube[0], 0);
  t.ok(cube.includes(-1), "absent chunks are filled");
});

t.test("100,000 chunks of one array", { skip }, async (t) => {
  const icechunk = await openIcechunk(t);
  const repository = await icechunk.create();
  await repository.commit("many", [
    group(""),
    array("many", [1000, 400], [2, 2]),
    { numbered: "many", grid: [500, 200], byteLength: 16 },
  ]);
  await repository.commit("a few others", [
    chunk("many/c/0/0", 4, -9),
    chunk("many/c/499/199", 4, -9),
    { delete: "many/c/250/100" },
  ]);
  const server = await serve(t, { x: `icechunk:${repository.path}` });
  const wrong: string[] = [];
  const ask = async (number: number) => {
    const key = `${Math.floor(number / 200)}/${number % 200}`;
    const { status, numbers } = await numbersOf(await server.get(`/datasets/x/zarr3/many/c/${key}`));
    const expected = number === 0 || number === 99_999 ? -9 : number;
    if (numbers.length !== 4 || numbers.some((each) => each !== expected))
      wrong.push(`${key}: ${status} ${numbers}`);
  };
  t.equal((await server.get("/datasets/x/zarr3/many/c/250/100")).status, 404);
  const step = Math.max(1, Math.round(50_000 / effort(10_000)));
  const numbers = Array.from({ length: 100_000 }, (_, at) => at).filter(
    (at) => (at % step === 0 || at > 99_990) && at !== 250 * 200 + 100,
  );
  for (let begin = 0; begin < numbers.length; begin += 64)
    await Promise.all(numbers.slice(begin, begin + 64).map(ask));
  t.same(wrong.slice(0, 10), [], `${wrong.length} of ${numbers.length} are wrong`);
});

t.test("a repository in a zip archive", { skip }, async (t) => {
  const icechunk = await openIcechunk(t);
  for (const specVersion of VERSIONS) {
    const { repository, first } = await createSample(icechunk, specVersion);
    await repository.commit("second", [chunk("small/c/2", 2, 3)]);
    const files = [...(await filesOf(repository.path))];
    const zip = writeZip(files.map(([name, content]) => ({ name, content })));
    await writeFiles(join(repository.path, ".."), { "repository.zip": zip });
    const location = `icechunk:${repository.path}.zip`;
    const server = await serve(t, { x: location, y: `${location}?snapshot=${first}` });
    t.same((await compareWithIcechunk(server, "x", repository, { branch: "main" })).differences, []);
    t.same((await compareWithIcechunk(server, "y", repository, { snapshotId: first })).differences, []);
  }
});

t.test(
  "files that garbage collection removes are failures, never absent, and a refresh heals",
  { skip },
  async (t) => {
    const icechunk = await openIcechunk(t);
    const { repository, first } = await createSample(icechunk, 2);
    const location = `icechunk:${repository.path}`;
    // Chunks are asked for while their repository is collected, as a client does that opened it before.
    const read = await serve(t, { x: location, old: `${location}?snapshot=${first}` });
    const untouched = await serve(t, { x: location });
    for (const server of [read, untouched])
      t.equal((await server.get("/datasets/x/zarr3/small/zarr.json")).status, 200);
    t.equal((await read.get("/datasets/x/zarr3/g/large/c/0/0")).status, 200);

    // Expiry leaves a branch whose commits are gone but the last one: here it begins again, and nothing of the first state is left.
    const files = new Set(await filesBelow(repository.path));
    const initial = ((await repository.call("ancestry", { branch: "main" })) as { id: string }[]).at(-1)!.id;
    await repository.call("resetBranch", "main", initial);
    await repository.commit("again", [
      group("", { title: "sample" }),
      group("g"),
      array("small", [8], [2]),
      array("g/large", [8, 8], [4, 4]),
      chunk("small/c/0", 2, 70),
      chunk("g/large/c/0/0", 16, 71),
    ]);
    for (const file of files) {
      if (/^(chunks|manifests|snapshots)\//.test(file) && !file.endsWith(initial))
        await rm(join(repository.path, file));
    }

    for (const [what, server] of [
      ["read before", read],
      ["opened before", untouched],
    ] as const) {
      for (const key of ["g/large/c/0/0", "g/large/c/0/1", "g/large/c/1/1", "small/c/0", "small/c/3"]) {
        const { status, numbers } = await numbersOf(await server.get(`/datasets/x/zarr3/${key}`));
        const isOld = status === 200 && numbers[0]! < 20;
        const isNew = status === 200 && numbers[0]! >= 70;
        t.ok(isOld || isNew || status === 500, `${what}: ${key} is ${status}`);
      }
      await server.server.refresh();
      const { differences, chunks } = await compareWithIcechunk(server, "x", repository, { branch: "main" });
      t.same(differences, [], `${what}, after a refresh`);
      t.equal(chunks, 2);
    }
    t.equal((await read.get("/datasets/old/zarr3/g/large/c/0/0")).status, 500, "a snapshot that is gone");
    t.equal((await read.get("/datasets/old/zarr3/g/large/c/1/0")).status, 404, "what it never had");
  },
);

t.test(
  "a branch that is read, written, collected and compacted at once has no wrong value",
  { skip },
  async (t) => {
    const icechunk = await openIcechunk(t);
    const repository = await icechunk.create({ config: { inlineChunkThresholdBytes: 0 } });
    const initial = (await repository.call("lookupBranch", "main")) as string;
    const chunks = Array.from({ length: 6 }, (_, at) => at);
    // Every chunk of a commit has the commit's number, so that a reader knows which states it saw.
    const state = (number: number) => [
      group(""),
      array("v", [24], [4], { attributes: { number } }),
      ...chunks.map((at) => chunk(`v/c/${at}`, 4, number * 10 + at)),
    ];
    await repository.commit("0", state(0));
    const server = await startServer(t, {
      datasets: [dataset("x", `icechunk:${repository.path}`)],
      refreshSeconds: 1,
    });
    let newest = 0;
    let isDone = false;
    const wrong: string[] = [];
    const counts = { right: 0, failed: 0 };
    const readers = chunks.map(async (at) => {
      while (!isDone) {
        const answer = await server.get(`/datasets/x/zarr3/v/c/${at}`);
        const bytes = await answer.arrayBuffer();
        if (answer.status === 500) counts.failed++;
        else if (answer.status !== 200) wrong.push(`${at}: ${answer.status}`);
        else {
          counts.right++;
          const values = new Int32Array(bytes);
          const isOfOne = values.every((value) => value === values[0]) && values[0]! % 10 === at;
          if (!isOfOne || values[0]! > newest * 10 + 9) wrong.push(`${at}: ${values}`);
        }
      }
    });
    for (let number = 1; number <= effort(60); number++) {
      newest = number;
      const old = await filesBelow(repository.path);
      await repository.call("createBranch", "next", initial);
      const snapshot = await repository.commit(String(number), state(number), "next");
      await repository.call("resetBranch", "main", snapshot);
      await repository.call("deleteBranch", "next");
      for (const file of old) {
        if (/^(chunks|manifests|snapshots)\//.test(file) && !file.endsWith(initial))
          await rm(join(repository.path, file));
      }
    }
    await until(async () => {
      const bytes = await (await server.get("/datasets/x/zarr3/v/c/0")).arrayBuffer();
      return bytes.byteLength === 16 && new Int32Array(bytes)[0] === newest * 10;
    });
    isDone = true;
    await Promise.all(readers);
    t.same(wrong.slice(0, 10), [], `${wrong.length} wrong answers`);
    t.ok(counts.right > 100, JSON.stringify(counts));
    t.same((await compareWithIcechunk(server, "x", repository, { branch: "main" })).differences, []);
  },
);

t.test("a repository that another one replaces, or a newer format, is refreshed", { skip }, async (t) => {
  const icechunk = await openIcechunk(t);
  for (const specVersion of VERSIONS) {
    const { repository } = await createSample(icechunk, specVersion);
    const { repository: other } = await createSample(icechunk, 2);
    await other.commit("other", [chunk("small/c/1", 2, 4321)]);
    const server = await serve(t, { x: `icechunk:${repository.path}` });
    t.same((await compareWithIcechunk(server, "x", repository, { branch: "main" })).differences, []);
    await rm(repository.path, { recursive: true });
    await cp(other.path, repository.path, { recursive: true });
    // The first refresh notices that there is no format 1 any more.
    for (let refresh = 0; refresh < 3 - specVersion; refresh++) await server.server.refresh();
    t.same((await compareWithIcechunk(server, "x", other, { branch: "main" })).differences, []);
  }
});

/** Paths of all files below a directory. */
async function filesBelow(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1));
}

const OLD = process.env.ZPUBLISH_TEST_ICECHUNK;
if (OLD !== undefined) {
  t.test("repositories that versions of Icechunk have written since 2025", async (t) => {
    const names = (await readdir(OLD, { withFileTypes: true })).filter((entry) => entry.isDirectory());
    t.ok(names.length > 0);
    for (const { name } of names) await t.test(name, (t) => checkOldRepository(t, OLD, name));
  });
}
