import t from "tap";
import { combineVersions } from "../../../src/zarr/plan/create-encoding-plan.js";

t.test("one version stays itself, several become one short text", async (t) => {
  t.equal(combineVersions(["a.1"]), "a.1");
  t.match(combineVersions([undefined]), /^[0-9a-z.]+$/);
  const several = combineVersions(["a.1", undefined, "b.2"]);
  t.match(several, /^[0-9a-z]{20}$/);
  t.equal(combineVersions(["a.1", undefined, "b.2"]), several);
  t.not(combineVersions(["a.1", "b.2", undefined]), several);
  t.not(combineVersions(["a.1", "b.2"]), several);
});
