import { randomBytes } from "node:crypto";
import { Agent } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import t, { type Test } from "tap";
import { clientMissing } from "../support/clients/require-client.js";
import { zgroup } from "../support/write-store.js";
import { bucketRefusal } from "./bucket-refusal.js";
import { fetchBody } from "./checked-load.js";
import { deployText, fillIn } from "./deploy-file.js";
import { startHaproxy, startNginx } from "./start-balancer.js";
import { type Bucket, startBucket } from "./start-bucket.js";
import { startInstances } from "./start-instances.js";

const CHUNKS = 120;
const TIMES = 3;
const CHUNK_BYTES = 32 * 2 ** 10;
/** Found in the environment, as an operator gives them. */
const CREDENTIALS = { AWS_ACCESS_KEY_ID: "ZPUBLISHTEST", AWS_SECRET_ACCESS_KEY: "not-a-secret-of-anybody" };
const BALANCERS = { nginx: startNginx, haproxy: startHaproxy };
const INSTANCE = {
  nginx: / GET (\/datasets\/\S*) 200 .*?upstream=(\S+)/g,
  haproxy: / GET (\/datasets\/\S*) 200 .*?upstream=zpublish\/(\S+)/g,
};

/** The example for instances over a bucket, with another endpoint. */
function configFor(endpoint: string) {
  return JSON.parse(fillIn(deployText("bucket.json"), { "https://s3.example.org": endpoint })) as {
    readonly datasets: object;
  };
}

/** Writes a consolidated store into the bucket. @returns Its chunks. */
async function fillBucket(bucket: Bucket): Promise<Buffer[]> {
  const array = {
    zarr_format: 2,
    shape: [CHUNKS, CHUNK_BYTES],
    chunks: [1, CHUNK_BYTES],
    dtype: "|u1",
    compressor: null,
    fill_value: 0,
    order: "C",
    filters: null,
  };
  const attributes = { _ARRAY_DIMENSIONS: ["n", "x"] };
  const documents = { ".zgroup": zgroup, "noise/.zarray": array, "noise/.zattrs": attributes };
  const consolidated = { zarr_consolidated_format: 1, metadata: documents };
  for (const [key, document] of Object.entries({ ...documents, ".zmetadata": consolidated }))
    await bucket.put(`air.zarr/${key}`, Buffer.from(JSON.stringify(document)));
  const chunks = Array.from({ length: CHUNKS }, () => randomBytes(CHUNK_BYTES));
  for (const [i, chunk] of chunks.entries()) await bucket.put(`air.zarr/noise/${i}.0`, chunk);
  return chunks;
}

async function readThrice(t: Test, name: keyof typeof BALANCERS): Promise<void> {
  const bucket = await startBucket(t);
  const chunks = await fillBucket(bucket);
  const config = configFor(bucket.endpoint);
  const instances = await startInstances(t, 3, { config, env: CREDENTIALS });
  const balancer = await BALANCERS[name](t, { ports: instances.map(({ port }) => port) });
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  t.teardown(() => agent.destroy());
  const wrong: string[] = [];
  const origins: string[] = [];
  for (let time = 0; time < TIMES; time++) {
    await Promise.all(
      chunks.map(async (chunk, i) => {
        const path = `/datasets/air/zarr/noise/${i}.0`;
        const { answer, body } = await fetchBody(balancer.port, path, {}, agent);
        if (answer.statusCode !== 200 || !body.equals(chunk)) wrong.push(`${path}: ${answer.statusCode}`);
        if (time === TIMES - 1) origins.push(String(answer.headers["x-cache"]));
      }),
    );
  }
  t.strictSame(wrong, [], "every chunk has the bytes of its object");

  const instancesOf = new Map<string, Set<string>>();
  let answers = 0;
  while (answers < TIMES * CHUNKS) {
    await delay(20);
    const log = await balancer.log();
    const found = [...log.matchAll(INSTANCE[name])];
    answers = found.length;
    for (const [, path, instance] of found)
      instancesOf.set(path!, (instancesOf.get(path!) ?? new Set()).add(instance!));
  }
  t.equal(instancesOf.size, CHUNKS);
  t.ok(
    [...instancesOf.values()].every(({ size }) => size === 1),
    "each path stays with one instance",
  );
  t.equal(new Set([...instancesOf.values()].flatMap((each) => [...each])).size, 3, "and all three have some");

  const perObject = new Map<string, number>();
  for (const request of bucket.requests)
    if (/^GET air\.zarr\/noise\/\d+\.0$/.test(request))
      perObject.set(request, (perObject.get(request) ?? 0) + 1);
  const reads = [...perObject.values()].reduce((sum, count) => sum + count, 0);
  const others = bucket.requests.length - reads;
  t.comment(`${reads} reads of ${CHUNKS} chunks, ${others} other requests to the bucket`);
  t.equal(perObject.size, CHUNKS, "every object was read");
  // A chunk that is passed through is cached when it is asked for a second time.
  t.ok(reads <= 2 * CHUNKS * 1.05, `each object at most about twice: ${reads} reads`);
  t.ok(
    origins.every((origin) => origin === "HIT"),
    "the third time from a cache",
  );
  const secret = CREDENTIALS.AWS_SECRET_ACCESS_KEY;
  t.notOk(
    instances.some((instance) => instance.log().includes(secret)),
    "no log has the key",
  );
}

for (const name of ["nginx", "haproxy"] as const) {
  t.test(
    `behind ${name} three instances read each object of a bucket about twice at most`,
    { skip: bucketRefusal("bucket.json") || clientMissing(name), timeout: 120_000 },
    (t) => readThrice(t, name),
  );
}
