import { join } from "node:path";
import t from "tap";
import { makeDemoData } from "../../scripts/demo-data.js";
import type { Inspection } from "../../src/cli/inspect.js";
import { runProgram } from "./run-program.js";

t.test("inspect shows a flat v2 store, whose chunks are passed through", async (t) => {
  const { air } = await makeDemoData(join(t.testdir(), "demo"));
  const { code, stdout, stderr } = await runProgram(["inspect", air]);
  t.equal(code, 0, stderr);
  t.equal(stderr, "");
  t.match(stdout, /\n\/ {2}\(4 attributes\)\n/);
  t.match(
    stdout,
    /\n {2}air +int16 +\(time: 1460, lat: 25, lon: 53\) +\(146, 25, 53\) +blosc\(lz4\) +3\.7 MiB +passthrough\n/,
  );
  t.match(stdout, /\n1 group, 4 variables, [^\n]*: 4 passthrough, 0 transcoded, 0 refused\n$/);
});

t.test("inspect shows a v3 tree with shards, and --json has the same content", async (t) => {
  const { climate } = await makeDemoData(join(t.testdir(), "demo"));
  const text = await runProgram(["inspect", climate]);
  t.equal(text.code, 0, text.stderr);
  t.match(text.stdout, /\n\/surface\/daily {2}\(1 attribute\)\n/);
  const { code, stdout } = await runProgram(["inspect", "--json", climate]);
  t.equal(code, 0);
  const inspection = JSON.parse(stdout) as Inspection;
  t.strictSame(
    inspection.groups.map(({ path }) => path),
    ["/", "/profiles", "/regional", "/surface", "/surface/daily", "/surface/monthly"],
  );
  t.strictSame(inspection.refused, []);
  const variables = inspection.groups.flatMap((group) => group.variables);
  t.match(
    variables.find(({ path }) => path === "surface/daily/sst"),
    {
      dtype: "float32",
      dims: ["time", "lat", "lon"],
      shape: [365, 45, 90],
      storedChunks: [30, 15, 30],
      shards: [120, 45, 90],
    },
  );
  t.match(
    variables.find(({ path }) => path === "surface/mask"),
    { dtype: "int8", byteLength: 4050 },
  );
  t.match(
    variables.find(({ path }) => path === "profiles/station_name"),
    { dtype: "object", byteLength: null },
  );
});

t.test("a location without a dataset is one clear line and exit code 1", async (t) => {
  const cwd = t.testdir({ empty: {}, "corrupt.zarr": { ".zgroup": "{" } });
  for (const location of ["absent.zarr", "empty", "corrupt.zarr"]) {
    const { code, stdout, stderr } = await runProgram(["inspect", location], { cwd });
    t.equal(code, 1, location);
    t.equal(stdout, "", location);
    t.match(stderr, /^zpublish: [^\n]+\n$/, location);
    t.ok(stderr.includes(location), `${location} is named: ${stderr}`);
  }
});
