import { LosslessNumber } from "lossless-json";
import t from "tap";
import { formatAttribute, formatCodec, formatFillValue } from "../../src/pages/variable-row.js";

t.test("text and numbers are shown as they are, with every digit", async (t) => {
  t.equal(formatAttribute("degK"), "degK");
  t.equal(formatAttribute(-9223372036854775808n), "-9223372036854775808");
  t.equal(formatAttribute(new LosslessNumber("1.0")), "1.0");
  t.equal(formatAttribute(Number.NaN), "NaN");
  t.equal(formatAttribute(-0), "-0");
  t.equal(formatAttribute(null), "null");
  t.equal(formatAttribute(false), "false");
});

t.test("lists of numbers have commas, all else is JSON", async (t) => {
  t.equal(formatAttribute([1, new LosslessNumber("2.50"), Number.POSITIVE_INFINITY]), "1, 2.50, Infinity");
  t.equal(formatAttribute(["a", "b"]), '["a","b"]');
  t.equal(formatAttribute([]), "[]");
  t.equal(formatAttribute({ a: 1 }), '{"a":1}');
  t.match(formatAttribute({ key: "x".repeat(100) }), /\n {2}"key"/, "long JSON is indented");
});

t.test("a codec is its id and its parameters", async (t) => {
  t.equal(formatCodec({ id: "zlib", level: 1 }), "zlib (level 1)");
  t.equal(formatCodec({ id: "vlen-utf8" }), "vlen-utf8");
});

t.test("a missing fill value is none", async (t) => {
  t.equal(formatFillValue(null), "none");
  t.equal(formatFillValue("NaN"), "NaN");
  t.equal(formatFillValue(0), "0");
});
