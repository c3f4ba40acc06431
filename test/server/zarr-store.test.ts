import t from "tap";
import { datasetOf, flatSource, nestedSource } from "../support/datasets/sample-tree.js";
import { startServer } from "../support/servers/start-server.js";

const DATASETS = [datasetOf("flat", flatSource()), datasetOf("nested", nestedSource())];
const FLAT = "/datasets/flat/zarr";
const NESTED = "/datasets/nested/zarr";

t.test("documents describe the whole store, and every group as a store of its own", async (t) => {
  const { get, json } = await startServer(t, { datasets: DATASETS });
  const { metadata } = (await json(`${NESTED}/.zmetadata`)) as { metadata: Record<string, unknown> };
  t.same(
    Object.keys(metadata).sort(),
    [".zattrs", ".zgroup", "a/.zattrs", "a/.zgroup", "a/b/.zattrs", "a/b/.zgroup", "a/b/v/.zarray"]
      .concat(["a/b/v/.zattrs", "a/v/.zarray", "a/v/.zattrs", "c/.zattrs", "c/.zgroup"])
      .concat(["c/v/.zarray", "c/v/.zattrs"]),
  );
  const ofGroup = (await json(`${NESTED}/a/.zmetadata`)) as { metadata: Record<string, unknown> };
  t.same(Object.keys(ofGroup.metadata).sort(), [
    ".zattrs",
    ".zgroup",
    "b/.zattrs",
    "b/.zgroup",
    "b/v/.zarray",
    "b/v/.zattrs",
    "v/.zarray",
    "v/.zattrs",
  ]);
  for (const [key, document] of Object.entries(metadata))
    t.same(await json(`${NESTED}/${key}`), document, key);
  t.equal((await get(`${NESTED}//.zmetadata`)).status, 200, "as Zarr.jl asks");
  t.equal((await get(`${NESTED}//a///b/.zgroup`)).status, 200, "doubled slashes collapse");
  t.same(await json(`${FLAT}/t/.zarray`), {
    zarr_format: 2,
    shape: [3, 5],
    chunks: [2, 2],
    dtype: "<i2",
    fill_value: -1,
    order: "C",
    filters: null,
    compressor: null,
    dimension_separator: ".",
  });
  t.same(await json(`${FLAT}/t/.zattrs`), { units: "K", scale_factor: 0.5, _ARRAY_DIMENSIONS: ["y", "x"] });
  t.same(await json(`${FLAT}/crs/.zattrs`), { _ARRAY_DIMENSIONS: [] });
});

t.test("chunks are whole, and padded with the fill value", async (t) => {
  const { get } = await startServer(t, { datasets: DATASETS });
  const items = async (key: string) => [
    ...new Int16Array(await (await get(`${FLAT}/t/${key}`)).arrayBuffer()),
  ];
  t.same(await items("0.0"), [1, 2, 6, 7]);
  t.same(await items("0.2"), [5, -1, 10, -1]);
  t.same(await items("1.2"), [15, -1, -1, -1]);
  const scalar = await get(`${FLAT}/crs/0`);
  t.same([...new Int32Array(await scalar.arrayBuffer())], [7]);
  t.match(scalar.headers.get("x-cache"), /^(MISS|PASS)$/);
  t.match(scalar.headers.get("server-timing"), /dur=/);
  const y = new BigInt64Array(await (await get(`${FLAT}/y/0`)).arrayBuffer());
  t.same([...y], [0n, 2n ** 60n, -1n]);
});

t.test("paths that name no chunk, array or group are 404", async (t) => {
  const { get } = await startServer(t, { datasets: DATASETS });
  const keys = [
    "00.0",
    "+1.0",
    "-1.0",
    "1_0.0",
    "1e0.0",
    "%D9%A0.0",
    "0",
    "0.0.0",
    "2.0",
    "0.3",
    "0.0.",
    ".0",
  ];
  for (const key of keys) {
    const answer = await get(`${FLAT}/t/${key}`);
    t.equal(answer.status, 404, key);
    t.type(((await answer.json()) as { detail: unknown }).detail, "string");
    t.equal(answer.headers.get("access-control-allow-origin"), "*");
  }
  for (const path of [
    "nope/0",
    "t/x/0",
    "../flat/t/0.0",
    "%2e%2e/t",
    "t/.zgroup",
    ".zarray",
    "a/.zmetadata",
  ]) {
    t.equal((await get(`${FLAT}/${path}`)).status, 404, path);
  }
  const unknown = await get("/datasets/x/zarr/.zmetadata");
  t.same(await unknown.json(), { detail: "Dataset 'x' not found" });
});

