import { mkdirSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { killChildren } from "../../bench/children.js";
import { openFieldStore } from "../../bench/data/bench-data.js";
import { askAtOnce, type RawAnswer } from "../../bench/load/raw-http.js";
import { withZpublish } from "../../bench/start-zpublish.js";
import { checkDecoded } from "../../bench/subjects/check-answers.js";
import { storePath } from "../../bench/subjects/subject.js";

t.setTimeout(120_000);
t.teardown(killChildren);

const AT_ONCE = 128;
const CHUNKS = 4;
const root = t.testdir({});

/** Tells one encode from another: answers of one encode carry the same times, to the microsecond. */
function encodeOf({ headers }: RawAnswer): string | undefined {
  return /read;dur.*encode;dur=[\d.]+/.exec(headers.get("server-timing") ?? "")?.[0];
}

t.test("a chunk that many ask for at once is encoded once", async (t) => {
  const store = await openFieldStore("mib", 512, 1, () => {}, join(root, "data"));
  const datasets = {
    [store.id]: { location: store.directory, encoding: { compressor: { id: "zstd", level: 3 } } },
  };
  const keys = store.chunkKeys.slice(0, CHUNKS);
  const start = (name: string, args: readonly string[], use: (baseUrl: string) => Promise<void>) => {
    const scratch = join(root, name);
    mkdirSync(scratch);
    return withZpublish({ datasets, scratch, args }, ({ baseUrl }) => use(baseUrl));
  };
  await start("burst", [], async (baseUrl) => {
    for (const key of keys) {
      const answers = await askAtOnce(baseUrl, storePath(store, key), AT_ONCE);
      t.ok(answers.every(({ status, body }) => status === 200 && body.equals(answers[0]!.body)));
      const made = answers.filter(({ headers }) => headers.get("x-cache") === "MISS");
      const cached = answers.filter(({ headers }) => headers.get("x-cache") === "HIT");
      t.equal(made.length + cached.length, AT_ONCE);
      t.equal(new Set(made.map(encodeOf)).size, 1, `${key}: ${made.length} answers of one encode`);
    }
    await checkDecoded(baseUrl, store, keys);
  });
  // The control: without a cache, each request that comes alone is an encode of its own.
  await start("control", ["--no-cache"], async (baseUrl) => {
    const encodes = new Set<string | undefined>();
    for (const key of [...keys, ...keys])
      encodes.add(encodeOf((await askAtOnce(baseUrl, storePath(store, key), 1))[0]!));
    t.equal(encodes.size, 2 * CHUNKS);
    t.notOk(encodes.has(undefined));
  });
});
