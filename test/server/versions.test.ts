import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { defaultValues, optionConfig } from "../../src/config/options.js";
import { ZpublishError } from "../../src/errors.js";
import { datasetOf, flatSource } from "../support/datasets/sample-tree.js";
import { version, versionedSource } from "../support/datasets/versioned-source.js";
import { until } from "../support/servers/process-table.js";
import { ALL_PLUGINS, accessOf, startServer } from "../support/servers/start-server.js";
import { makeDirectory } from "../support/write-store.js";

const LISTED = [
  version("branch", "main", "S2", "second"),
  version("tag", "v2", "S2", "second"),
  version("tag", "v1", "S1", "<first>"),
  version("tag", "a@b", "S1"),
  version("tag", "spring/2", "S2"),
  version("snapshot", "S2", "S2", "second"),
  version("snapshot", "S1", "S1", "<first>"),
];
const FOR_EVER = "public, max-age=31536000, immutable";
const ASK = "public, max-age=0, must-revalidate";

/** The value of all items of a chunk. */
async function itemOf(response: Response): Promise<number> {
  const values = new Set(new Int16Array(await response.arrayBuffer()));
  return values.size === 1 ? [...values][0]! : Number.NaN;
}

t.test("every endpoint of a dataset is there at a tag and at a snapshot, for ever", async (t) => {
  const overviews = { levels: 1, method: "mean" } as const;
  const encodings = { rows: { chunks: { y: 1 } } };
  const source = versionedSource(LISTED);
  const { get, json } = await startServer(t, {
    datasets: [datasetOf("x", source, { overviews, encodings })],
  });
  t.equal(await itemOf(await get("/datasets/x/zarr/t/0.0")), 100);
  for (const [id, value] of [
    ["x@v1", 1],
    ["x%40v1", 1],
    ["x@S1", 1],
    ["x@v2", 2],
    ["x@a@b", 1],
  ] as const) {
    for (const path of [
      `/datasets/${id}/zarr/t/0.0`,
      `/datasets/${id}/zarr3/t/c/0/0`,
      `/datasets/${id}.zarr/t/0.0`,
      `/datasets/${id}/encodings/rows/zarr/t/0.0`,
      `/datasets/${id}/overviews/zarr/0/t/0.0`,
    ]) {
      const chunk = await get(path);
      t.equal(chunk.status, 200, path);
      t.equal(chunk.headers.get("cache-control"), FOR_EVER, path);
      t.equal(await itemOf(chunk), value, path);
      t.equal(
        (await get(path, { "if-none-match": chunk.headers.get("etag") as string })).status,
        304,
        `${path}: known`,
      );
    }
    for (const [path, control] of [
      ["/zarr/.zmetadata", FOR_EVER],
      [".zarr/.zmetadata", FOR_EVER],
      ["/zarr3/zarr.json", FOR_EVER],
      ["/keys", FOR_EVER],
      ["/info", FOR_EVER],
      ["/groups/g/dict", FOR_EVER],
      ["/select?var=t&f=json", FOR_EVER],
      [`/opendap/${id}.nc.dds`, FOR_EVER],
      ["/thumbnail/t.png", FOR_EVER],
      ["/", ASK],
      ["/tree", ASK],
      ["/groups/g", ASK],
      ["/explore", ASK],
    ] as const) {
      const answer = await get(`/datasets/${id}${path}`);
      t.equal(answer.status, 200, id + path);
      t.equal(answer.headers.get("cache-control"), control, id + path);
    }
    t.same(await json(`/datasets/${id}/keys`), ["t", "x", "y"]);
  }
  t.same(await json("/datasets/x/keys"), ["new", "t", "x", "y"]);
  t.same(await json("/datasets"), ["x"], "versions are no datasets");
  t.equal(source.opened.length, 4, "each is opened once");
});

t.test("what is no version is not found, by name; what fails is no 404", async (t) => {
  const source = versionedSource(LISTED);
  const { get } = await startServer(t, {
    datasets: [datasetOf("x", source), datasetOf("flat", flatSource())],
  });
  const detailOf = async (path: string, status: number) => {
    const answer = await get(path);
    t.equal(answer.status, status, path);
    return ((await answer.json()) as { detail: string }).detail;
  };
  t.equal(await detailOf("/datasets/x@v9/keys", 404), "Version 'v9' not found in dataset 'x'");
  t.equal(await detailOf("/datasets/x@v9.zarr/t/0.0", 404), "Version 'v9' not found in dataset 'x'");
  t.equal(
    await detailOf("/datasets/x@main/keys", 404),
    "Version 'main' not found in dataset 'x'",
    "a branch moves",
  );
  t.equal(await detailOf("/datasets/flat@v1/keys", 404), "Version 'v1' not found in dataset 'flat'");
  t.equal(await detailOf("/datasets/y@v1/keys", 404), "Dataset 'y@v1' not found");
  t.equal(await detailOf("/datasets/@v1/keys", 404), "Dataset '@v1' not found");
  t.match(await detailOf("/datasets/x@v1/zarr/new/0.0", 404), "x@v1", "which only later versions have");
  source.failure = new ZpublishError("source-unreadable", "/srv/secret is gone");
  t.equal(await detailOf("/datasets/x@v2/keys", 500), "The source of this data cannot be read");
  t.equal(await detailOf("/datasets/x/versions", 500), "The source of this data cannot be read");
  t.equal((await get("/datasets/x@v1/keys")).status, 200, "one that is open");
  t.equal((await get("/datasets/x/")).status, 200, "the page does without the list");
});