t.test("directories list their content, and redirect to their slash", async (t) => {
  const { get } = await startServer(t, { datasets: DATASETS, rootPath: "/pre" });
  for (const path of ["/datasets/flat", FLAT, `${NESTED}/a`, `${NESTED}/a/b`, `${FLAT}/t`]) {
    const answer = await get(path);
    t.equal(answer.status, 301, path);
    t.equal(answer.headers.get("location"), `/pre${path}/`);
    t.equal((await answer.arrayBuffer()).byteLength, 0);
  }
  const links = async (path: string) =>
    [...(await (await get(path)).text()).matchAll(/href="([^"]*)"/g)]
      .map(([, href]) => href)
      .filter((href) => href !== "../");
  t.same(await links(`${NESTED}/`), [".zattrs", ".zgroup", ".zmetadata", "a/", "c/"]);
  t.same(await links(`${NESTED}/a/`), [".zattrs", ".zgroup", ".zmetadata", "b/", "v/"]);
  t.same(await links(`${FLAT}/t/`), [".zarray", ".zattrs", "0.0", "0.1", "0.2", "1.0", "1.1", "1.2"]);
});

t.test("conditions and ranges hold for chunks and documents", async (t) => {
  const { get } = await startServer(t, { datasets: DATASETS });
  for (const path of [`${FLAT}/t/0.0`, `${FLAT}/.zmetadata`, "/datasets/flat/info"]) {
    const whole = await get(path);
    const etag = whole.headers.get("etag") as string;
    t.match(etag, /^"[^"]+"$/);
    const bytes = Buffer.from(await whole.arrayBuffer());
    t.equal((await get(path, { "If-None-Match": `"x", ${etag}` })).status, 304, path);
    t.equal((await get(path, { "If-Match": '"x"' })).status, 412);
    const part = await get(path, { Range: "bytes=2-4" });
    t.equal(part.status, 206);
    t.equal(part.headers.get("content-range"), `bytes 2-4/${bytes.length}`);
    t.same(Buffer.from(await part.arrayBuffer()), bytes.subarray(2, 5));
    t.equal((await get(path, { Range: `bytes=${bytes.length}-` })).status, 416);
    const head = await fetch(whole.url, { method: "HEAD" });
    t.equal(head.headers.get("content-length"), String(bytes.length));
    t.equal(head.headers.get("etag"), etag);
  }
});

t.test("the same request has the same bytes and ETag on another instance", async (t) => {
  const [one, two] = await Promise.all([
    startServer(t, { datasets: DATASETS }),
    startServer(t, { datasets: [datasetOf("flat", flatSource())] }),
  ]);
  for (const path of [`${FLAT}/t/1.1`, `${FLAT}/.zmetadata`, "/datasets/flat/dict"]) {
    const [a, b] = [await one.get(path), await two.get(path)];
    t.equal(a.headers.get("etag"), b.headers.get("etag"), path);
    t.same(Buffer.from(await a.arrayBuffer()), Buffer.from(await b.arrayBuffer()));
  }
});

t.test("a cache is warm after a restart, and not used for other data", async (t) => {
  const cache = { directory: t.testdir(), maxBytes: 2 ** 26 };
  const first = await startServer(t, { datasets: DATASETS, cache });
  const before = await first.get(`${FLAT}/t/0.0`);
  t.equal(before.headers.get("x-cache"), "MISS");
  await before.arrayBuffer();
  await first.server.close();
  const second = await startServer(t, { datasets: DATASETS, cache });
  const after = await second.get(`${FLAT}/t/0.0`);
  t.equal(after.headers.get("x-cache"), "HIT");
  t.equal(after.headers.get("etag"), before.headers.get("etag"));
  t.same([...new Int16Array(await after.arrayBuffer())], [1, 2, 6, 7]);
  await second.server.close();
  const other = await startServer(t, {
    datasets: [datasetOf("flat", flatSource(), { variables: { t: { chunks: [3, 2] } } })],
    cache,
  });
  const changed = await other.get(`${FLAT}/t/0.0`);
  t.equal(changed.headers.get("x-cache"), "MISS");
  t.same([...new Int16Array(await changed.arrayBuffer())], [1, 2, 6, 7, 11, 12]);
});
