import fc from "fast-check";
import { LosslessNumber } from "lossless-json";
import t from "tap";
import type { JsonValue } from "../../src/json/json-value.js";
import { parseJson } from "../../src/json/parse-json.js";
import {
  pythonFloat,
  pythonString,
  stringifyJson,
  stringifyJsonPieces,
} from "../../src/json/stringify-json.js";
import { askPython } from "../support/clients/ask-python.js";
import { clientMissing } from "../support/clients/require-client.js";

t.test("writes strict JSON", async (t) => {
  t.equal(
    stringifyJson({
      a: [1, 2n ** 63n, new LosslessNumber("1.0"), null, true],
      'q"': "\u2028\ud800",
      e: {},
      f: [],
    }),
    '{"a":[1,9223372036854775808,1.0,null,true],"q\\"":"\\u2028\\ud800","e":{},"f":[]}',
  );
  t.equal(stringifyJson(-0), "-0.0");
});

t.test("writes ASCII, as zarr-python 2 decodes metadata as that", async (t) => {
  t.equal(stringifyJson({ é: "°C \u{1f30a}\u007f" }), '{"\\u00e9":"\\u00b0C \\ud83c\\udf0a\\u007f"}');
});

t.test("indents like JSON.stringify", async (t) => {
  const value = { a: [1, [2, {}], []], b: { c: "d" }, e: {} };
  t.equal(stringifyJson(value, 2), JSON.stringify(value, null, 2));
  t.equal(stringifyJson(value, 4), JSON.stringify(value, null, 4));
});

t.test("refuses what is no JSON", async (t) => {
  t.throws(() => stringifyJson({ a: undefined } as never), TypeError);
  t.throws(() => stringifyJson([() => 1] as never), TypeError);
});

const number = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }).filter((n) => !Number.isSafeInteger(Number(n))),
  fc.integer(),
  fc.constantFrom("1.0", "-0", "1e-05", "1E+400", "0.1000").map((text) => new LosslessNumber(text)),
);
const { value: anyJson } = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom(null, true, false),
    fc.string({ unit: "binary" }),
    number,
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(fc.string({ unit: "grapheme" }), tie("value"), { maxKeys: 4 }),
  ),
}));

t.test("what is written reads back as the same text", async () => {
  fc.assert(
    fc.property(anyJson, (value) => {
      const text = stringifyJson(value);
      return (
        stringifyJson(parseJson(text)) === text && stringifyJson(parseJson(stringifyJson(value, 2))) === text
      );
    }),
  );
});

t.test("pieces add up to the same text", async (t) => {
  fc.assert(
    fc.property(anyJson, (value) => [...stringifyJsonPieces(value)].join("") === stringifyJson(value)),
  );
  const list = Array.from({ length: 10_000 }, (_, index) => index);
  const attrs = { list, nested: [list, {}], text: "x".repeat(10_000), empty: [], none: {} };
  const large = { metadata: { "a/.zattrs": attrs, "b/.zattrs": attrs }, last: [{ a: { list } }, Number.NaN] };
  const pieces = [...stringifyJsonPieces(large)];
  t.equal(pieces.join(""), stringifyJson(large));
  t.ok(pieces.length > 30 && pieces.every((piece) => piece.length < 20_000), "none of which is long");
  t.throws(() => [...stringifyJsonPieces({ a: { b: undefined } } as never)], TypeError);
});

t.test("floats and texts come out as Python writes them", { skip: clientMissing("zarr") }, async (t) => {
  const floats = [
    0, -0, 1, 0.1, 1e16, 123456789012345680, 1e15, 1e-4, 1e-5, 5e-324, 1.7976931348623157e308, -2.5, 1e22,
  ];
  const random = fc.sample(fc.double({ noNaN: true, noDefaultInfinity: true }), 300);
  const strings = ["a", "it's", '"', "'\"", "\\\n\t\r\u0000\u007f\u00a0é\u200b\u2028😀", "中"];
  const bits = [...floats, ...random].map((value) => {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleBE(value);
    return bytes.toString("hex");
  });
  const program = `
import json, struct, sys
bits, texts = json.load(sys.stdin)
print(json.dumps([[repr(struct.unpack(">d", bytes.fromhex(b))[0]) for b in bits], [repr(s) for s in texts]]))`;
  const [expectedFloats, expectedStrings] = JSON.parse(askPython(program, [bits, strings]));
  t.same(
    [...floats, ...random].map((value) => stringifyJson(pythonFloat(value))),
    expectedFloats,
  );
  t.same(strings.map(pythonString), expectedStrings);
  t.same([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY].map(pythonFloat), [
    "NaN",
    "Infinity",
    "-Infinity",
  ]);
});
