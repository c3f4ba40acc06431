import t from "tap";
import { allowsRange, matchIfMatch, matchIfNoneMatch } from "../../../src/http/headers.js";

t.test("If-None-Match compares weakly, in lists of any form", async (t) => {
  for (const header of ['"a"', 'W/"a"', '"x", "a"', '"x","a" , "y"', ', "a",', '"x,y", W/"a"', ' "a" ']) {
    t.equal(matchIfNoneMatch(header, '"a"'), "match", header);
  }
  for (const header of ["", "a", '"A"', '"x"', '"a', 'w/"a"', '"x" "a"', '"a"b', ",,,", '"x, "a"']) {
    t.equal(matchIfNoneMatch(header, '"a"'), "no-match", header);
  }
  t.equal(matchIfNoneMatch(" * ", '"a"'), "any");
  t.equal(matchIfNoneMatch('"*"', '"a"'), "no-match");
});

t.test("If-Match compares strongly", async (t) => {
  t.equal(matchIfMatch('"x", "b"', ['"a"', '"b"']), "match");
  t.equal(matchIfMatch('W/"a"', ['"a"']), "no-match");
  t.equal(matchIfMatch("*", ['"a"']), "any");
  t.equal(matchIfMatch("", ['"a"']), "no-match");
});

t.test("If-Range lets a range be sent for the same strong tag only, never for a date", async (t) => {
  t.ok(allowsRange('"a"', '"a"'));
  for (const header of ['W/"a"', '"b"', '"a", "b"', "*", "Fri, 20 Nov 2026 12:47:59 GMT", ""]) {
    t.notOk(allowsRange(header, '"a"'), header);
  }
});

t.test("does not take long over long nonsense", async (t) => {
  const began = performance.now();
  for (const header of [`${" ,".repeat(8000)}x`, `"${"a".repeat(16000)}`, '"a"'.repeat(5000)]) {
    t.equal(matchIfNoneMatch(header, '"z"'), "no-match");
  }
  t.ok(performance.now() - began < 1000);
});
