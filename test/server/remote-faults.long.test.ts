import t from "tap";
import { setSourceTimeout } from "../../src/stores/file-calls.js";
import type { Freshness } from "../../src/stores/object-versions.js";
import { effort } from "../support/effort.js";
import {
  chunksOf,
  createFaults,
  PATIENT_MS,
  packedChunksOf,
  problemOf,
  serveStores,
  shardOf,
  startStores,
} from "../support/servers/remote-load.js";
import type { RunningServer } from "../support/servers/start-server.js";

t.setTimeout(600_000);

/** Readers at a time, each of which asks for one chunk after the other. */
const READERS = 24;
const ROUNDS = effort(20);
const SEED = Number(process.env.ZPUBLISH_TEST_SEED ?? 1);

/** Returns what is wrong with chunks of an origin that is sound again. Requests may join others that began before. */
async function problemsAfter(server: RunningServer, chunks: ReturnType<typeof chunksOf>) {
  let problems: unknown[] = [undefined];
  for (let pass = 0; pass < 5 && problems.length > 0; pass++) {
    const found = await Promise.all(chunks.map((chunk) => problemOf(server, chunk, false)));
    problems = found.filter((problem) => problem !== undefined);
  }
  return problems;
}

t.test(
  `readers of an origin that fails at random and is sound by turns get no wrong byte (seed ${SEED})`,
  async (t) => {
    const [failing, sound] = [await startStores(t), await startStores(t)];
    const server = await serveStores(t, { failing, sound }, { seconds: 0.2 });
    const metadata = "/datasets/failing-shards-stored/zarr/.zmetadata";
    const before = await (await server.get(metadata)).text();
    const chunks = chunksOf("failing");
    for (let round = 0; round < ROUNDS; round++) {
      // Short, because some answers never come; the sound origin has to answer within it, too.
      setSourceTimeout(2_000);
      const share = [0.05, 0.3, 0.9][round % 3] as number;
      failing.setFault(createFaults(SEED + round, share));
      const problems: string[] = [];
      const read = async (reader: number) => {
        for (let i = reader; i < chunks.length * 4; i += 7) {
          const problem = await problemOf(server, chunks[i % chunks.length] as (typeof chunks)[0], true);
          if (problem !== undefined) problems.push(problem);
        }
      };
      const readSound = async () => {
        for (const chunk of chunksOf("sound")) {
          const problem = await problemOf(server, chunk, false);
          if (problem !== undefined) problems.push(problem);
        }
      };
      const reading = Promise.all(Array.from({ length: READERS }, (_, reader) => read(reader)));
      await Promise.all([readSound(), readSound()]);
      await reading;
      t.same(problems, [], `round ${round}, ${share * 100} % fail`);
      t.equal(await (await server.get(metadata)).text(), before);
      failing.setFault(() => undefined);
      setSourceTimeout(PATIENT_MS);
      t.same(await problemsAfter(server, chunks), [], "all is right again");
    }
  },
);

const FRESHNESS: readonly Freshness[] = ["always", { seconds: 0.05 }, "immutable"];

t.test("datasets of another origin are not held up by one that hangs", async (t) => {
  const [hanging, sound] = [await startStores(t), await startStores(t)];
  // More chunks than are read for workers at a time.
  const names = Array.from({ length: 6 }, (_, i) => `hanging${i}`);
  const origins = { sound, ...Object.fromEntries(names.map((name) => [name, hanging])) };
  const server = await serveStores(t, origins, { seconds: 3_600 });
  const paths = names.flatMap(packedChunksOf);
  // Versions are known then, so that chunks hang while they are read for workers.
  for (const { status } of await Promise.all(paths.map((path) => server.get(path)))) t.equal(status, 200);
  hanging.setFault(() => ({ hang: "before-headers" }));
  hanging.resetCounts();
  let answered = 0;
  const ask = async (path: string) => {
    const { status } = await server.get(path);
    answered++;
    return status;
  };
  const waiting = [...paths, ...chunksOf("hanging0").map(({ path }) => path)].map(ask);
  await hanging.requested({}, 64);
  const packed = await Promise.all(packedChunksOf("sound").map((path) => server.get(path)));
  const problems = await Promise.all(chunksOf("sound").map((chunk) => problemOf(server, chunk, false)));
  t.equal(answered, 0, "the other ones were all waiting still");
  t.ok(packed.every(({ status }) => status === 200));
  t.same(
    problems.filter((problem) => problem !== undefined),
    [],
  );
  // Requests that wait for their turn need not be tried again and again.
  setSourceTimeout(200);
  await hanging.stop();
  t.same(new Set(await Promise.all(waiting)), new Set([500]));
});

t.test("an answer that lied about an object's length is not believed for ever", async (t) => {
  const faults = [{ lengthError: -3 }, { contentRange: "bytes 0-7/8" }, { lengthError: 3 }] as const;
  const play = async (freshness: Freshness) => {
    const origin = await startStores(t);
    const server = await serveStores(t, { one: origin }, freshness);
    for (const fault of faults) {
      origin.setFault(({ key }) => (/\/v\//.test(key) ? fault : undefined));
      const problems = await Promise.all(chunksOf("one").map((chunk) => problemOf(server, chunk, true)));
      t.same(
        problems.filter((problem) => problem !== undefined),
        [],
      );
      origin.setFault(() => undefined);
      const after = await problemsAfter(server, chunksOf("one"));
      t.same(after, [], `${JSON.stringify(fault)} ${JSON.stringify(freshness)}`);
    }
  };
  await Promise.all(FRESHNESS.map(play));
});

t.test("if an origin has gone, chunks are failures, and metadata is served", async (t) => {
  const origin = await startStores(t);
  const server = await serveStores(t, { one: origin }, "always");
  await origin.stop();
  const answers = await Promise.all(chunksOf("one").map(({ path }) => server.get(path)));
  t.same(new Set(answers.map(({ status }) => status)), new Set([500]));
  const absent = await server.get("/datasets/one-files-stored/zarr/v/7");
  t.equal(absent.status, 500, "it is not known whether it is absent");
  t.notMatch(await absent.text(), String(origin.port));
  t.equal((await server.get("/datasets/one-files-stored/zarr/.zmetadata")).status, 200);
  t.equal((await server.get("/datasets/one-shards-stored/zarr/.zmetadata")).status, 200);
});

t.test("chunks of an object that changes are never made of two versions of it", async (t) => {
  const origin = await startStores(t);
  const server = await serveStores(t, { one: origin }, "always");
  const seen = new Set<string>();
  const problems: string[] = [];
  for (let round = 0; round < 60; round++) {
    const letter = String.fromCharCode(65 + (round % 26));
    // A version at once, and one in the middle of the requests.
    origin.put("shards/v/c/0", shardOf(Array.from({ length: 4 }, () => letter.repeat(8))));
    const next = String.fromCharCode(65 + ((round + 13) % 26));
    let count = 0;
    origin.setFault(() => {
      if (++count === 2) origin.put("shards/v/c/0", shardOf(Array.from({ length: 4 }, () => next.repeat(8))));
      return undefined;
    });
    const paths = [0, 1].map((key) => `/datasets/one-shards-doubled/zarr/v/${key}`);
    for (const answer of await Promise.all(paths.map((path) => server.get(path)))) {
      const body = await answer.text();
      if (answer.status === 200) seen.add(body[0] as string);
      if (answer.status === 200 ? !/^([A-Z])\1{15}$/.test(body) : answer.status !== 503)
        problems.push(`${answer.status} ${body}`);
    }
  }
  t.same(problems, []);
  t.ok(seen.size > 10, `${seen.size} versions`);
});
