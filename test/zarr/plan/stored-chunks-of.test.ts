import t from "tap";
import { combineStamps } from "../../../src/zarr/plan/stored-chunks-of.js";

t.test("one stamp stays itself, several become one short text", async (t) => {
  t.equal(combineStamps(["a.1"]), "a.1");
  t.match(combineStamps([undefined]), /^[0-9a-z.]+$/);
  const several = combineStamps(["a.1", undefined, "b.2"]);
  t.match(several, /^[0-9a-z]{20}$/);
  t.equal(combineStamps(["a.1", undefined, "b.2"]), several);
  t.not(combineStamps(["a.1", "b.2", undefined]), several);
  t.not(combineStamps(["a.1", "b.2"]), several);
});
