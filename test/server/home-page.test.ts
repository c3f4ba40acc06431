import t from "tap";
import { createDataTree, type Plugin, ZpublishError } from "../../src/index.js";
import { datasetOf, flatSource } from "../support/datasets/sample-tree.js";
import { ALL_PLUGINS, startServer } from "../support/servers/start-server.js";

const COUNT = 100_000;
const SECRET = "/home/secret/of.nc";

/** Publishes many datasets, of which the second cannot be opened, and counts calls to open one. */
async function manyDatasets() {
  const opened: string[] = [];
  const tree = await createDataTree({
    attrs: { title: "one of many" },
    variables: { v: { data: new Float32Array(64), shape: [8, 8], dims: ["y", "x"] } },
  });
  const ids = Array.from({ length: COUNT }, (_, index) => `d${String(index).padStart(5, "0")}`);
  const plugin: Plugin = {
    ...{ name: "many", version: "1", path: "many" },
    datasets: () => ({
      list: () => ids,
      open(id) {
        opened.push(id);
        if (id === "d00001") throw new ZpublishError("source-unreadable", `cannot read ${SECRET}`);
        return { tree };
      },
    }),
  };
  return { plugin, opened };
}

t.test("the home page of a hundred thousand datasets opens none of a collection", async (t) => {
  const { plugin, opened } = await manyDatasets();
  const { get } = await startServer(t, {
    datasets: [datasetOf("flat", flatSource())],
    plugins: [...ALL_PLUGINS, plugin],
  });
  const home = async (query = "") => (await get(`/${query}`)).text();
  const first = await home();
  t.match(first, "(100,001)");
  t.match(first, '<a rel="next" href="./?after=many%7Ed00098">');
  t.match(first, 'href="datasets/flat/"');
  t.match(await home("?q=D99999"), 'href="datasets/many~d99999/"');
  t.notMatch(await home("?after=many%7Ed99990"), 'rel="next"');
  t.same(opened, []);

  t.equal((await get("/datasets/many~d00002/keys")).status, 200);
  t.equal((await get("/datasets/many~d00001/keys")).status, 500);
  const second = await home();
  t.match(second, "one of many");
  t.match(second, '<img src="datasets/many~d00002/thumbnail/v.png"');
  t.match(second, /many~d00001<\/bdi><\/a> <span class="problem">The source of this data cannot be read</);
  t.notMatch(second, SECRET);
  t.same(opened, ["d00002", "d00001"]);
});
