import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { createSelectCommand, selectRequestOf } from "../../src/cli/select.js";
import { askPython } from "../support/clients/ask-python.js";
import { clientMissing } from "../support/clients/require-client.js";
import { PROGRAM, runHere, runProgram, runScript } from "../support/servers/run-program.js";
import { writeFiles } from "../support/write-store.js";

const WRITE = `
import sys
import numpy as np, xarray as xr
rng = np.random.default_rng(1)
t2m = rng.normal(280, 10, (10, 7, 12))
t2m[0, 0, :3] = np.nan
ds = xr.Dataset({"t2m": (("time", "lat", "lon"), t2m, {"units": "K"}), "mean": ("time", rng.normal(0, 1, 10))},
    coords={"time": np.datetime64("2000-01-01", "ns") + np.arange(10) * np.timedelta64(6, "h"),
            "lat": ("lat", np.linspace(75, 15, 7).astype("f4"), {"units": "degrees_north"}),
            "lon": ("lon", np.arange(0, 360, 30.0), {"units": "degrees_east"})})
packed = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32767, "zlib": True, "chunksizes": (3, 4, 5)}
ds.to_netcdf(sys.argv[1] + "/a.nc", encoding={"t2m": packed}, unlimited_dims=["time"])
for day in range(3):
    ds.isel(time=slice(3 * day, 3 * day + 3)).to_netcdf(sys.argv[1] + f"/day-{day}.nc", encoding={"t2m": {**packed, "chunksizes": None}})
`;

/** Prints what differs from xarray's selections, by name of the file that was written. */
const COMPARE = `
import json, sys
import numpy as np, pandas as pd, xarray as xr
def compare(case):
    ds = xr.open_mfdataset(case["files"]).load() if len(case["files"]) > 1 else xr.open_dataset(case["files"][0])
    expected = eval(case["code"])
    if case["out"].endswith(".nc"):
        xr.testing.assert_equal(xr.open_dataset(case["out"]).load(), expected.load())
        raw = xr.open_dataset(case["out"], decode_cf=False)
        assert raw.t2m.dtype == "int16", raw.t2m.dtype
    elif case["out"].endswith(".npy"):
        np.testing.assert_array_equal(np.load(case["out"]), expected.t2m.values)
    elif case["out"].endswith(".json"):
        xr.testing.assert_allclose(xr.Dataset.from_dict(json.load(open(case["out"]))).drop_vars("time"), expected.load().drop_vars("time"))
    else:
        table = pd.read_csv(case["out"], parse_dates=["time"])
        frame = expected.to_dataframe().reset_index()[list(table.columns)]
        pd.testing.assert_frame_equal(table, frame, check_dtype=False, rtol=1e-6)
    return "same"
def outcome(case):
    try: return compare(case)
    except Exception as error: return repr(error)
print(json.dumps({case["out"]: outcome(case) for case in json.load(sys.stdin)}))
`;

const CASES: readonly (readonly [file: string, args: string, code: string])[] = [
  [
    "box.nc",
    "--var t2m --sel time=2000-01-02 --sel lat=20/50",
    'ds[["t2m"]].sel(time="2000-01-02", lat=slice(50, 20))',
  ],
  ["all.nc", "--var t2m --var mean", "ds"],
  [
    "step.nc",
    "--var t2m --sel lon=30/.. --step lon=2 --isel time=-1",
    'ds[["t2m"]].sel(lon=slice(30, None, 2)).isel(time=-1)',
  ],
  [
    "place.csv",
    "--var t2m --sel lat=nearest::41 --sel lon=nearest::8.6",
    'ds[["t2m"]].sel(lat=41, lon=8.6, method="nearest")',
  ],
  [
    "some.json",
    "--var t2m --isel time=1:3 --isel lat=0 --isel lat=2",
    'ds[["t2m"]].isel(time=slice(1, 3), lat=[0, 2])',
  ],
  ["plane.npy", "--var t2m --isel time=4 --decode", "ds.isel(time=4)"],
];

