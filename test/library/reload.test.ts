import { setTimeout as delay } from "node:timers/promises";
import t from "tap";
import { LIMIT_OPTIONS } from "../../src/config/options.js";
import * as zpublish from "../../src/index.js";
import { runtimeShape } from "../../src/library/server-options.js";

async function treeOf(value: number): Promise<zpublish.ServableTree> {
  return zpublish.createDataTree({ variables: { v: { data: Uint8Array.of(value), shape: [1] } } });
}

async function start(options: zpublish.ServerOptions) {
  const server = await zpublish.createServer({ workers: 1, ...options });
  t.teardown(() => server.close());
  const { url } = await server.listen({ port: 0 });
  return { server, get: (path: string) => fetch(url + path) };
}

t.test("a library's server applies other options while it runs", async (t) => {
  const [one, two] = [await treeOf(1), await treeOf(2)];
  const { server, get } = await start({ datasets: { one } });
  const before = await get("/datasets/one/zarr/v/0");
  t.same(
    await server.reload({
      datasets: { one, two: { source: two, encoding: { compressor: null } } },
      workers: 1,
      title: "other",
    }),
    [],
  );
  const after = await get("/datasets/one/zarr/v/0");
  t.equal(after.headers.get("etag"), before.headers.get("etag"));
  t.same([...new Uint8Array(await (await get("/datasets/two/zarr/v/0")).arrayBuffer())], [2]);
  t.match(await (await get("/")).text(), "other");
  t.same(await server.reload({ datasets: { two }, workers: 1 }), []);
  t.equal((await get("/datasets/one/zarr/v/0")).status, 404);
  t.same([...one.root.variables.keys()], ["v"], "a given tree stays open");
});

t.test("options that cannot change are named", async (t) => {
  const { server } = await start({ datasets: {} });
  t.same(await server.reload({ datasets: {}, workers: 3, port: 1, workerMemory: "1GiB" }), [
    "port",
    "workers",
    "workerMemory",
  ]);
});

t.test("invalid options are refused, and nothing changes", async (t) => {
  const { server, get } = await start({ datasets: { one: await treeOf(1) } });
  await t.rejects(server.reload({ datasets: { "a/b": "x" } }), { code: "invalid-config" });
  await t.rejects(server.reload({ datasets: { none: "/no/such/store" } }), /dataset 'none'/);
  t.same(await (await get("/datasets")).json(), ["one"]);
});

t.test("concurrent reloads run one after the other, and the last one stays", async (t) => {
  const { server, get } = await start({ datasets: {} });
  const trees = await Promise.all([1, 2, 3].map(treeOf));
  const reloads = trees.map((tree, index) =>
    server.reload({ datasets: { [`d${index}`]: tree }, workers: 1 }),
  );
  await t.resolves(Promise.all(reloads));
  t.same(await (await get("/datasets")).json(), ["d2"]);
});

t.test("a plugin stays while it is the same, and is closed when its last request is answered", async (t) => {
  const events: string[] = [];
  let open = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const pluginOf = (name: string): zpublish.Plugin => ({
    name,
    version: "1.0.0",
    path: `example/${name}`,
    routes({ createDocument, title }) {
      events.push(`${name} routes of ${title}`);
      return [
        {
          path: `/${name}`,
          priority: "chunk",
          operation: { summary: "", contentType: "text/plain" },
          async handler() {
            await gate;
            return { kind: "document", document: createDocument(title, "text/plain") };
          },
        },
      ];
    },
    async close() {
      events.push(`${name} closed`);
    },
  });
  const [kept, dropped] = [pluginOf("kept"), pluginOf("dropped")];
  const { server, get } = await start({ datasets: {}, plugins: [kept, dropped], title: "one" });
  const asked = [get("/kept"), get("/dropped")];
  await delay(100);
  await server.reload({ datasets: {}, plugins: [kept], title: "two", workers: 1 });
  const expected = ["kept routes of one", "dropped routes of one", "kept routes of two"];
  await delay(300);
  t.same(events, expected);
  open();
  t.same(await Promise.all(asked.map(async (answer) => (await answer).text())), ["one", "one"]);
  t.equal(await (await get("/kept")).text(), "two");
  while (events.length === expected.length) await delay(10);
  t.same(events.slice(3), ["dropped closed"]);
  await server.close();
  t.same(events.slice(4), ["kept closed"]);
});

t.test("after close() nothing is reloaded", async (t) => {
  const { server } = await start({ datasets: {} });
  await server.close();
  await t.rejects(server.reload({ datasets: {} }), { code: "draining" });
});

t.test("options have the names and rules of the command line", async (t) => {
  const { server } = await start({ datasets: {}, maxRequests: 10, maxHeaderSize: "8KiB", drainTimeout: 1 });
  await server.close();
  for (const [options, message] of [
    [{ maxRequests: 0 }, /createServer: maxRequests: expected an integer from 1/],
    [{ drainDelay: -1 }, /drainDelay: expected a number of seconds/],
    [{ trustedProxies: "x" }, /trustedProxies: expected addresses/],
    [{ tlsCert: "x.pem" }, /tlsCert: expected tlsKey with it, received none/],
    [{ tokenFile: "no-such-file" }, /no-such-file/],
  ] as const) {
    await t.rejects(zpublish.createServer({ datasets: {}, ...options }), { code: "invalid-config", message });
  }
  t.ok(Object.keys(LIMIT_OPTIONS).every((key) => key in runtimeShape));
});
