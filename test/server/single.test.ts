import { join } from "node:path";
import t, { type Test } from "tap";
import { createDataTree, createServer, type Plugin } from "../../src/index.js";
import { datasetOf, flatSource, nestedSource } from "../support/datasets/sample-tree.js";
import { crawl } from "../support/servers/crawl.js";
import { accessOf, startServer } from "../support/servers/start-server.js";
import { makeDirectory, writeFiles } from "../support/write-store.js";

const single = true;
const overviews = { levels: 1, method: "mean" } as const;
const FLAT = datasetOf("flat", flatSource(), { overviews });
const NESTED = datasetOf("nested ü", nestedSource(), { overviews });
const TOKEN = "a-token+of/a-client==";

function check(t: Test, { visited, elsewhere }: Awaited<ReturnType<typeof crawl>>): void {
  t.same(
    [...visited].filter(([, status]) => status !== 200),
    [],
    "every link leads somewhere",
  );
  t.same(elsewhere, [], "and to this server");
  const paths = new Set([...visited.keys()].map((path) => path.replace(/\?.*/, "")));
  for (const path of ["", "explore", "zarr/.zmetadata", "zarr3/zarr.json", "overviews/zarr", "docs"])
    t.ok(paths.has(path), path);
  t.same(
    [...paths].filter((path) => path.includes("datasets")),
    [],
  );
}

t.test("every link from the home page on leads somewhere, below a root path", async (t) => {
  const { url } = await startServer(t, { single, datasets: [NESTED], rootPath: "/prefix" });
  const found = await crawl(`${url}/`);
  check(t, found);
  for (const path of [
    "tree",
    "groups/a/b",
    "groups/a/explore",
    "thumbnail/a/v.png",
    "zarr/a/b/v/0",
    "zarr3/c/",
  ])
    t.ok(found.visited.has(path), path);
});

t.test("every link has the token of the page", async (t) => {
  const directory = await makeDirectory(t);
  await writeFiles(directory, { tokens: `${TOKEN}\n` });
  const access = accessOf({ tokenFile: join(directory, "tokens") });
  const { url } = await startServer(t, { single, datasets: [FLAT], access });
  check(t, await crawl(`${url}/?token=${encodeURIComponent(TOKEN)}`));
});

t.test("behind a proxy, pages name its address and prefix, and redirects lead there", async (t) => {
  const access = accessOf({ trustedProxies: ["127.0.0.1"] });
  const { url, get } = await startServer(t, { single, datasets: [FLAT], access });
  const headers = {
    "x-forwarded-proto": "https",
    "x-forwarded-host": "data.example",
    "x-forwarded-prefix": "/air",
  };
  check(t, await crawl(`${url}/`, "https://data.example/air/", headers));
  const page = await (await get("/", headers)).text();
  t.match(page, '<meta property="og:image" content="https://data.example/air/thumbnail/t.png">');
  t.match(page, "xr.open_zarr(&quot;https://data.example/air/zarr&quot;)");
  const redirect = await get("/zarr", headers);
  t.match([redirect.status, redirect.headers.get("location")], [301, "/air/zarr/"]);
  t.equal((await get("/overviews", headers)).headers.get("location"), "/air/overviews/");
});