t.test(
  "what is written equals xarray's selection of the same file",
  { skip: clientMissing("xarray") },
  async (t) => {
    const cwd = t.testdir({});
    askPython(WRITE, null, [cwd]);
    const written: { readonly files: readonly string[]; readonly out: string; readonly code: string }[] = [];
    for (const [file, args, code] of CASES) {
      const out = join(cwd, file);
      const { stderr, ...run } = await runHere(["select", join(cwd, "a.nc"), ...args.split(" "), "-o", out]);
      t.strictSame(run, { code: 0, stdout: "" }, `${file}: ${stderr}`);
      written.push({ files: [join(cwd, "a.nc")], out, code });
      if (!file.endsWith(".csv")) continue;
      const format = file.split(".")[1] as string;
      const printed = await runProgram(["select", "a.nc", ...args.split(" "), "-f", format], { cwd });
      t.equal(printed.stdout, await readFile(out, "utf8"), `${format} on standard output is the same`);
    }
    const args = [
      "select",
      join(cwd, "day-*.nc"),
      "--concat",
      "time",
      "--var",
      "t2m",
      "--sel",
      "lat=45",
      "-o",
    ];
    const { stderr, code } = await runHere([...args, join(cwd, "joined.nc")]);
    t.equal(code, 0, stderr);
    const files = [0, 1, 2].map((day) => join(cwd, `day-${day}.nc`));
    written.push({ files, out: join(cwd, "joined.nc"), code: 'ds[["t2m"]].sel(lat=45)' });
    t.same(
      JSON.parse(askPython(COMPARE, written)),
      Object.fromEntries(written.map(({ out }) => [out, "same"])),
    );
    t.strictSame(
      (await readdir(cwd)).filter((name) => name.includes("part")),
      [],
      "no file is left over",
    );
  },
);

/** Writes a store with `v(x)`, zeros in chunks of a million floats that are not there. @param broken A chunk that cannot be decoded. */
async function writeZeros(cwd: string, length: number, broken?: number): Promise<void> {
  const chunks = Math.min(length, 1_000_000);
  const array = {
    zarr_format: 2,
    shape: [length],
    chunks: [chunks],
    dtype: "<f4",
    fill_value: 0,
    order: "C",
  };
  await writeFiles(join(cwd, "v.zarr"), {
    ".zgroup": '{"zarr_format": 2}',
    "v/.zarray": JSON.stringify({ ...array, compressor: { id: "zlib", level: 1 }, filters: null }),
    "v/.zattrs": '{"_ARRAY_DIMENSIONS": ["x"]}',
    ...(broken === undefined ? {} : { [`v/${broken}`]: "no zlib" }),
  });
}

t.test("a piece goes to standard output, and a reader that has seen enough is no failure", async (t) => {
  const cwd = t.testdir({});
  await writeZeros(cwd, 200_000);
  const few = await runProgram(["select", "v.zarr", "--isel", "x=2:4", "-f", "csv"], { cwd });
  t.strictSame(few, { code: 0, stdout: "x,v\n0,\n1,\n", stderr: "" });
  const run = runScript(PROGRAM, ["select", "v.zarr", "-f", "csv"], { cwd });
  await run.says("x,v\n");
  run.child.stdout.destroy();
  t.equal(await run.ended, 0);
  t.equal(run.stderr(), "");
});

t.test("a file that fails is removed, and the one before stays", async (t) => {
  const cwd = t.testdir({ "out.nc": "before" });
  // More than what is read ahead: the file has begun.
  await writeZeros(cwd, 9_000_000, 8);
  const { code, stderr } = await runProgram(["select", "v.zarr", "-o", "out.nc"], { cwd });
  t.equal(code, 1);
  t.match(stderr, /^zpublish: [^\n]+\n$/);
  t.strictSame((await readdir(cwd)).toSorted(), ["out.nc", "v.zarr"]);
  t.equal(await readFile(join(cwd, "out.nc"), "utf8"), "before");
  const nowhere = await runProgram(["select", "v.zarr", "--isel", "x=0", "-o", "absent/out.csv"], { cwd });
  t.match(nowhere, { code: 1, stderr: /^zpublish: [^\n]*absent\/out\.csv[^\n]*\n$/ });
});

t.test("a full disk is one line", { skip: !existsSync("/dev/full") && "no /dev/full" }, async (t) => {
  const cwd = t.testdir({});
  await writeZeros(cwd, 4);
  for (const [command, line] of [
    ["select v.zarr -f csv > /dev/full", /^zpublish: standard output: ENOSPC: [^\n]+\n$/],
    ["inspect v.zarr > /dev/full", /^zpublish: standard output: ENOSPC: [^\n]+\n$/],
    ["select v.zarr -f csv -o /dev/full", /^zpublish: ENOSPC: [^\n]+\n$/],
  ] as const) {
    const shell = ["-c", `"$0" "$1" ${command}`, process.execPath, PROGRAM];
    const { status, stdout, stderr } = spawnSync("sh", shell, { cwd, encoding: "utf8" });
    t.strictSame([status, stdout], [1, ""], command);
    t.match(stderr, line);
  }
});

