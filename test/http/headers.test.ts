import fc from "fast-check";
import t from "tap";
import { createCors, type HeaderLines } from "../../src/http/headers.js";
import {
  allowsRange,
  matchIfMatch,
  matchIfNoneMatch,
  negotiateCoding,
  parseRange,
  resolveRange,
} from "../../src/http/representation.js";
import { processorMs } from "../support/processor-time.js";

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
  const began = processorMs();
  for (const header of [`${" ,".repeat(8000)}x`, `"${"a".repeat(16000)}`, '"a"'.repeat(5000)]) {
    t.equal(matchIfNoneMatch(header, '"z"'), "no-match");
  }
  for (const text of [",", " ", ";", "9", "0-0,", "q=", "gzip,", "br;q=0.1,", '"', "W/", "x"]) {
    const header = text.repeat(8_000);
    const range = parseRange(`bytes=${header}-`);
    t.equal(range && resolveRange(range, 10), undefined, text);
    t.ok(["br", "gzip", "identity"].includes(negotiateCoding(header)));
    t.equal(matchIfMatch(header, ['"z"']), "no-match");
  }
  t.ok(processorMs() - began < 1000);
});

function allowed(lines: HeaderLines | undefined): string | undefined {
  return lines?.find(([name]) => name === "Access-Control-Allow-Origin")?.[1];
}

t.test("allows any origin, one, or those of a list", async (t) => {
  const any = createCors("*");
  t.equal(allowed(any.lines), "*");
  t.notOk(any.variesByOrigin);
  const one = createCors("https://a.example");
  t.equal(allowed(one.lines), "https://a.example");
  t.ok(one.variesByOrigin);
  const { lines, byOrigin } = createCors("https://a.example, https://b.example:8080");
  t.equal(allowed(byOrigin.get("https://b.example:8080")), "https://b.example:8080");
  t.equal(byOrigin.get("https://c.example"), undefined);
  t.equal(allowed(lines), undefined);
  t.equal(allowed(createCors("").lines), undefined);
});

t.test("refuses what is no origin", async (t) => {
  for (const origin of [
    "example.org",
    "https://a.example/",
    "*, https://a.example",
    "https://a\r\nX: y",
    "a b",
  ]) {
    t.throws(() => createCors(origin), { code: "invalid-config", message: /^CORS origin: expected/ }, origin);
  }
});

t.test("sends the coding a client weighs most, brotli before gzip before none", async (t) => {
  for (const [header, expected] of [
    [undefined, "identity"],
    ["", "identity"],
    ["gzip, deflate, br", "br"],
    ["gzip, deflate", "gzip"],
    ["x-gzip", "gzip"],
    ["GZIP", "gzip"],
    ["deflate", "identity"],
    ["*", "br"],
    ["br;q=0, *", "gzip"],
    ["*;q=0", "identity"],
    ["br;q=0.5, gzip;q=0.8", "gzip"],
    ["br; q=0.5 , gzip ; q=0.500", "br"],
    ["gzip;q=0.5, identity", "identity"],
    ["gzip;q=0", "identity"],
    ["identity;q=0", "identity"],
    ["identity;q=0, gzip;q=0.001", "gzip"],
    ["br;q=2, gzip;q=abc, ;q=1, ,", "identity"],
    ["br;q=1.000", "br"],
  ] as const) {
    t.equal(negotiateCoding(header), expected, header ?? "no header");
    t.equal(negotiateCoding(header), expected, "remembered");
  }
});

t.test("remembers a bounded number of headers", async (t) => {
  for (let i = 0; i < 1000; i += 1) t.equal(negotiateCoding(`gzip, x${i}`), "gzip");
});

/** The part of 10 bytes a header asks for: `whole`, `none`, or `start+byteLength`. */
function partOfTen(header: string, total = 10): string {
  const range = parseRange(header);
  if (range === undefined) return "whole";
  const part = resolveRange(range, total);
  return part === undefined ? "none" : `${part.start}+${part.byteLength}`;
}

t.test("understands single ranges of bytes and clamps their end", async (t) => {
  for (const [header, expected] of [
    ["bytes=0-0", "0+1"],
    ["bytes=2-5", "2+4"],
    ["bytes=2-", "2+8"],
    ["bytes=9-9", "9+1"],
    ["bytes=0-99", "0+10"],
    ["bytes=0-18446744073709551615", "0+10"],
    ["bytes=-3", "7+3"],
    ["bytes=-10", "0+10"],
    ["bytes=-99", "0+10"],
    ["Bytes=1-2", "1+2"],
    ["bytes= 1-2 ", "1+2"],
    ["bytes=10-", "none"],
    ["bytes=10-20", "none"],
    ["bytes=99999999999999999999-", "none"],
    ["bytes=-0", "none"],
  ] as const) {
    t.equal(partOfTen(header), expected, header);
  }
});

t.test("ignores what is no single range of bytes", async (t) => {
  for (const header of [
    "",
    "bytes",
    "bytes=",
    "bytes=-",
    "bytes=5-2",
    "bytes=0-1,3-4",
    "bytes=a-b",
    "bytes=1-2x",
    "items=0-1",
    "bytes=1",
    "bytes=--1",
    "bytes=1.5-2",
    "bytes=0x1-2",
    "bytes=+1-2",
  ]) {
    t.equal(partOfTen(header), "whole", JSON.stringify(header));
  }
});

t.test("has no part of nothing", async (t) => {
  for (const header of ["bytes=0-", "bytes=0-0", "bytes=-1"]) t.equal(partOfTen(header, 0), "none", header);
});

t.test("never leaves the body, whatever is asked", async () => {
  fc.assert(
    fc.property(
      fc.nat(),
      fc.nat(),
      fc.nat({ max: 1000 }),
      fc.constantFrom("a-b", "a-", "-b"),
      (a, b, total, form) => {
        const range = parseRange(`bytes=${form.replace("a", String(a)).replace("b", String(b))}`);
        const part = range === undefined ? undefined : resolveRange(range, total);
        return (
          part === undefined ||
          (part.byteLength > 0 && part.start >= 0 && part.start + part.byteLength <= total)
        );
      },
    ),
  );
});
