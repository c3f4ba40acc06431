import t from "tap";
import { type CodeAxis, type CodeVariable, selectionCode } from "../../src/usage/selection-code.js";
import { LAT, TIME } from "../support/code-axes.js";

const URL = "http://host/datasets/air/zarr";
/** The same store by its name for xarray. */
const NAMED = "http://host/datasets/air.zarr";

function codeOf(variable: Partial<CodeVariable> & Pick<CodeVariable, "axes">): Record<string, string> {
  const codes = selectionCode({ url: URL, version: 2, variable: { path: "air", ...variable } });
  return Object.fromEntries(codes.map(({ client, code }) => [client, code]));
}

/** Last line of xarray's code, behind `data = `. */
function xarrayOf(...axes: readonly CodeAxis[]): string | undefined {
  return codeOf({ axes }).xarray?.split("\n").at(-1)?.replace("data = ", "");
}

const LON: CodeAxis = {
  dim: "lon",
  length: 53,
  part: "all",
  coordinate: { numbers: Array.from({ length: 53 }, (_, index) => 200 + 2.5 * index) },
};

/** Across the seam: the last columns, then the first ones. */
const SEAM: CodeAxis["part"] = [
  [50, 53],
  [0, 4],
];

/** The three axes with other parts. */
function partsOf(time: CodeAxis["part"], lat: CodeAxis["part"], lon: CodeAxis["part"]): readonly CodeAxis[] {
  return [
    { ...TIME, part: time },
    { ...LAT, part: lat },
    { ...LON, part: lon },
  ];
}

t.test("a part of a plane is read by values with xarray, by indices with the others", async (t) => {
  const { xarray, zarrita, GDAL } = codeOf({ axes: [TIME, LAT, LON] });
  t.equal(
    xarray,
    `import xarray as xr

ds = xr.open_zarr("${NAMED}")
data = ds["air"].sel(time="2013-01-01T06:00:00", method="nearest").sel(lat=slice(70, 52.5))`,
  );
  t.match(zarrita, 'const store = new zarr.FetchStore("http://host/datasets/air/zarr");');
  t.match(zarrita, 'resolve("air")');
  t.ok(zarrita?.endsWith("const { data, shape } = await zarr.get(array, [1, zarr.slice(2, 10), null]);"));
  t.equal(GDAL, `gdal_translate -srcwin 0 2 53 8 'ZARR:"/vsicurl/${URL}":/air:1' 'air.tif'`);
});

t.test("bounds of floats are rounded outwards, by less than a quarter of a cell", async (t) => {
  const tenths = Float32Array.from({ length: 11 }, (_, index) => index / 10);
  const axis = (part: CodeAxis["part"]): CodeAxis => ({
    dim: "x",
    length: 11,
    part,
    coordinate: { numbers: tenths },
  });
  t.equal(xarrayOf(axis([[1, 4]])), 'ds["air"].sel(x=slice(0.1, 0.31))');
  t.equal(xarrayOf(axis(7)), 'ds["air"].sel(x=0.7, method="nearest")');
  const falling = tenths.toReversed();
  const reversed = { ...axis([[7, 10]]), coordinate: { numbers: falling } };
  t.equal(xarrayOf(reversed), 'ds["air"].sel(x=slice(0.31, 0.1))');
  const uneven = { dim: "z", length: 3, part: 1, coordinate: { numbers: [0, 1e-6, 1000] } };
  t.equal(xarrayOf(uneven), 'ds["air"].sel(z=0.000001, method="nearest")');
});

t.test("cells without usable values are read by index", async (t) => {
  t.equal(
    xarrayOf({ dim: "y", length: 9, part: [[0, 4]] }, { dim: "x", length: 9, part: 3 }),
    'ds["air"].isel(y=slice(0, 4), x=3)',
  );
});

t.test("a map across the seam of the longitudes is read as two runs", async (t) => {
  const { xarray, zarrita, GDAL } = codeOf({
    axes: partsOf(0, "all", SEAM).slice(1),
  });
  t.ok(xarray?.endsWith('ds["air"].isel(lon=[*range(50, 53), *range(0, 4)])'));
  t.match(
    zarrita,
    `const parts = await Promise.all([
  zarr.get(array, [null, zarr.slice(50, 53)]),
  zarr.get(array, [null, zarr.slice(0, 4)]),
]);`,
  );
  t.strictSame(GDAL?.split("\n"), [
    `gdal_translate -srcwin 50 0 3 25 'ZARR:"/vsicurl/${URL}":/air' 'air-1.tif'`,
    `gdal_translate -srcwin 0 0 4 25 'ZARR:"/vsicurl/${URL}":/air' 'air-2.tif'`,
  ]);
});

