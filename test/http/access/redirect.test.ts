import fc from "fast-check";
import t from "tap";
import { locationWithSlash } from "../../../src/http/access/forwarded.js";

t.test("adds a slash and keeps the query", async (t) => {
  t.equal(locationWithSlash("/data/datasets/x", ""), "/data/datasets/x/");
  t.equal(locationWithSlash("/datasets/x", "a=1&b=%20"), "/datasets/x/?a=1&b=%20");
  t.equal(locationWithSlash("/datasets/%C3%A9", ""), "/datasets/%C3%A9/");
  t.equal(locationWithSlash("/datasets/é", ""), "/datasets/%C3%A9/");
});

t.test("never leads to another host, and is always printable ASCII", async (t) => {
  const base = "http://here.example:9000/some/where";
  for (const path of ["//evil.example/x", "/\\evil.example/x", "///evil.example", "/\\/evil.example"]) {
    t.equal(new URL(locationWithSlash(path, ""), base).host, "here.example:9000", path);
  }
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.string({ unit: "grapheme" }), (path, query) => {
      const location = locationWithSlash(`/${path}`, query);
      return /^[\x21-\x7e]+$/.test(location) && new URL(location, base).host === "here.example:9000";
    }),
  );
});
