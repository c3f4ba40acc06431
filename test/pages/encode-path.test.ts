import t from "tap";
import { encodePath, encodeSegment } from "../../src/pages/page.js";

t.test("characters that have a meaning in a URL or end a link are encoded", async (t) => {
  t.equal(encodeSegment("a b"), "a%20b");
  t.equal(encodeSegment("a/b"), "a%2Fb");
  t.equal(encodeSegment("x:y?#%&'\"(1)"), "x%3Ay%3F%23%25%26%27%22%281%29");
  t.equal(encodeSegment("é日"), "%C3%A9%E6%97%A5");
});

t.test("any name is the same after decoding", async (t) => {
  for (const name of ["a'b", "日本", "100%", "-_.~", "a+b"]) {
    t.equal(decodeURIComponent(encodeSegment(name)), name);
  }
});

t.test("half a character becomes a replacement instead of an exception", async (t) => {
  t.equal(decodeURIComponent(encodeSegment("\ud800")), "\ufffd");
});

t.test("the slashes of a path stay", async (t) => {
  t.equal(encodePath("/a b/c"), "/a%20b/c");
});