t.test("a series, and a plane that is not the last one, are no raster of GDAL", async (t) => {
  const series = codeOf({ axes: partsOf("all", 3, 4) });
  t.equal(
    series.GDAL,
    `from osgeo import gdal

store = gdal.OpenEx('ZARR:"/vsicurl/${URL}"', gdal.OF_MULTIDIM_RASTER)
array = store.GetRootGroup().OpenMDArrayFromFullname("/air")
data = array.GetView("[:,3,4]").ReadAsArray()`,
  );
  t.match(series.xarray, '.sel(lat=67.5, lon=210, method="nearest")');
  t.match(codeOf({ axes: partsOf("all", [[1, 3]], 4) }).GDAL, 'array.GetView("[:,1:3,4]").ReadAsArray()');
});

t.test("groups and odd names are quoted for each language", async (t) => {
  const { xarray, zarrita, GDAL } = codeOf({
    path: `a b/it's "T"\u202e`,
    axes: [
      { dim: "class", length: 3, part: 2 },
      { dim: "x y", length: 3, part: "all" },
    ],
  });
  t.match(xarray, `xr.open_zarr("${NAMED}", group="a b")`);
  t.ok(xarray?.endsWith(`data = ds["it's \\"T\\"\\u202e"].isel({"class": 2})`));
  t.match(zarrita, `resolve("a%20b/it's%20%22T%22%E2%80%AE")`);
  t.match(GDAL, `OpenMDArrayFromFullname("/a b/it's \\"T\\"\\u202e")`);
  const raster = codeOf({
    path: "it's",
    axes: [
      { dim: "y", length: 3, part: "all" },
      { dim: "x", length: 3, part: "all" },
    ],
  });
  t.equal(raster.GDAL, `gdal_translate 'ZARR:"/vsicurl/${URL}":/it'\\''s' 'it_s.tif'`);
});

t.test("packed numbers become values in zarrita's code", async (t) => {
  const axes: CodeAxis[] = [{ dim: "x", length: 3, part: "all" }];
  const packing = { missing: [-32767], scale: 0.01, offset: -273.15 };
  t.match(
    codeOf({ axes, packing }).zarrita,
    "const values = Array.from(data, (stored) => (stored === -32767 ? Number.NaN : stored * 0.01 - 273.15));",
  );
  t.match(
    codeOf({ axes: [], packing: { missing: [5], scale: 1, offset: 0 }, isBigInt: true }).zarrita,
    `const data = await zarr.get(array);
const values = Array.from([data], (stored) => (stored === 5n ? Number.NaN : Number(stored)));`,
  );
});

t.test("zarr-python reads by index, and unpacks with numpy", async (t) => {
  const codeOfAxes = (more: Partial<CodeVariable> & Pick<CodeVariable, "axes">) =>
    codeOf(more)["zarr-python"];
  t.equal(
    codeOfAxes({ axes: [TIME, LAT, LON] }),
    `import zarr

root = zarr.open_group("${URL}", mode="r")
array = root["air"]
data = array[1, 2:10, :]`,
  );
  t.match(codeOfAxes({ axes: [LON] }), /data = array\[\.\.\.\]$/);
  t.match(codeOfAxes({ axes: [] }), /data = array\[\.\.\.\]$/);
  t.match(
    codeOfAxes({ axes: partsOf(0, "all", SEAM) }),
    "parts = [\n    array[0, :, 50:53],\n    array[0, :, 0:4],\n]",
  );
  const packing = { missing: [-32767], scale: 0.01, offset: -273.15 };
  t.match(
    codeOfAxes({ axes: [LON], packing }),
    "values = np.where(np.isin(data, [-32767]), np.nan, data * 0.01 - 273.15)",
  );
  t.match(
    codeOfAxes({ axes: partsOf(0, "all", SEAM), packing: { ...packing, missing: [] } }),
    "values = [data * 0.01 - 273.15 for data in parts]",
  );
});

t.test("a dataset without variables is opened", async (t) => {
  const [xarray, zarrPython, zarrita, gdal] = selectionCode({ url: URL, version: 3, variable: undefined });
  t.equal(zarrPython?.code, `import zarr\n\nroot = zarr.open_group("${URL}", mode="r")`);
  t.ok(xarray?.code.endsWith(`ds = xr.open_zarr("${NAMED}")`));
  t.ok(zarrita?.code.endsWith('const group = await zarr.open.v3(store, { kind: "group" });'));
  t.equal(gdal?.code, `gdalmdiminfo 'ZARR:"/vsicurl/${URL}"'`);
});

t.test("a group and a dataset published alone are opened by their URLs", async (t) => {
  for (const [url, expected] of [
    [
      "http://host/prefix/datasets/a%20b/zarr/model/fine",
      "http://host/prefix/datasets/a%20b.zarr/model/fine",
    ],
    ["http://host/datasets/air.zarr/zarr", "http://host/datasets/air.zarr.zarr"],
    ["http://host/datasets/air/zarr3/zarr", "http://host/datasets/air/zarr3/zarr"],
    ["http://host/datasets/air/overviews/zarr", "http://host/datasets/air/overviews/zarr"],
    ["http://host/zarr", "http://host/zarr"],
  ] as const) {
    const [xarray] = selectionCode({ url, version: 2, variable: undefined });
    t.ok(xarray?.code.endsWith(`ds = xr.open_zarr("${expected}")`), url);
  }
});
