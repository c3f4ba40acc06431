import fc from "fast-check";
import t from "tap";
import { parseRange, resolveRange } from "../../../src/http/headers.js";

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
