import { join } from "node:path";
import t, { type Test } from "tap";
import { until } from "../support/servers/process-table.js";
import { openConnection, requestText } from "../support/servers/raw-request.js";
import { cannotSharePort } from "../support/servers/serve-routes.js";
import { startProgram, writeStore } from "../support/servers/start-program.js";
import { startServer } from "../support/servers/start-server.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../support/write-store.js";

t.setTimeout(120_000);

const ARRAY = { ...zarray, shape: [4], fill_value: 7 };

async function writeSmallStore(t: Test): Promise<string> {
  const location = join(await makeDirectory(t), "store");
  await writeFiles(location, { ".zgroup": zgroup, "v/.zarray": ARRAY, "v/0": "ab", "v/1": "cd" });
  return location;
}

/** Starts two instances whose own refreshes are an hour away. */
async function serveTwice(t: Test, location: string, dataset: object = {}, refreshSeconds = 3_600) {
  const config = {
    refreshSeconds,
    datasets: [{ id: "d", location, immutable: false, encoding: {}, variables: {}, ...dataset }],
  };
  const [one, other] = await Promise.all([startServer(t, config), startServer(t, config)]);
  for (const { get } of [one, other]) t.equal((await get("/datasets/d/zarr/v/0")).status, 200);
  return { one, other };
}

const text = async (response: Response) => [response.status, await response.text()];

t.test("a change that another instance has served is not absent", async (t) => {
  const location = await writeSmallStore(t);
  const { one, other } = await serveTwice(t, location);
  t.equal((await other.get("/datasets/d/zarr/v/2")).status, 404);
  await writeFiles(location, {
    "v/.zarray": { ...ARRAY, shape: [6] },
    "v/2": "ef",
    "w/.zarray": ARRAY,
    "w/0": "gh",
    "g/.zgroup": zgroup,
    "g/x/.zarray": ARRAY,
    "g/x/1": "ij",
  });
  await one.server.refresh();
  t.match(await one.json("/datasets/d/zarr/v/.zarray"), { shape: [6] });
  t.same(await text(await other.get("/datasets/d/zarr/v/2")), [200, "ef"], "an array that has grown");
  t.match(await other.json("/datasets/d/zarr/v/.zarray"), { shape: [6] }, "which is served from then on");

  await writeFiles(location, { "new/.zarray": ARRAY, "new/0": "kl", "h/.zgroup": zgroup });
  t.same(await text(await other.get("/datasets/d/zarr/new/0")), [200, "kl"], "a new variable");
  await writeFiles(location, { "newer/.zarray": ARRAY, "i/.zgroup": zgroup, "i/.zattrs": { a: 1 } });
  t.match(await other.json("/datasets/d/zarr/newer/.zarray"), { shape: [4] });
  await writeFiles(location, { "j/.zgroup": zgroup, "j/y/.zarray": ARRAY });
  t.match(await other.json("/datasets/d/zarr/j/.zmetadata"), { metadata: { "y/.zarray": { shape: [4] } } });
  await writeFiles(location, { "v/.zarray": { ...ARRAY, shape: [4, 2], chunks: [2, 2] }, "v/1.0": "mnop" });
  t.same(await text(await other.get("/datasets/d/zarr/v/1.0")), [200, "mnop"], "other dimensions");
});

t.test("a chunk file that is written later is found", async (t) => {
  const location = await writeSmallStore(t);
  await writeFiles(location, { "s/.zarray": ARRAY });
  const { other } = await serveTwice(t, location);
  t.equal((await other.get("/datasets/d/zarr/s/1")).status, 404);
  await writeFiles(location, { "s/1": "xy" });
  t.same(await text(await other.get("/datasets/d/zarr/s/1")), [200, "xy"]);
});

t.test("a dataset that is immutable, or without refreshes, is not refreshed for that either", async (t) => {
  for (const [dataset, seconds] of [
    [{ immutable: true }, 3_600],
    [{}, 0],
  ] as const) {
    const location = await writeSmallStore(t);
    const { other } = await serveTwice(t, location, dataset, seconds);
    await writeFiles(location, { "v/.zarray": { ...ARRAY, shape: [6] }, "v/2": "ef" });
    t.equal((await other.get("/datasets/d/zarr/v/2")).status, 404);
  }
});

t.test("a path that never exists is 404 for many requests at once, each time", async (t) => {
  const location = await writeSmallStore(t);
  const { other } = await serveTwice(t, location);
  const keys = ["v/9", "nothing/0", "nothing/.zarray", "no/group/.zgroup", "v/0.0", "v/01", "zarr.json"];
  for (let round = 0; round < 20; round++) {
    const answers = await Promise.all(keys.map((key) => other.get(`/datasets/d/zarr/${key}`)));
    for (const answer of answers) t.equal(answer.status, 404);
  }
});

t.test("a source that cannot be refreshed is a failure, not an absence", async (t) => {
  const location = await writeSmallStore(t);
  const { other } = await serveTwice(t, location);
  const { rename } = await import("node:fs/promises");
  await rename(location, `${location}.gone`);
  const answer = await other.get("/datasets/d/zarr/v/9");
  t.equal(answer.status, 500);
  t.notMatch(await answer.text(), location);
  await rename(`${location}.gone`, location);
  await until(async () => (await other.get("/datasets/d/zarr/v/9")).status === 404);
});

t.test(
  "each of several processes refreshes",
  { skip: process.platform === "linux" ? cannotSharePort : "only Linux spreads connections" },
  async (t) => {
    const location = await writeStore(t);
    const program = await startProgram(t, location, { args: ["--refresh", "3600"] });
    const connections = await Promise.all(program.processes().map((pid) => program.connectTo(pid)));
    const ask = async (connection: (typeof connections)[number], key: string) => {
      connection.send(requestText(`/datasets/plain/zarr/${key}`));
      return connection.answer();
    };
    for (const connection of connections) t.equal((await ask(connection, "new/0")).status, 404);
    await writeFiles(location, { "new/.zarray": ARRAY, "new/0": "ab" });
    for (const connection of connections) {
      const { status, body } = await ask(connection, "new/0");
      t.same([status, body.toString()], [200, "ab"]);
    }
    const another = await openConnection(program.port);
    t.equal((await ask(another, "newer/0")).status, 404);
    another.socket.destroy();
  },
);
