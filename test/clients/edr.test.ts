import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { read } from "covjson-reader";
import t from "tap";
import { commandOf } from "../support/clients/client-generation.js";
import { clientMissingIn, PYTHON } from "../support/clients/require-client.js";
import { airOnGrid, airValue } from "../support/datasets/edr-samples.js";
import { datasetOf } from "../support/datasets/sample-tree.js";
import { startServer } from "../support/servers/start-server.js";

const run = promisify(execFile);

const OWSLIB = `
import json, sys
from owslib.ogcapi.edr import EnvironmentalDataRetrieval
edr = EnvironmentalDataRetrieval(sys.argv[1])
query = dict(parameter_names=["t"], datetime_="2000-02-29T12:00:00Z")
print(json.dumps({
  "classes": len(edr.conformance()["conformsTo"]),
  "data": edr.data(),
  "parameters": sorted(edr.collection("air")["parameter_names"]),
  "api": edr.api()["openapi"],
  "position": edr.query_data("air", "position", coords="POINT(12 47)", z="500", **query),
  "cube": edr.query_data("air", "cube", bbox=[0, 40, 10, 50], **query),
}))
`;

t.test(
  "OWSLib lists collections, and asks for values",
  { skip: clientMissingIn("trixie", "owslib") },
  async (t) => {
    const { url } = await startServer(t, { datasets: [datasetOf("air", airOnGrid())] });
    const { stdout } = await run(...commandOf("trixie", PYTHON, ["-c", OWSLIB, `${url}/edr/`]));
    t.match(JSON.parse(stdout), {
      ...{ classes: 12, data: ["air"], parameters: ["member/t", "sea", "surface", "t"], api: "3.0.3" },
      position: { type: "Coverage", ranges: { t: { values: [airValue(2, 1, 4, 1)] } } },
      cube: { type: "Coverage", ranges: { t: { shape: [1, 3, 1, 2] } } },
    });
  },
);

t.test("covjson-reader reads domains and values", async (t) => {
  const { json } = await startServer(t, { datasets: [datasetOf("air", airOnGrid())] });
  const open = async (path: string) => read(await json(`/edr/collections/air/${path}`));
  const cube = await open("cube?bbox=-15,40,5,60&parameter-name=t");
  t.equal(cube.domainType, "https://covjson.org/def/domainTypes#Grid");
  const level = await cube.subsetByValue({ z: 500, t: "2000-02-29T12:00:00Z", x: { target: 1 } });
  const range = await level.loadRange("t");
  t.strictSame(
    [0, 1].map((y) => range.get({ y })),
    [airValue(2, 1, 3, 0), airValue(2, 1, 4, 0)],
  );
  const path = await open(
    "trajectory?coords=LINESTRING(0 44,11 46)&parameter-name=t&z=250&datetime=2000-02-29",
  );
  const { axes } = await path.loadDomain();
  t.strictSame(axes.get("composite")?.values.length, 2);
  const surface = await open("area?coords=POLYGON((-20 35,20 35,0 55,-20 35))&parameter-name=surface");
  const values = await surface.loadRange("surface");
  t.equal(values.get({ t: 0, y: 0, x: 0 }), null, "outside");
  t.equal(values.get({ t: 1, y: 2, x: 0 }), 0.5 * ((18 + 5) * 36 + 34));
});
