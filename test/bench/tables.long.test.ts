import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { type BenchContext, type Build, runTable, THIS_BUILD } from "../../bench/harness/harness.js";
import { markdownReport } from "../../bench/harness/report.js";
import { nginxVersion } from "../../bench/subjects/nginx.js";
import { ROWS } from "../../bench/tables/rows.js";
import { TABLES } from "../../bench/tables/tables.js";
import { clientMissing } from "../support/clients/require-client.js";
import { choose, effort } from "../support/effort.js";
import { icechunkMissing } from "../support/icechunk/open-icechunk.js";
import { makeDirectory } from "../support/write-store.js";

t.setTimeout(600_000);

// Of this run alone: `t.testdir` has one name for all runs in a checkout.
const root = await makeDirectory(t);
const skip = existsSync("/proc/self/smaps") ? false : "skipped, because there is no /proc/PID/smaps";
const TEXT = { command: "", date: "", machine: {}, rounds: 1, seconds: 1, notes: [] };

let folders = 0;
function contextWith(builds: readonly Build[]): BenchContext {
  return {
    ...{ size: "tiny", rounds: 1, seconds: 0.1, builds, peers: [], hasSameHeaders: false },
    parent: join(root, "data"),
    freshFolder(name) {
      const folder = join(root, `${name}-${folders++}`);
      mkdirSync(folder);
      return folder;
    },
    onProgress: () => {},
  };
}

/** Clients that a table runs. */
const CLIENTS: Readonly<Record<string, Parameters<typeof clientMissing>>> = {
  dap: ["fsspec", "h5netcdf", "h5py", "netcdf4", "xarray"],
  explore: ["chromium"],
  files: ["h5netcdf", "h5py", "netcdf4", "xarray"],
  "joined-netcdf4": ["h5py", "netcdf4"],
  peers: ["h5py", "netcdf4"],
  references: ["h5py", "netcdf4"],
  select: ["h5py", "netcdf4"],
  "tile-servers": ["gdal", "netcdf4"],
  tiles: ["gdal", "netcdf4"],
};

/** What a run measures: some of these, which are a row or table of each kind. With an effort of 1 it is all rows and tables. */
const SOME: ReadonlySet<string> = new Set(
  choose(t, [
    ...["passthrough-cold", "not-modified", "zmetadata", "codecs", "overviews", "warm", "memory"],
    ...["request-cost", "collections", "joined-zarr", "references"],
  ]),
);
const isWhole = effort(10) >= 10;

/** What was measured says nothing here; only that it was, of answers that were right. */
for (const [name, table] of Object.entries({ ...ROWS, ...TABLES })) {
  if (!SOME.has(name) && !isWhole) continue;
  const clients = CLIENTS[name];
  const missing =
    skip ||
    (clients === undefined ? false : clientMissing(...clients)) ||
    (name === "icechunk" && icechunkMissing());
  t.test(`${name} finds its answers right and fills its tables`, { skip: missing }, async (t) => {
    const contests = await runTable(table, contextWith([THIS_BUILD]));
    t.ok(contests.length > 0);
    for (const { contest, measurements } of contests) {
      t.equal(measurements.length, contest.contestants.length);
      for (const { contestant, figures } of measurements)
        t.ok(figures[contest.compared] !== undefined, `${contestant} has ${contest.compared}`);
      const aims = (contest.aims ?? []).map(({ of }) => of);
      const names = contest.contestants.map((each) => each.name);
      t.ok(
        aims.every((of) => names.includes(of)),
        "aims are of contestants",
      );
    }
    const report = markdownReport([{ name, title: table.title, contests }], TEXT);
    t.match(report, `## ${name}\n`);
    t.notMatch(report, /NaN|Infinity|undefined|\[object/);
  });
}

t.test("two builds are measured by turns, and each is compared with the base", { skip }, async (t) => {
  const builds = [THIS_BUILD, { ...THIS_BUILD, name: "base" }];
  const contests = await runTable(ROWS["cached-64kib"]!, { ...contextWith(builds), rounds: 2 });
  const order = (round: number) =>
    contests[0]!.measurements
      .filter((each) => each.round === round)
      .map(({ contestant, build }) => `${contestant} ${build}`);
  t.same(order(1), order(0).toReversed());
  t.equal(order(0).length, nginxVersion() === undefined ? 6 : 7);
  const report = markdownReport([{ name: "row", title: "a row", contests }], TEXT);
  t.match(report, /\| zpublish \|.* \d+\.\d\d \(\d+\.\d\d–\d+\.\d\d\) \|\n/);
  t.match(report, "| zpublish, base |");
});
