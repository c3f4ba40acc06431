import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import t, { type Test } from "tap";
import { makeTemporaryDirectory, runPython, serveDatasets } from "../support/clients/fixtures.js";
import { checkCleanLog } from "../support/clients/refusals.js";
import { clientMissing } from "../support/clients/require-client.js";
import { filesOf } from "../support/datasets/sample-stores.js";
import { startRadosgw } from "../support/origins/radosgw-origin.js";
import type { Program } from "../support/servers/start-program.js";

/** A folder of files that `write_joined_files.py` wrote. */
interface Case {
  /** Keys of the configuration file. */
  readonly join: Readonly<Record<string, unknown>>;
  readonly files: readonly string[];
}

type Cases = Readonly<Record<string, Case>>;

/** Variables that not all files of a case have. */
const REFUSED: Readonly<Record<string, readonly string[]>> = { bounds: ["rare"] };

/** Cases that are served in other chunks as well, and in what chunks. */
const RECHUNKED = ["bounds", "integers", "months", "packed", "runs", "stores", "wide"];
const ENCODING = {
  encoding: { compressor: { id: "zstd", level: 1 } },
  variables: { t2m: { chunks: { time: 11, lat: 3 } } },
};

/** Cases that are read from a bucket as well. */
const IN_BUCKET = ["mixture", "months", "groups", "runs", "stores"];

t.setTimeout(600_000);

async function writeCases(t: Test): Promise<{ readonly directory: string; readonly cases: Cases }> {
  const directory = await makeTemporaryDirectory();
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const cases = JSON.parse(await runPython("write_joined_files.py", [join(directory, "files")]));
  return { directory, cases };
}

/**
 * Compares served cases with what xarray makes of the files.
 * @param served Names of cases by id of their dataset.
 */
async function compare(
  t: Test,
  { directory, cases }: { readonly directory: string; readonly cases: Cases },
  server: Program,
  served: Readonly<Record<string, string>>,
): Promise<void> {
  const stores = Object.fromEntries(Object.entries(served).map(([id, name]) => [server.storeUrl(id), name]));
  const input = JSON.stringify({ directory: join(directory, "files"), cases, stores });
  const results = JSON.parse(await runPython("compare_joined.py", [], input));
  for (const url of Object.keys(stores)) {
    const { compared, differences, missing } = results[url];
    t.same(differences, [], url);
    t.same(missing, [], `missing from ${url}`);
    t.ok(compared > 3, `${compared} variables of ${url}`);
  }
  const refused = server
    .log()
    .filter(({ msg }) => msg === "refused")
    .map(({ dataset, path }) => `${dataset} ${path}`);
  const expected = Object.entries(served).flatMap(
    ([id, name]) => REFUSED[name]?.map((path) => `${id} ${path}`) ?? [],
  );
  t.same(refused.sort(), expected.sort());
  checkCleanLog(t, server);
}

t.test(
  "joined files are what xarray makes of them",
  { skip: clientMissing("xarray", "zarr", "netcdf4") },
  async (t) => {
    const written = await writeCases(t);
    const { directory, cases } = written;
    const datasets: Record<string, unknown> = {};
    const served: Record<string, string> = {};
    for (const [name, { join: how }] of Object.entries(cases)) {
      const dataset = { location: join(directory, "files", name, "*"), ...how };
      datasets[name] = dataset;
      served[name] = name;
      if (!RECHUNKED.includes(name)) continue;
      datasets[`${name}-rechunked`] = { ...dataset, ...ENCODING };
      served[`${name}-rechunked`] = name;
    }
    const server = await serveDatasets(t, { directory, datasets });
    t.teardown(() => server.stop());
    await compare(t, written, server, served);

    await t.test("in a bucket, too", { skip: clientMissing("radosgw") }, async (t) => {
      const origin = await startRadosgw(t);
      await origin.createBucket("archive");
      for (const name of IN_BUCKET) {
        for (const file of cases[name]?.files ?? []) {
          const path = join(directory, "files", name, file);
          const objects = file.endsWith(".zarr")
            ? [...(await filesOf(path))]
            : [["", await readFile(path)] as const];
          for (const [key, bytes] of objects) {
            await origin.putObject("archive", `2026/${name}/${file}${key === "" ? "" : `/${key}`}`, bytes);
          }
        }
      }
      const { credentials, endpoint } = origin;
      const server = await serveDatasets(t, {
        directory: join(directory, "bucket"),
        datasets: Object.fromEntries(
          IN_BUCKET.map((name) => [name, { location: `s3://archive/2026/${name}/*`, ...cases[name]?.join }]),
        ),
        env: {
          AWS_ENDPOINT_URL: endpoint,
          AWS_EC2_METADATA_DISABLED: "true",
          AWS_ACCESS_KEY_ID: credentials.accessKeyId,
          AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
        },
      });
      t.teardown(() => server.stop());
      await compare(t, written, server, Object.fromEntries(IN_BUCKET.map((name) => [name, name])));
    });
  },
);
