import t from "tap";
import zarrPlugin from "../../../src/plugins/zarr-plugin.js";
import { fakeContext } from "../../support/datasets/fake-context.js";
import { fakeService } from "../../support/datasets/fake-service.js";
import { fakeSnapshot } from "../../support/datasets/fake-snapshot.js";

const ROOT = { variables: { x: { dims: ["x"], shape: [3] } } };

t.test("a chunk of an array that was served and is now refused is a failure, not absent", async (t) => {
  const refused = [
    { path: "g/lost", reason: "half written" },
    { path: "never", reason: "no codec" },
  ];
  const snapshot = { ...fakeSnapshot("d", ROOT, { refused }), withdrawn: new Set(["g/lost"]) };
  const { get } = fakeService(await zarrPlugin.routes(fakeContext({ snapshots: [snapshot] })));
  await t.rejects(get("/datasets/d/zarr/g/lost/0.0"), { code: "source-unreadable", message: /half written/ });
  for (const path of ["g/lost/.zarray", "g/lost/zarr.json", "g/lost", "g/other/0.0", "never/0.0"]) {
    await t.rejects(get(`/datasets/d/zarr/${path}`), { code: "not-found" }, path);
  }
});

t.test("the root's documents have their own routes, and doubled slashes reach them, too", async (t) => {
  const routes = await zarrPlugin.routes(fakeContext({ snapshots: [fakeSnapshot("d", ROOT)] }));
  const store = "/datasets/{dataset_id}/zarr";
  const { text } = fakeService(routes);
  for (const name of [".zmetadata", ".zgroup", ".zattrs", ""]) {
    t.ok(routes.some(({ path }) => path === `${store}/${name}`));
    t.equal(await text(`/datasets/d/zarr/${name}`), await text(`/datasets/d/zarr//${name}`), name);
  }
});
