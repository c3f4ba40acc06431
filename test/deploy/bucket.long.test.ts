import { randomBytes } from "node:crypto";
import { Agent } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import t, { type Test } from "tap";
import { clientMissing } from "../support/clients/require-client.js";
import { type S3Origin, startS3Origin } from "../support/origins/s3-origin.js";
import { BALANCERS, START_BALANCER } from "./balancer.js";
import { bucketRefusal, deployText, fillIn } from "./examples.js";
import { startInstances } from "./instances.js";
import { fetchBody, siteDocuments } from "./site.js";

const CHUNKS = 120;
const TIMES = 3;
const CHUNK_BYTES = 32 * 2 ** 10;
/** Found in the environment, as an operator gives them. */
const CREDENTIALS = { AWS_ACCESS_KEY_ID: "ZPUBLISHTEST", AWS_SECRET_ACCESS_KEY: "not-a-secret-of-anybody" };
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
async function fillBucket(s3: S3Origin): Promise<Buffer[]> {
  const documents = siteDocuments(CHUNKS, CHUNK_BYTES);
  const consolidated = { zarr_consolidated_format: 1, metadata: documents };
  for (const [key, document] of Object.entries({ ...documents, ".zmetadata": consolidated }))
    await s3.put("bucket", `air.zarr/${key}`, JSON.stringify(document));
  const chunks = Array.from({ length: CHUNKS }, () => randomBytes(CHUNK_BYTES));
  for (const [i, chunk] of chunks.entries()) await s3.put("bucket", `air.zarr/noise/${i}.0`, chunk);
  return chunks;
}

async function readThrice(t: Test, name: keyof typeof START_BALANCER): Promise<void> {
  const s3 = await startS3Origin(t);
  const chunks = await fillBucket(s3);
  const config = configFor(s3.endpoint);
  const instances = await startInstances(t, 3, { config, env: CREDENTIALS });
  const balancer = await START_BALANCER[name](t, { ports: instances.map(({ port }) => port) });
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
  const requests = s3.requests.filter((request) => !request.startsWith("PUT "));
  for (const request of requests)
    if (/^GET bucket\/air\.zarr\/noise\/\d+\.0$/.test(request))
      perObject.set(request, (perObject.get(request) ?? 0) + 1);
  const reads = [...perObject.values()].reduce((sum, count) => sum + count, 0);
  const others = requests.length - reads;
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

for (const name of BALANCERS) {
  t.test(
    `behind ${name} three instances read each object of a bucket about twice at most`,
    { skip: bucketRefusal("bucket.json") || clientMissing(name), timeout: 120_000 },
    (t) => readThrice(t, name),
  );
}
