import t from "tap";
import type { CodeAxis } from "../../src/usage/selection-code.js";
import { selectionFile } from "../../src/usage/selection-url.js";
import { LAT, TIME } from "../support/code-axes.js";

const URL = "http://host/datasets/air/select";

const DATED: CodeAxis = { ...TIME, isTime: true };
const LON: CodeAxis = {
  dim: "lon",
  length: 360,
  part: "all",
  coordinate: { numbers: Array.from({ length: 360 }, (_, index) => index) },
};
/** Across the seam. */
const SEAM: CodeAxis["part"] = [
  [358, 360],
  [0, 2],
];

const CASES: readonly (readonly [query: string, axes: readonly CodeAxis[]])[] = [
  ["time=nearest::2013-01-01T06:00:00&lat=70/52.5", [DATED, LAT, LON]],
  ["lon=358/1", [{ ...LON, part: SEAM }]],
  ["isel.lon=2:5", [{ ...LON, coordinate: undefined, part: [[2, 5]] }]],
  ["isel.lon=358&isel.lon=359&isel.lon=0&isel.lon=1", [{ ...LON, coordinate: undefined, part: SEAM }]],
  ["isel.lat=3", [{ ...LAT, coordinate: undefined, part: 3 }]],
  ["isel.f=3", [{ ...LAT, dim: "f", part: 3 }]],
  ["isel.lat=0:0", [{ ...LAT, part: [[0, 0]] }]],
  ["my%20lat%26=nearest::67.5", [{ ...LAT, dim: "my lat&", part: 3 }]],
];

t.test("a URL selects the cells that code reads, by labels if there are some", async (t) => {
  for (const [query, axes] of CASES) {
    const { url } = selectionFile("NetCDF", URL, { path: "a/air", axes }, { item: 4 });
    t.equal(url, `${URL}?var=a/air&${query}&f=nc`);
  }
});

t.test("the size is that of values and labels; that of CSV a guess", async (t) => {
  const variable = { path: "air", axes: [DATED, LAT, LON] };
  const netcdf = selectionFile("NetCDF", URL, variable, { item: 2 });
  t.equal(netcdf.byteLength, 8 * 360 * 2 + (1 + 8 + 360) * 8);
  t.equal(selectionFile("NetCDF", URL, variable, { item: 2, labels: 10 }).byteLength, 8 * 360 * 2 + 10);
  const csv = selectionFile("CSV", URL, variable, { item: 2 });
  t.equal(csv.byteLength, 8 * 360 * (20 + 7 + 7 + 10));
  t.equal(csv.selectedBytes, 8 * 360 * 4 * 8);
  t.equal(csv.code.code, `import pandas as pd\n\ndf = pd.read_csv("${csv.url}")`);
  t.match(netcdf.code.code, `urlretrieve("${netcdf.url}", "air.nc")\nds = xr.open_dataset("air.nc")`);
});
