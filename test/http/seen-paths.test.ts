import t from "tap";
import { createSeenPaths } from "../../src/http/seen-paths.js";

t.test("says what was asked for lately, and nothing else", async (t) => {
  const seen = createSeenPaths(1_024);
  t.notOk(seen.note("/a/0.0"));
  t.ok(seen.note("/a/0.0"));
  t.notOk(seen.note("/a/0.1"));
  t.notOk(seen.note(""));
  let known = 0;
  for (let i = 0; i < 20_000; i++) if (seen.note(`/datasets/d/zarr/v/${i}.${i % 7}`)) known++;
  t.equal(known, 0);
  t.notOk(seen.note("/a/0.0"), "long ago");
});
