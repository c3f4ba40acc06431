import fc from "fast-check";
import { LosslessNumber } from "lossless-json";
import t from "tap";
import { runNow } from "../../src/event-loop/cooperative-task.js";
import {
  isJsonArray,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  toBigInt,
  toNumber,
} from "../../src/json/json-value.js";
import { parseJson, parseJsonAround } from "../../src/json/parse-json.js";
import {
  pythonFloat,
  pythonString,
  shortestFloat,
  stringifyJson,
  stringifyJsonPieces,
} from "../../src/json/stringify-json.js";
import { askPython } from "../support/clients/ask-python.js";
import { clientMissing } from "../support/clients/require-client.js";
import { effort } from "../support/effort.js";

t.test("numbers keep every digit and the way they were written", async (t) => {
  t.equal(parseJson("1"), 1);
  t.equal(parseJson("-0.5"), -0.5);
  t.equal(parseJson("-9223372036854775808"), -(2n ** 63n));
  t.equal(parseJson("18446744073709551615"), 2n ** 64n - 1n);
  t.equal(parseJson("9007199254740992"), 2n ** 53n);
  for (const text of ["1.0", "1e-05", "-0", "-0.0", "1E5", "1e400", "0.10", "3.141592653589793238462"]) {
    const value = parseJson(text);
    t.ok(value instanceof LosslessNumber, text);
    t.equal(stringifyJson(value), text);
  }
});

t.test("bare NaN and infinities are numbers, in strings they stay text", async (t) => {
  t.same(parseJson('[NaN, Infinity, -Infinity, "NaN", "a\\"NaN", {"NaN":NaN}]'), [
    Number.NaN,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    "NaN",
    'a"NaN',
    { NaN: Number.NaN },
  ]);
  t.equal(stringifyJson(parseJson("[NaN,Infinity,-Infinity]")), '["NaN","Infinity","-Infinity"]');
});

t.test("the last of several equal keys wins", async (t) => {
  t.same(parseJson('{"a":1,"b":2,"a":3}'), { a: 3, b: 2 });
});

t.test("a key __proto__ is a key like any other", async (t) => {
  const value = parseJson('{"__proto__":{"polluted":1},"constructor":2}') as Record<string, unknown>;
  t.equal(Object.getPrototypeOf(value), Object.prototype);
  t.same(Object.keys(value), ["__proto__", "constructor"]);
  t.equal(({} as Record<string, unknown>).polluted, undefined);
  t.equal(stringifyJson(value as never), '{"__proto__":{"polluted":1},"constructor":2}');
});

t.test("what is no JSON is refused with its place", async (t) => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ["", /expected a JSON value at line 1, column 1, received the end of the document/],
    ["\ufeff{}", /without a byte order mark/],
    ['{"a":1,\n "b":}', /expected a JSON value at line 2, column 6, received "}"/],
    ["[1,]", /expected a JSON value/],
    ['{"a":1,}', /expected a key in double quotes/],
    ["{a:1}", /expected a key in double quotes/],
    ["[1 2]", /expected "," or "\]"/],
    ["01", /expected the end of the document/],
    ["1.", /expected the end of the document/],
    ["+1", /expected a JSON value/],
    ["-", /expected a JSON value/],
    [".5", /expected a JSON value/],
    ["nan", /expected a JSON value/],
    ["NaNs", /expected the end of the document/],
    ["--Infinity", /expected a JSON value/],
    ['"a', /expected '"'/],
    ['"a\nb"', /no control character/],
    ['"\\x"', /an escape sequence/],
    ['"\\u12g4"', /four hexadecimal digits/],
    ["\u00a01", /expected a JSON value/],
  ];
  for (const [text, message] of cases) {
    t.throws(() => parseJson(text), { code: "invalid-metadata", message }, JSON.stringify(text));
  }
});

t.test("a document nested without end is refused, not a stack overflow", async (t) => {
  t.throws(() => parseJson("[".repeat(1_000_000)), { message: /at most 500 nested levels/ });
  t.throws(() => parseJson('{"a":'.repeat(1_000_000)), { message: /at most 500 nested levels/ });
});

t.test("parses everything JSON.parse does, to the same", async () => {
  fc.assert(
    fc.property(fc.json({ stringUnit: "binary" }), fc.constantFrom(undefined, 1, 2), (text, indent) => {
      const plain = JSON.parse(text);
      const value = parseJson(JSON.stringify(plain, null, indent));
      return JSON.stringify(JSON.parse(stringifyJson(value))) === JSON.stringify(plain);
    }),
  );
});