t.test("what the configuration says of a dataset holds for its versions", async (t) => {
  const source = versionedSource(LISTED);
  const dataset = datasetOf("x", source, {
    cacheControl: "private, max-age=60",
    encoding: { chunks: { y: 3 }, compressor: { id: "zlib", level: 1 } },
    variables: { new: { compressor: null } },
  });
  const { get, json, lines } = await startServer(t, { datasets: [dataset], cacheControl: "no-cache" });
  const { compressor, chunks } = (await json("/datasets/x@v1/zarr/t/.zarray")) as Record<string, unknown>;
  t.match(compressor, { id: "zlib" });
  t.same(chunks, [3, 4]);
  t.equal((await get("/datasets/x@v1/zarr/t/0.0")).headers.get("cache-control"), "private, max-age=60");
  t.ok(
    lines.some(({ msg }) => /received .new./.test(msg)),
    "a variable that the version does not have is a warning",
  );
});

t.test("a dataset goes before a version of another one", async (t) => {
  const datasets = [
    datasetOf("x", versionedSource(LISTED)),
    datasetOf("x@v1", flatSource()),
    datasetOf("x@v2.zarr", flatSource()),
  ];
  const { get, json } = await startServer(t, { datasets });
  t.match(await json("/datasets/x@v1/keys"), ["crs"]);
  t.match(await json("/datasets/x@v2.zarr/keys"), ["crs"]);
  t.equal((await get("/datasets/x@v2.zarr.zarr/.zmetadata")).status, 200);
  t.same(await json("/datasets/x@v2/keys"), ["t", "x", "y"]);
  t.equal(await itemOf(await get("/datasets/x@S1/zarr/t/0.0")), 1, "its snapshot has another name");
  t.equal((await get("/datasets/x@v1@v2/keys")).status, 404);
});

t.test("only so many versions are open, and no request fails for that", async (t) => {
  const tags = Array.from({ length: 12 }, (_, index) => version("tag", `v${index}`, `S${index}`));
  const source = versionedSource(tags);
  const limits = { ...optionConfig(defaultValues({})).limits, maxOpenDatasets: 2 };
  const { server, get } = await startServer(t, { datasets: [datasetOf("x", source)], limits });
  const read = async (index: number) =>
    t.equal(await itemOf(await get(`/datasets/x@v${index}/zarr/t/0.0`)), index);
  for (let round = 0; round < 3; round++)
    await Promise.all(Array.from({ length: 36 }, (_, index) => read((index * 5) % 12)));
  await until(() => source.opened.length - source.closed.length === 2);
  t.equal(await itemOf(await get("/datasets/x/zarr/t/0.0")), 100, "a configured dataset stays open");
  await server.close();
  t.same(source.closed.sort(), source.opened.sort(), "all are closed with the server");
});

t.test("versions are listed in pages, with their ids and paths", async (t) => {
  const source = versionedSource(LISTED);
  const datasets = [datasetOf("x ü", source), datasetOf("flat", flatSource())];
  const { url, get, json } = await startServer(t, { datasets, rootPath: "/data" });
  const base = "/datasets/x%20%C3%BC";
  t.same(await json("/datasets/flat/versions"), []);
  const first = await get(`${base}/versions`);
  const all = (await first.json()) as Record<string, string>[];
  t.same(all[2], {
    ...LISTED[2],
    id: "x ü@v1",
    path: `/data${base}@v1/`,
  });
  t.same(
    all.map(({ id }) => id),
    ["S2", "v2", "v1", "a@b", "S2", "S2", "S1"].map((name) => `x ü@${name}`),
    "a branch and what no path can have are named by their snapshots",
  );
  const origin = new URL(url).origin;
  for (const { path } of all) t.equal((await fetch(origin + path)).status, 200, `${path}`);
  t.equal(
    (await get(`${base}/versions`, { "if-none-match": first.headers.get("etag") as string })).status,
    304,
  );
  t.same(await json(`${base}@v1/versions`), all, "of a version, those of the dataset");

  const found: unknown[] = [];
  let next: string | undefined = `${url}${base}/versions?limit=3`;
  for (let pages = 0; next !== undefined; pages++) {
    t.ok(pages < 3);
    const page: Response = await fetch(next);
    found.push(...((await page.json()) as unknown[]));
    next = /^<([^>]*)>; rel="next"$/.exec(page.headers.get("link") ?? "")?.[1];
  }
  t.same(found, all);
  for (const query of ["limit=0", "limit=1001", "after=tag:none", "kind=tag"])
    t.equal((await get(`${base}/versions?${query}`)).status, 422, query);

  source.listed = [version("tag", "v3", "S3"), ...LISTED];
  t.match(await json(`${base}/versions`), [{ id: "x ü@v3" }], "a new one is there at once");
});

