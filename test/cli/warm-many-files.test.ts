import { join } from "node:path";
import t from "tap";
import { runProgram } from "../support/servers/run-program.js";
import { countsOf, hitsAt, serve } from "../support/warm-store.js";
import { writeZarrPart } from "../support/write-parts.js";
import { makeDirectory, writeFiles } from "../support/write-store.js";

/** Arrays of a part: `area`, `time`, `v` with two chunks, and `y`. */
const CHUNKS = ["area/0.0", "time/0", "v/0.0", "v/1.0", "y/0"];

t.test("joined files and datasets of a collection are warmed, and served from the cache", async (t) => {
  const directory = await makeDirectory(t);
  const root = join(directory, "data");
  for (const [index, name] of ["a.zarr", "2024/b.zarr"].entries())
    await writeZarrPart(root, name, { first: 3 * index, count: 3 });
  await writeFiles(root, { "broken.zarr/.zgroup": "{" });
  const encoding = { compressor: { id: "gzip", level: 1 } };
  await writeFiles(directory, {
    "config.json": {
      datasets: { all: { location: "data/**/{a,b}.zarr", concat: "time", encoding } },
      collections: { each: { root: "data", encoding } },
    },
  });
  const args = ["--config", join(directory, "config.json"), "--cache-dir", join(directory, "cache")];
  const warm = (...more: readonly string[]) => runProgram(["warm", ...args, ...more]);

  const one = await warm("--dataset", "each~2024~b.zarr");
  t.match(one, { code: 0 });
  t.match(countsOf(one.stdout), { made: CHUNKS.length, cached: 0, failed: 0 });
  const all = await warm();
  t.equal(all.code, 0, all.stderr);
  // Of six steps in chunks of two, three chunks are made of both files or of parts of one.
  t.match(countsOf(all.stdout), { made: CHUNKS.length + 6, cached: CHUNKS.length, failed: 0 });
  t.match(all.stderr, /each~broken\.zarr/, "one that cannot be opened is left out, and named");

  const { run, url } = await serve(args);
  for (const id of ["each~a.zarr", "each~2024~b.zarr"])
    t.same(await hitsAt(url, CHUNKS, `datasets/${id}/zarr`), CHUNKS);
  const ofAll = ["area/0.0", "time/0", "v/0.0", "v/1.0", "v/2.0", "y/0"];
  t.same(await hitsAt(url, ofAll, "datasets/all/zarr"), ofAll);
  run.child.kill("SIGTERM");
  t.equal(await run.ended, 0);

  const wrong = await warm("--dataset", "each~absent");
  t.equal(wrong.code, 2);
  t.match(wrong.stderr, /--dataset: expected one of all, each~2024~b\.zarr, .*, received each~absent\n/);
  const tooMany = await warm("--max-open-datasets", "2");
  t.equal(tooMany.code, 2);
  t.match(tooMany.stderr, /expected ids of at most 2 datasets of collections .*, received 3\n/);
});