t.test("the paths are those of a dataset among several, at the root", async (t) => {
  const alone = await startServer(t, { single, datasets: [FLAT] });
  const several = await startServer(t, { datasets: [FLAT, NESTED] });
  for (const path of [
    "keys",
    "dict",
    "info",
    "groups",
    "groups//keys",
    "zarr/.zmetadata",
    "zarr/t/0.0",
    "zarr/t/",
    "zarr3/zarr.json",
    "zarr3/t/c/1/2",
    "thumbnail/t.png?size=128",
    "overviews/",
    "overviews/zarr/1/t/0.0",
    "zarr/t/9.9",
    "groups/none",
  ]) {
    const [own, other] = await Promise.all([alone.get(`/${path}`), several.get(`/datasets/flat/${path}`)]);
    t.match(
      [own.status, own.headers.get("content-type")],
      [other.status, other.headers.get("content-type")],
      path,
    );
    const text = (await other.text()).replaceAll("/datasets/flat/", "/");
    t.equal(await own.text(), text, path);
  }
  for (const path of ["/datasets", "/datasets/", "/datasets/flat", "/datasets/flat/zarr/.zmetadata"])
    t.equal((await alone.get(path)).status, 404, path);
  for (const path of ["/plugins", "/versions", "/docs", "/openapi.json", "/healthz", "/readyz", "/metrics"])
    t.equal((await alone.get(path)).status, 200, path);
  const page = await (await alone.get("/")).text();
  t.match(page, "<title>flat · test</title>");
  t.match(page, /<nav aria-label="Breadcrumb"><ol><li aria-current="page"><bdi>flat<\/bdi><\/li><\/ol>/);
  t.match(await (await alone.get("/metrics")).text(), 'route="/zarr/{var:path}/{chunk}"');
});

t.test("routes of other plugins are at the root, and their handlers get the id", async (t) => {
  const routeAt = (path: string) => ({
    path,
    priority: "page" as const,
    operation: { summary: path, contentType: "text/plain" },
  });
  const plugin: Plugin = {
    ...{ name: "other", version: "1", path: "other" },
    routes: ({ datasets, datasetPath, createDocument }) =>
      ["/datasets/{dataset_id}/count/{var:path}", "/names/{dataset_id}"].map((path) => ({
        ...routeAt(path),
        handler: ({ params }) => {
          const { id } = datasets.get(params.dataset_id as string);
          const text = JSON.stringify([id, params.var, datasetPath(id)]);
          return { kind: "document", document: createDocument(text, "text/plain") };
        },
      })),
  };
  const tree = await createDataTree({ variables: { v: { data: new Uint8Array(3), shape: [3] } } });
  const options = { datasets: { air: tree }, plugins: [plugin], workers: 1, port: 0 };
  const server = await createServer({ ...options, single });
  t.teardown(() => server.close());
  const { url } = await server.listen();
  const ask = async (path: string) => {
    const answer = await fetch(url + path);
    return answer.status === 200 ? answer.json() : answer.status;
  };
  t.same(await ask("/count/a/b"), ["air", "a/b", "/"]);
  t.same(await ask("/names/air"), ["air", null, "/"]);
  t.equal(await ask("/names/none"), 404);
  t.match(
    await (await fetch(url)).text(),
    "1 dataset to read over HTTP",
    "a home page, since no plugin has one of the dataset",
  );
  t.same(await server.reload(options), [], "a reload switches it");
  t.same(await ask("/datasets/air/count/x"), ["air", "x", "/datasets/air/"]);
  t.equal(await ask("/count/x"), 404);
  await server.reload({ ...options, single });
  t.same(await ask("/count/x"), ["air", "x", "/"]);
});

t.test("exactly one dataset is expected", async (t) => {
  const collection = { name: "archive", root: "/data", immutable: false, encoding: {}, variables: {} };
  const catalogue: Plugin = {
    ...{ name: "catalogue", version: "1", path: "catalogue" },
    datasets: () => ({ list: async () => ["one"], open: async () => undefined }),
  };
  const refused: readonly (readonly [object, string])[] = [
    [{ datasets: [] }, "received none"],
    [{ datasets: [FLAT, NESTED] }, "received 'flat', 'nested ü'"],
    [{ datasets: [FLAT], collections: [collection] }, "received the collection 'archive', 'flat'"],
    [{ collections: [{ ...collection, name: "" }] }, "received a collection"],
    [{ datasets: [FLAT], plugins: [catalogue] }, "received datasets of the plugin 'catalogue', 'flat'"],
    [
      {
        datasets: [FLAT],
        providers: [{ name: "given", datasets: { list: () => [], open: () => undefined } }],
      },
      "received datasets of the provider 'given', 'flat'",
    ],
  ];
  for (const [config, received] of refused) {
    await t.rejects(startServer(t, { single, ...config }), {
      code: "invalid-config",
      message: `single: expected one dataset and nothing else, ${received}`,
    });
  }
});