t.test("refuses what JSON.parse refuses, apart from bare numbers", async () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom(...'[]{},:"\\u0123e.-+ \n\ttrufalsn') as never, maxLength: 12 }),
      (text) => {
        let isJson = true;
        try {
          JSON.parse(text);
        } catch {
          isJson = false;
        }
        try {
          parseJson(text);
          return isJson;
        } catch {
          return !isJson;
        }
      },
    ),
    { numRuns: effort(10_000) },
  );
});

t.test("numbers are told from other values", async (t) => {
  t.equal(toNumber(parseJson("1.0")), 1);
  t.equal(toNumber(2n), 2);
  t.equal(toNumber("2"), undefined);
  t.equal(toBigInt(parseJson("1e3")), 1000n);
  t.equal(toBigInt(parseJson("1.5")), undefined);
  t.equal(toBigInt(1.5), undefined);
  t.equal(toBigInt(parseJson("-0")), 0n);
  t.equal(toBigInt(null), undefined);
  t.notOk(isJsonObject(parseJson("1.0")));
  t.notOk(isJsonObject([]));
  t.ok(isJsonObject({}));
  t.ok(isJsonArray([]));
});

/** What a way of parsing says of a text: the value as text again, or what is wrong. */
function outcome(parse: () => JsonValue): string {
  try {
    return stringifyJson(parse());
  } catch (error) {
    return (error as Error).message;
  }
}

/** With one character gone, doubled or replaced: mostly no JSON any more. */
const damagedJson = fc
  .tuple(fc.json({ stringUnit: "binary" }), fc.nat(), fc.constantFrom("", "{", '"', "\\", "0", "\n", "NaN"))
  .map(([text, place, put]) => {
    const at = place % (text.length + 1);
    return text.slice(0, at) + put + text.slice(at + 1);
  });

t.test("in steps it parses and refuses the same", async () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.json(), damagedJson),
      (text) =>
        outcome(() => runNow(parseJsonAround(text, "no such entry"))) === outcome(() => parseJson(text)),
    ),
    { numRuns: effort(5_000) },
  );
});

t.test("an object that is left out is checked all the same, and its entries are where it says", async (t) => {
  fc.assert(
    fc.property(fc.oneof(fc.json(), damagedJson), fc.boolean(), (inner, isFirst) => {
      const text = isFirst ? `{"left": ${inner}, "more": [1]}` : `{"more": [1], "left": ${inner}}`;
      const entries: [string, JsonValue][] = [];
      const parsed = outcome(() => {
        const json = runNow(
          parseJsonAround(text, "left", (key, start, end) => {
            entries.push([key, parseJson(text.slice(start, end))]);
          }),
        );
        const left = entries.length === 0 ? {} : { left: Object.fromEntries(entries) };
        return { ...(json as JsonObject), ...left };
      });
      return parsed === outcome(() => parseJson(text));
    }),
    { numRuns: effort(5_000) },
  );
  t.same(runNow(parseJsonAround('{"left": [1], "a": null}', "left")), { left: [1], a: null });
  t.same(runNow(parseJsonAround("[1]", "left")), [1]);
});

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

t.test("floats of 4 bytes have as few digits as read as the same float", async (t) => {
  const texts = [
    "0.1",
    "-0.3",
    "273.15",
    "101325",
    "999999.94",
    "0.0001",
    "9999999",
    "1e-30",
    "0.00012345679",
    "16777216",
  ];
  // A double that is no float of that size keeps nine digits.
  t.equal(shortestFloat(0.1 + 0.2, 4), 0.3);
  t.equal(shortestFloat(1 / 3, 4), 0.333333333);
  for (const text of texts) t.equal(shortestFloat(Math.fround(Number(text)), 4), Number(text), text);
  const words = new Uint32Array(1);
  const [float] = [new Float32Array(words.buffer)];
  for (let index = 0; index < 50_000; index++) {
    words[0] = Math.imul(index, 0x9e3779b1);
    const value = float[0]!;
    if (!Number.isFinite(value)) continue;
    let digits = 1;
    while (Math.fround(Number(value.toPrecision(digits))) !== value) digits++;
    const expected = Number(value.toPrecision(digits));
    if (shortestFloat(value, 4) !== expected) t.equal(shortestFloat(value, 4), expected);
  }
});
