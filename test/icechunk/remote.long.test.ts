import { basename, dirname } from "node:path";
import t, { type Test } from "tap";
import { defaultValues, optionConfig } from "../../src/config/options.js";
import { effort } from "../support/effort.js";
import { icechunkMissing, openIcechunk, type Repository } from "../support/icechunk/open-icechunk.js";
import { array, chunk, compareWithIcechunk, dataset, group } from "../support/icechunk/sample-repository.js";
import { startFaultyOrigin } from "../support/origins/faulty-origin.js";
import { createFaults } from "../support/servers/remote-load.js";
import { startServer } from "../support/servers/start-server.js";

t.setTimeout(600_000);

const skip = icechunkMissing();
const SEED = Number(process.env.ZPUBLISH_TEST_SEED ?? 1);
const CHUNKS = 8;

/** Commits every chunk of two arrays; those of `small` are inline. */
function state(value: number) {
  return Array.from({ length: CHUNKS }, (_, at) => at).flatMap((at) => [
    chunk(`small/c/${at}`, 2, value + at),
    chunk(`large/c/${at}`, 64, value + at),
  ]);
}

/** Serves a repository from a web server or a bucket. */
async function serveRemote(t: Test, kind: "http" | "s3", repository: Repository, sourceTimeoutMs = 60_000) {
  const directory = dirname(repository.path);
  const name = basename(repository.path);
  const origin = await startFaultyOrigin(t, {
    directory,
    ...(kind === "s3" && { s3: { bucket: "data" } }),
  });
  const stores = [{ url: "s3://data/", endpoint: origin.url, region: "us-east-1", anonymous: true }];
  const location = `icechunk:${kind === "s3" ? "s3://data" : origin.url}/${name}`;
  const limits = { ...optionConfig(defaultValues({})).limits, sourceTimeoutMs };
  const server = await startServer(t, {
    datasets: [
      dataset("x", location, kind === "s3" ? { stores } : {}),
      dataset("tag", `${location}?tag=v1`, kind === "s3" ? { stores } : {}),
    ],
    refreshSeconds: 3_600,
    limits,
  });
  return { server, origin, name };
}

async function createRepository(t: Test, specVersion: 1 | 2) {
  const icechunk = await openIcechunk(t);
  const repository = await icechunk.create({ specVersion, config: { inlineChunkThresholdBytes: 12 } });
  const first = await repository.commit("first", [
    group(""),
    array("small", [2 * CHUNKS + 2], [2]),
    array("large", [64 * CHUNKS + 64], [64]),
    ...state(100),
  ]);
  await repository.call("createTag", "v1", first);
  return repository;
}

for (const kind of ["http", "s3"] as const) {
  for (const specVersion of [1, 2] as const) {
    t.test(
      `${kind}, format ${specVersion}: one request for each refresh, and one for each chunk`,
      { skip },
      async (t) => {
        const repository = await createRepository(t, specVersion);
        const { server, origin, name } = await serveRemote(t, kind, repository);
        const requests = () => origin.requests.map(({ method, key, status }) => `${method} ${key} ${status}`);
        t.same((await compareWithIcechunk(server, "x", repository, { branch: "main" })).differences, []);
        t.same((await compareWithIcechunk(server, "tag", repository, { tag: "v1" })).differences, []);

        const mutable = specVersion === 2 ? `${name}/repo` : `${name}/refs/branch.main/ref.json`;
        origin.resetCounts();
        await server.server.refresh();
        const tag = specVersion === 2 ? `${name}/repo` : `${name}/refs/tag.v1/ref.json`;
        t.same(requests().sort(), [`GET ${mutable} 304`, `GET ${tag} 304`], "a refresh without a commit");
        t.ok(origin.requests[0]?.headers["if-none-match"]);

        origin.resetCounts();
        for (let round = 0; round < 2; round++) {
          for (let at = 0; at < CHUNKS; at++) {
            t.equal((await server.get(`/datasets/x/zarr3/large/c/${at}`)).status, 200);
            t.equal((await server.get(`/datasets/x/zarr3/small/c/${at}`)).status, 200);
            t.equal((await server.get(`/datasets/tag/zarr3/large/c/${at}`)).status, 200);
          }
        }
        t.equal(origin.requests.length, 4 * CHUNKS, "inline chunks need none");
        t.ok(
          origin.requests.every(({ method, key }) => method === "GET" && key.startsWith(`${name}/chunks/`)),
        );

        origin.resetCounts();
        const etag = (await server.get("/datasets/x/zarr3/large/c/3")).headers.get("etag") as string;
        origin.resetCounts();
        const again = await server.get("/datasets/x/zarr3/large/c/3", { "if-none-match": etag });
        t.equal(again.status, 304);
        t.same(requests(), [], "a conditional request is answered from what is known");

        await repository.commit("second", [chunk("large/c/3", 64, 999)]);
        origin.resetCounts();
        await server.server.refresh();
        t.ok(requests().includes(`GET ${mutable} 200`));
        t.same(
          requests().filter((request) => / 404$/.test(request)),
          [],
        );
        t.ok(origin.requests.length <= 5, `${requests().join(", ")}: repository, snapshot, manifests`);
        t.same((await compareWithIcechunk(server, "x", repository, { branch: "main" })).differences, []);
        t.same((await compareWithIcechunk(server, "tag", repository, { tag: "v1" })).differences, []);
      },
    );

    t.test(
      `${kind}, format ${specVersion}: an origin that fails at random gives no wrong value (seed ${SEED})`,
      { skip },
      async (t) => {
        const repository = await createRepository(t, specVersion);
        const { server, origin } = await serveRemote(t, kind, repository, 500);
        t.same((await compareWithIcechunk(server, "x", repository, { branch: "main" })).differences, []);
        const known = new Set([100]);
        for (let round = 0; round < effort(9); round++) {
          const value = 1_000 * (round + 1);
          await repository.commit(String(round), state(value));
          known.add(value);
          origin.setFault(createFaults(SEED + round, [0.1, 0.4, 0.9][round % 3] as number));
          const wrong: string[] = [];
          const ask = async (name: string, at: number, count: number) => {
            const answer = await server.get(`/datasets/x/zarr3/${name}/c/${at}`);
            const bytes = await answer.arrayBuffer();
            if (answer.status >= 500) return;
            const values = answer.status === 200 ? [...new Int32Array(bytes)] : [];
            const isRight =
              values.length === count &&
              known.has(values[0]! - at) &&
              values.every((each) => each === values[0]);
            if (!isRight) wrong.push(`${name} ${at}: ${answer.status} ${values}`);
          };
          const askAll = () =>
            Promise.all(
              Array.from({ length: CHUNKS }, (_, at) => [ask("small", at, 2), ask("large", at, 64)]).flat(),
            );
          await Promise.all([askAll(), server.server.refresh()]);
          await askAll();
          t.same(wrong, [], `round ${round}`);
          origin.setFault(() => undefined);
          await server.server.refresh();
          const { differences } = await compareWithIcechunk(server, "x", repository, { branch: "main" });
          t.same(differences, [], `all is right again after round ${round}`);
        }
      },
    );
  }
}
