import t from "tap";
import { createSnapshot } from "../../src/dataset/snapshot.js";
import { runNow } from "../../src/event-loop/cooperative-task.js";
import type { JsonValue } from "../../src/json/json-value.js";
import { stringifyJson } from "../../src/json/stringify-json.js";
import { datasetDict, datasetSchema } from "../../src/plugins/dataset-info-plugin.js";
import { consolidatedMetadata } from "../../src/plugins/zarr-plugin.js";
import { fakeSource, storedArray, storedTree } from "../support/datasets/fake-source.js";
import { startServer } from "../support/servers/start-server.js";

const CONFIG = { id: "large", location: "here", immutable: false, encoding: {}, variables: {} };
const PLAIN = { "accept-encoding": "identity" };
const TREE = storedTree([
  {
    path: "/",
    attrs: { title: "größer" },
    arrays: Array.from({ length: 6_000 }, (_, index) =>
      storedArray(`v${index}`, { attrs: { units: "K", index, note: `número ${index}` }, dimNames: null }),
    ),
  },
]);

t.test("documents too large for one iteration of the loop have the same bytes", async (t) => {
  const source = { ...fakeSource(TREE), location: "here" };
  const { url, get } = await startServer(t, { datasets: [{ ...CONFIG, source }] });
  const snapshot = createSnapshot(CONFIG, TREE, "");
  const { tree } = snapshot;
  const expected: Readonly<Record<string, JsonValue>> = {
    "zarr/.zmetadata": runNow(consolidatedMetadata(snapshot, tree.root, tree.root.attrs)),
    info: datasetSchema(tree.root),
    dict: datasetDict(tree.root),
    keys: [...tree.root.variables.keys()],
  };
  for (const [path, value] of Object.entries(expected)) {
    const text = stringifyJson(value);
    const ask = async (headers: Record<string, string>) => {
      const response = await fetch(`${url}/datasets/large/${path}`, { headers });
      return { response, body: await response.text() };
    };
    // Concurrent requests before it is made: made once, and compressed for clients that accept it.
    const answers = await Promise.all(
      ["identity", "br", "gzip", "identity"].map((coding) => ask({ "accept-encoding": coding })),
    );
    for (const { response, body } of answers) {
      t.equal(response.status, 200);
      t.ok(body === text, `${path} as ${response.headers.get("content-encoding") ?? "it is"}`);
    }
    const etags = answers.map(({ response }) => response.headers.get("etag")?.replace(/-(br|gz)"$/, '"'));
    t.equal(new Set(etags).size, 1, "one document");
    t.equal(
      (await get(`/datasets/large/${path}`, { "if-none-match": etags[0] as string, ...PLAIN })).status,
      304,
    );
  }
  const listing = await (await get("/datasets/large/zarr/")).text();
  t.equal(listing.match(/<li>/g)?.length, 1 + 3 + 6_000);
  t.equal((await get("/datasets/large/")).status, 200);
});

t.test("a client that leaves while a document is made does not affect other clients", async (t) => {
  const source = { ...fakeSource(TREE), location: "here" };
  const { url, json } = await startServer(t, { datasets: [{ ...CONFIG, source }] });
  const impatient = new AbortController();
  const path = `${url}/datasets/large/zarr/.zmetadata`;
  const given = fetch(path, { signal: impatient.signal }).catch(() => "gone");
  const patient = fetch(path);
  await json("/versions");
  impatient.abort();
  await given;
  t.ok(((await (await patient).json()) as { metadata: object }).metadata);
});
