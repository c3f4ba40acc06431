import t, { type Test } from "tap";
import { type FaultyOrigin, startFaultyOrigin } from "../support/origins/faulty-origin.js";
import { childrenOf } from "../support/servers/process-table.js";
import { startSmall } from "../support/servers/start-program.js";
import { zarray, zgroup } from "../support/write-store.js";

const documents = { ".zgroup": zgroup, "v/.zarray": zarray };
const OBJECTS = {
  "x/.zmetadata": JSON.stringify({ zarr_consolidated_format: 1, metadata: documents }),
  "x/v/0": "ab",
};
const skip = process.platform === "linux" ? false : "only Linux spreads connections";

// The program inherits them.
process.env.STORES_TEST_FIRST = "first-token";
process.env.STORES_TEST_SECOND = "second-token";

/** A configuration of one dataset whose store wants a header. */
function configFor({ url }: FaultyOrigin, variable: string, title = "one"): object {
  const headers = { Authorization: { env: variable } };
  return { title, stores: { web: { url: `${url}/`, headers } }, datasets: { x: `${url}/x` } };
}

/** Fetches the chunk over a new connection, which any process may get. */
async function readChunk(url: string): Promise<string> {
  const answer = await fetch(`${url}/datasets/x/zarr/v/0`, { headers: { connection: "close" } });
  return answer.text();
}

async function startGuarded(t: Test) {
  const origin = await startFaultyOrigin(t, { objects: OBJECTS });
  const admit = (token: string) =>
    origin.setFault(({ headers }) => (headers.authorization === token ? undefined : { status: 403 }));
  admit("first-token");
  return { origin, admit };
}

t.test(
  "a reload opens datasets again whose store has changed, and refuses one that cannot be reached",
  async (t) => {
    const { origin, admit } = await startGuarded(t);
    const config = () => configFor(origin, "STORES_TEST_FIRST");
    // No periodic refresh: it would ask with the former token.
    const program = await startSmall(t, { args: ["--refresh", "3600"], config });
    t.equal(await readChunk(program.url), "ab");

    origin.resetCounts();
    await program.write(configFor(origin, "STORES_TEST_FIRST", "other"));
    t.equal(await program.reload(), "reloaded");
    // After "reloaded", HUP refreshes datasets in the background: with the former token, if the next line comes first.
    await origin.requested({ key: "x/zarr.json", status: 404 });
    await origin.requested({ key: "x/.zmetadata", status: 304 });
    t.equal(origin.count(), 2, "a dataset of the same store is refreshed, not opened again");

    admit("second-token");
    await program.write(configFor(origin, "STORES_TEST_SECOND"));
    t.equal(await program.reload(), "reloaded");
    t.equal(origin.count({ key: "x/.zmetadata", status: 200 }), 1);
    t.equal(await readChunk(program.url), "ab");
    t.equal(origin.count({ status: 403 }), 0);

    await program.write(configFor(origin, "STORES_TEST_UNSET"));
    t.equal(await program.reload(), "refused");
    t.match(program.said("cannot be used; the present one stays").at(-1), {
      reason:
        /stores\.web\.headers\.Authorization: expected the variable STORES_TEST_UNSET to have a text, found it unset or empty/,
    });
    t.equal(await readChunk(program.url), "ab", "the present configuration stays");

    await program.write(configFor(origin, "STORES_TEST_FIRST"));
    t.equal(await program.reload(), "refused", "the origin refuses the former token");
    t.match(program.said("cannot be used; the present one stays").at(-1), { reason: /answers 403/ });
    t.equal(await readChunk(program.url), "ab");
    t.notMatch(program.run.stderr() + program.run.stdout(), /(first|second)-token/);
  },
);

t.test("processes reach a bucket each by itself, before and after a reload", { skip }, async (t) => {
  const s3 = {
    bucket: "data",
    authorize: ({ accessKeyId }: { accessKeyId: string | undefined }) =>
      accessKeyId === "first-token" ? undefined : "InvalidAccessKeyId",
  };
  const origin = await startFaultyOrigin(t, { objects: OBJECTS, s3 });
  const credentials = {
    accessKeyId: { env: "STORES_TEST_FIRST" },
    secretAccessKey: { env: "STORES_TEST_SECOND" },
  };
  const store = { url: "s3://data/", endpoint: origin.url, credentials };
  const config = { stores: { bucket: store }, datasets: { x: "s3://data/x" } };
  const program = await startSmall(t, { processes: 2, config: () => config });
  t.equal(childrenOf(program.pid).length, 2);
  t.equal(origin.count({ method: "GET", key: "x/.zmetadata", status: 200 }), 2, "each reads the metadata");
  for (let count = 0; count < 16; count++) t.equal(await readChunk(program.url), "ab");

  origin.resetCounts();
  await program.write({ ...config, stores: { bucket: { ...store, requesterPays: true } } });
  t.equal(await program.reload(), "reloaded");
  for (let count = 0; count < 16; count++) t.equal(await readChunk(program.url), "ab");
  t.equal(origin.count({ key: "x/.zmetadata", status: 200 }), 2);
  t.ok(origin.requests.every(({ headers }) => headers["x-amz-request-payer"] === "requester"));
  t.notMatch(program.run.stderr() + program.run.stdout(), /(first|second)-token/);
});