/** Waits until a file is being written. */
async function isBegun(cwd: string): Promise<void> {
  while (!(await readdir(cwd)).some((name) => name.endsWith(".part")))
    await new Promise((resolve) => setTimeout(resolve, 5));
}

t.test("a signal ends it, and nothing is left of the file", async (t) => {
  const cwd = t.testdir({});
  await writeZeros(cwd, 50_000_000);
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const) {
    const run = runScript(PROGRAM, ["select", "v.zarr", "-f", "csv", "-o", "out.csv"], { cwd });
    await isBegun(cwd);
    run.child.kill(signal);
    t.equal(await run.ended, code);
    t.equal(run.stderr(), "zpublish: ended by a signal, nothing is left of the file\n");
    t.strictSame(await readdir(cwd), ["v.zarr"]);
  }
});

/** Runs a program on a terminal, which is closed when the file in `sys.argv[1]` is being written. */
const CLOSE_TERMINAL = `
import glob, os, pty, sys, time
pid, terminal = pty.fork()
if pid == 0: os.execv(sys.argv[2], sys.argv[2:])
while not glob.glob(sys.argv[1] + "*.part"): time.sleep(0.01)
os.close(terminal)
os.waitpid(pid, 0)
`;

t.test("a terminal that is closed ends it; without one it goes on, as nohup wants", async (t) => {
  const cwd = t.testdir({});
  await writeZeros(cwd, 2_000_000);
  const output = join(cwd, "out.csv");
  const args = ["select", join(cwd, "v.zarr"), "-o", output];
  if (!clientMissing("yaml")) {
    askPython(CLOSE_TERMINAL, null, [output, process.execPath, PROGRAM, ...args]);
    t.strictSame(await readdir(cwd), ["v.zarr"]);
  }
  const run = runScript(PROGRAM, args);
  await isBegun(cwd);
  run.child.kill("SIGHUP");
  t.equal(await run.ended, 0, run.stderr());
  t.strictSame((await readdir(cwd)).toSorted(), ["out.csv", "v.zarr"]);
});

const MISTAKES: readonly (readonly [args: string, stderr: RegExp])[] = [
  ["v.zarr --isel x=9", /^--isel x: Expected an index from -4 to 3, received '9'$/],
  ["v.zarr --sel y=9", /^--sel y: Expected var, f, decode, or a dimension: x, received 'y'$/],
  ["v.zarr --var w", /^--var: Expected a variable: v, received 'w'$/],
  [
    "v.nc --sel x --isel y",
    /^--sel: expected DIM=… such as lat=3, received "x"\nzpublish: --isel: expected /,
  ],
  ["v.zarr -f xls", /^--format: expected one of nc, csv, json, npy, arrow, received "xls"$/],
  [
    "v.nc -o v.txt",
    /^--output: expected a name that ends with one of [^\n]*, or --format, received "v.txt"$/,
  ],
  [".", /^\S+: expected one dataset, received several: /],
];

t.test("what cannot be selected is one line and exit code 2; what cannot be read is 1", async (t) => {
  const cwd = t.testdir({});
  await writeZeros(cwd, 4);
  for (const [args, line] of MISTAKES) {
    const [location = "", ...options] = args.split(" ");
    const { code, stderr } = await runHere(["select", join(cwd, location), ...options]);
    t.equal(code, 2, args);
    t.match(stderr.replace(/^zpublish: /, "").trimEnd(), line);
  }
  t.match(await runProgram(["select", "absent.nc"], { cwd }), { code: 1, stderr: /^zpublish: [^\n]+\n$/ });
  t.match(await runHere(["select"]), { code: 2, stderr: /missing required argument 'location'/ });
});

t.test("options become the query of the plugin", async (t) => {
  const queryOf = (args: string) => {
    const command = createSelectCommand().exitOverride();
    return selectRequestOf(command.parse(["x.nc", ...args.split(" ")], { from: "user" })).query;
  };
  const queries = [
    ["--var a/b --sel time=2000-01/.. --step time=2", "var=a%2Fb&time=2000-01%2F..&step.time=2&f=json"],
    ["--sel name=x=y --isel lat=0 --isel lat=3 -o out.arrow", "name=x%3Dy&isel.lat=0&isel.lat=3&f=arrow"],
    ["-f csv -o out.txt --no-decode", "f=csv&decode=0"],
  ] as const;
  for (const [args, query] of queries) t.equal(queryOf(args), query);
});
