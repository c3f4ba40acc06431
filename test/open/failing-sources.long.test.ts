import { execFileSync } from "node:child_process";
import { mkdir, rename, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import t, { type Test } from "tap";
import { faultMountMissing, mountFaults } from "../support/fault-mount.js";
import { type RunningServer, startServer } from "../support/servers/start-server.js";
import { makeDirectory, makeOld, writeFiles, zarray, zgroup } from "../support/write-store.js";

const CHUNK = Buffer.from("abcdefgh");
const CONFIGURED = { immutable: false, encoding: {}, variables: {} };

/** A store with one array of two chunks of 8 bytes, the second of which is absent. */
const FILES = {
  ".zgroup": zgroup,
  "v/.zarray": { ...zarray, shape: [16], chunks: [8] },
  "v/0": CHUNK,
};

/** Serves a store as it is and in other chunks, with a cache. */
async function serve(t: Test, location: string): Promise<RunningServer> {
  const directory = await makeDirectory(t);
  return startServer(t, {
    cache: { directory, maxBytes: 2 ** 22 },
    datasets: [
      { id: "d", location, ...CONFIGURED },
      { id: "made", location, ...CONFIGURED, encoding: { chunks: [4], compressor: null } },
    ],
  });
}

const PATHS = ["/datasets/d/zarr/v/0", "/datasets/made/zarr/v/1"] as const;

async function checkFailure(t: Test, { get }: RunningServer, location: string, what: string): Promise<void> {
  for (const path of PATHS) {
    const answer = await get(path);
    const body = await answer.text();
    t.equal(answer.status, 500, `${what}: ${path}: ${body}`);
    t.match(body, "detail");
    t.notMatch(body, location);
  }
}

async function checkSound(t: Test, { get }: RunningServer): Promise<void> {
  const answers = await Promise.all(PATHS.map((path) => get(path)));
  const bodies = await Promise.all(answers.map((answer) => answer.text()));
  t.same(bodies, ["abcdefgh", "efgh"]);
  t.equal((await get("/datasets/d/zarr/v/1")).status, 404, "an absent chunk is absent");
}

t.test("anything but a file in place of a chunk is a failure, and is not waited for", async (t) => {
  const location = await makeDirectory(t);
  await writeFiles(location, FILES);
  const server = await serve(t, location);
  await checkSound(t, server);
  const path = join(location, "v/0");
  const listener = createServer();
  t.teardown(() => listener.close());
  const kinds: Record<string, () => Promise<unknown> | unknown> = {
    "a directory": () => mkdir(path),
    "a pipe": () => execFileSync("mkfifo", [path]),
    "a socket": () => new Promise<void>((listens) => listener.listen(path, listens)),
    "a device": () => symlink("/dev/zero", path),
    "a link to itself": () => symlink("0", path),
    "a link to nothing": () => symlink("none", path),
  };
  for (const [what, make] of Object.entries(kinds)) {
    await rm(path, { recursive: true, force: true });
    await make();
    await checkFailure(t, server, location, what);
  }
  listener.close();
  await rm(path, { recursive: true, force: true });
  await writeFiles(location, { "v/0": CHUNK });
  await checkSound(t, server);
});

t.test("an array or a store that is removed is a failure, also for absent chunks", async (t) => {
  const parent = await makeDirectory(t);
  const location = join(parent, "store");
  for (const gone of ["v/.zarray", "v", "."]) {
    await rm(location, { recursive: true, force: true });
    await writeFiles(location, FILES);
    const server = await serve(t, location);
    await checkSound(t, server);
    await rm(join(location, gone), { recursive: true });
    t.equal((await server.get("/datasets/d/zarr/v/1")).status, 500, `${gone} went`);
    if (gone !== "v/.zarray") await checkFailure(t, server, parent, `${gone} went`);
  }
});

t.test("if metadata is cut short or half written, the last state is served", async (t) => {
  const location = await makeDirectory(t);
  await writeFiles(location, FILES);
  const server = await serve(t, location);
  const before = await (await server.get("/datasets/d/zarr/.zmetadata")).text();
  await truncate(join(location, "v/.zarray"), 20);
  await makeOld(join(location, "v/.zarray"));
  await server.server.refresh();
  t.equal(await (await server.get("/datasets/d/zarr/.zmetadata")).text(), before);
  await checkSound(t, server);
});

t.test("a chunk cut short is a failure, and so is one that is longer", async (t) => {
  const location = await makeDirectory(t);
  await writeFiles(location, FILES);
  const server = await serve(t, location);
  await checkSound(t, server);
  for (const content of ["abc", "", "abcdefghi"]) {
    await writeFiles(location, { "v/0": content });
    await checkFailure(t, server, location, `'${content}'`);
  }
});

t.test("a store that is replaced again and again never yields a missing chunk, nor a mixture", async (t) => {
  const parent = await makeDirectory(t);
  const location = join(parent, "store");
  const generation = (n: number) => ({ ...FILES, "v/0": Buffer.alloc(8, 97 + (n % 26)) });
  await writeFiles(location, generation(0));
  const server = await serve(t, location);
  let isDone = false;
  const writing = (async () => {
    for (let n = 1; !isDone; n++) {
      // In place, and with another directory: for a moment there is none.
      await writeFile(join(location, "v/0"), generation(n)["v/0"]);
      await writeFiles(`${location}.new`, generation(n + 1));
      await rename(location, `${location}.old`);
      await rename(`${location}.new`, location);
      await rm(`${location}.old`, { recursive: true });
    }
  })();
  const tally: Record<number, number> = {};
  const problems: string[] = [];
  for (let round = 0; round < 150; round++) {
    const answers = await Promise.all(PATHS.map((path) => server.get(path)));
    for (const answer of answers) {
      const body = await answer.text();
      tally[answer.status] = (tally[answer.status] ?? 0) + 1;
      const isRight = answer.status === 200 ? /^([a-z])\1*$/.test(body) : answer.status >= 500;
      if (!isRight) problems.push(`${answer.status} ${body}`);
    }
  }
  isDone = true;
  await writing;
  t.same(problems, []);
  t.ok((tally[200] ?? 0) > 0, JSON.stringify(tally));
});

t.test(
  "whatever a file system answers, a chunk that is there is not missing",
  { skip: faultMountMissing() },
  async (t) => {
    const mount = await mountFaults(t);
    await writeFiles(mount.behind, FILES);
    const server = await serve(t, mount.directory);
    await checkSound(t, server);
    for (const code of ["EIO", "ESTALE", "EACCES", "ETIMEDOUT", "ENXIO"]) {
      for (const operation of ["getattr", "open", "read"]) {
        await mount.fail();
        // Another version: the cache does not have it.
        await makeOld(join(mount.behind, "v/0"));
        await mount.fail(`${code} ${operation} /v/0`);
        await checkFailure(t, server, mount.directory, `${code} of ${operation}`);
      }
    }
    await mount.fail("short:5 read /v/0");
    await makeOld(join(mount.behind, "v/0"));
    await checkFailure(t, server, mount.directory, "fewer bytes than it says");
    await mount.fail("EIO * /v/.zarray");
    t.equal(
      (await server.get("/datasets/d/zarr/v/1")).status,
      500,
      "absent, but it is unknown whether the array exists",
    );
    await mount.fail("slow:0.1 * /v/*");
    await checkSound(t, server);
    // The FUSE program ends: every call fails with ENOTCONN.
    await mount.end();
    await checkFailure(t, server, mount.directory, "the file system has no program any more");
    t.equal((await server.get("/datasets/d/zarr/v/1")).status, 500);
  },
);