t.test("the page of a dataset lists its versions, and that of a version leads back", async (t) => {
  const source = versionedSource(LISTED);
  const { get } = await startServer(t, {
    datasets: [datasetOf("x", source), datasetOf("flat", flatSource())],
  });
  const textOf = async (path: string) => (await get(path)).text();
  const page = await textOf("/datasets/x/");
  t.match(page, 'Versions <span class="count">(7)</span>');
  t.match(page, '<a href="../../datasets/x@v1/"><bdi>v1</bdi></a>');
  t.match(page, 'tag <span class="muted">2026-11-05 10:20 · &lt;first&gt;</span>');
  t.match(page, '<a href="../../datasets/x@S2/"><bdi>main</bdi></a>');
  t.match(await textOf("/datasets/x/groups/g"), 'href="../../../datasets/x@v1/groups/g"');
  t.match(await textOf("/datasets/x/tree"), 'href="../../datasets/x@v1/tree"');
  const at = await textOf("/datasets/x@v1/groups/g?token=a");
  t.match(
    at,
    '<bdi>v1</bdi> <span class="muted">2026-11-05 10:20 · &lt;first&gt;</span>, not <a href="../../../datasets/x/groups/g?token=a"',
  );
  t.match(at, 'href="../../../datasets/x@v2/groups/g?token=a"');
  t.match(await textOf("/datasets/x@v1/"), "/datasets/x@v1.zarr");
  t.notMatch(await textOf("/datasets/flat/"), "Versions <");
  source.listed = [version("tag", "new", "S3"), ...LISTED];
  t.match(await textOf("/datasets/x/"), "x@new", "though the dataset is the same");
  t.match(await textOf("/datasets/x@v1/"), "x@new");
  const explorer = await textOf("/datasets/x@v1/explore");
  t.match(explorer, 'data-versions="./versions" data-unversioned="x"');
});

t.test("a dataset that is published alone has no versions", async (t) => {
  const { get, json } = await startServer(t, {
    datasets: [datasetOf("x", versionedSource(LISTED))],
    single: true,
  });
  t.match(await json("/versions"), { zpublish: /\d/ }, "those of the server's parts");
  t.equal((await get("/@v1/keys")).status, 404);
  t.notMatch(await (await get("/")).text(), "Versions <");
  t.notMatch(await (await get("/explore")).text(), "data-versions");
});

t.test("versions need the token that their dataset needs, and are not for shared caches then", async (t) => {
  const tokenFile = join(await makeDirectory(t), "tokens");
  await writeFile(tokenFile, "a-token-of-a-client\n");
  const access = accessOf({ tokenFile });
  const { get } = await startServer(t, { datasets: [datasetOf("x", versionedSource(LISTED))], access });
  for (const path of ["/datasets/x@v1/zarr/t/0.0", "/datasets/x@v1.zarr/t/0.0", "/datasets/x/versions"]) {
    t.equal((await get(path)).status, 401, path);
    const answer = await get(path, { authorization: "Bearer a-token-of-a-client" });
    t.equal(answer.status, 200, path);
    t.match(answer.headers.get("cache-control"), /^private, (?:max-age=31536000, immutable|max-age=0)/, path);
  }
});

t.test("versions are served without the plugin that lists them", async (t) => {
  const { json, get } = await startServer(t, {
    datasets: [datasetOf("x", versionedSource(LISTED))],
    plugins: ALL_PLUGINS.filter(({ name }) => name !== "dataset_info"),
  });
  t.match(await json("/datasets/x@v1/zarr/t/.zarray"), { shape: [3, 4] });
  t.equal((await get("/datasets/x/versions")).status, 404);
  t.notMatch(await (await get("/datasets/x/explore")).text(), "data-versions");
});
