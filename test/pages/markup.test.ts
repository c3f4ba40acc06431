import { LosslessNumber } from "lossless-json";
import t from "tap";
import {
  encodePath,
  encodeSegment,
  escapeHtml,
  formatByteLength,
  formatCount,
  formatCounted,
  markup,
  NO_MARKUP,
  trustedMarkup,
} from "../../src/pages/page.js";
import { createPageBudget } from "../../src/pages/page-place.js";
import {
  codecText,
  formatAttribute,
  formatFillValue,
  formatPreview,
  renderChunkDiagram,
  renderVariableRow,
} from "../../src/pages/variable-row.js";
import { type FakeVariable, fakeSnapshot } from "../support/datasets/fake-snapshot.js";

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

t.test("bytes are written in binary units with three digits", async (t) => {
  const expected: readonly [number, string][] = [
    [0, "0 B"],
    [1023, "1023 B"],
    [1024, "1.00 KiB"],
    [1536, "1.50 KiB"],
    [10 * 1024, "10.0 KiB"],
    [100 * 1024 ** 2, "100 MiB"],
    [1024 ** 2 - 1, "1.00 MiB"],
    [1.45 * 1024 ** 3, "1.45 GiB"],
    [3 * 1024 ** 5, "3.00 PiB"],
    [1e30, "827181 YiB"],
  ];
  for (const [byteLength, text] of expected) t.equal(formatByteLength(byteLength), text);
});

t.test("counts have commas, and nouns their plural", async (t) => {
  t.equal(formatCount(2920), "2,920");
  t.equal(formatCounted(1, "chunk"), "1 chunk");
  t.equal(formatCounted(12345, "chunk"), "12,345 chunks");
});

function borders(svg: string): number {
  return (/<path class="line" d="([^"]*)"/.exec(svg)?.[1] ?? "").split("M").length - 1;
}

t.test("scalars and empty arrays have no diagram", async (t) => {
  t.equal(renderChunkDiagram([], [], []).html, "");
  t.equal(renderChunkDiagram(["x"], [0], [1]).html, "");
});

t.test("there is one line per border between chunks", async (t) => {
  t.equal(borders(renderChunkDiagram(["x"], [10], [10]).html), 0);
  t.equal(borders(renderChunkDiagram(["x"], [10], [4]).html), 2);
  t.equal(borders(renderChunkDiagram(["y", "x"], [10, 10], [5, 3]).html), 4);
});

t.test("a million chunks are drawn as a few", async (t) => {
  const svg = renderChunkDiagram(["time", "y", "x"], [1e6, 1e5, 1e5], [1, 1, 1]).html;
  t.ok(borders(svg) <= 24 * 5);
  t.ok(svg.length < 8_000);
});

t.test("of many dimensions the last three are drawn, named and escaped", async (t) => {
  const svg = renderChunkDiagram(["run", "<t>", "y", "x"], [2, 3, 4, 5], [1, 1, 4, 5]).html;
  t.match(svg, "&lt;t&gt; 3");
  t.notMatch(svg, "run");
  t.notMatch(svg, /NaN|Infinity|undefined/);
});

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
  t.equal(codecText({ id: "zlib", level: 1 }), "zlib (level 1)");
  t.equal(codecText({ id: "vlen-utf8" }), "vlen-utf8");
});

t.test("a missing fill value is none", async (t) => {
  t.equal(formatFillValue(null), "none");
  t.equal(formatFillValue("NaN"), "NaN");
  t.equal(formatFillValue(0), "0");
});

t.test("values of a template are escaped, markup in it is not", async (t) => {
  const inner = markup`<b>${"<i>"}</b>`;
  t.equal(
    markup`<p title="${'"quoted"'}">${inner}${["a&", trustedMarkup("<br>")]}</p>`.html,
    '<p title="&quot;quoted&quot;"><b>&lt;i&gt;</b>a&amp;<br></p>',
  );
});

t.test("undefined and false are omitted, zero is not", async (t) => {
  t.equal(markup`[${undefined}${false}${[]}${NO_MARKUP}${0}${""}]`.html, "[0]");
});

t.test("quotes of both kinds are escaped", async (t) => {
  t.equal(escapeHtml(`"'`), "&quot;&#39;");
});

t.test(
  "controls, direction overrides, lone surrogates and noncharacters are shown, not obeyed",
  async (t) => {
    t.equal(escapeHtml("a\u0000b\u001bc\u007f\r"), "a\\u0000b\\u001bc\\u007f\\u000d");
    t.equal(escapeHtml("\u202egnp.exe\u2066\u2028"), "\\u202egnp.exe\\u2066\\u2028");
    t.equal(escapeHtml("\ud800 \ufdd0 \ufdd1"), "\\ud800 \\ufdd0 \\ufdd1");
  },
);

t.test("line breaks, tabs and letters of all scripts stay", async (t) => {
  const text = "line\n\ttab é 日本 طهران 👩‍🚀";
  t.equal(escapeHtml(text), text);
});

function rowOf(variable: FakeVariable): string {
  const array = fakeSnapshot("d", { variables: { v: variable } }).arrays.get("v");
  if (array === undefined) throw new Error("expected the variable");
  const budget = { ...createPageBudget(), detailedVariables: 0 };
  return renderVariableRow(
    { variable: array.variable, array, preview: undefined, picture: NO_MARKUP, code: () => NO_MARKUP },
    budget,
  ).html;
}

t.test("a row without values shows shape and chunks", async (t) => {
  const dims = ["time", "x"];
  t.match(rowOf({ dims, shape: [2920, 5], chunks: [100, 5] }), "2,920 × 5 in chunks of 100 × 5");
  t.match(rowOf({ dims, shape: [4, 5], chunks: [10, 5] }), "4 × 5 in one chunk");
  t.match(rowOf({ dims: [], shape: [] }), ">scalar<");
});

t.test("first and last values have an ellipsis between", async (t) => {
  t.strictSame(formatPreview({ first: ["1.0", "2.0"], last: ["9.0"] }), ["1.0", "2.0", "…", "9.0"]);
  t.strictSame(formatPreview({ first: ["'a'", "'b'"], last: [] }), ["'a'", "'b'"]);
});

t.test("times are shown as days if all are midnight", async (t) => {
  const first = ["2000-01-01T00:00:00.000000000", "2000-01-02T00:00:00.000000000", "NaT"];
  t.strictSame(formatPreview({ first, last: [] }), ["2000-01-01", "2000-01-02", "NaT"]);
});

t.test("fractions of seconds are shown unless they are zero", async (t) => {
  const first = ["2000-01-01T06:00:00.000", "2000-01-01T06:00:00.500"];
  t.strictSame(formatPreview({ first, last: [] }), ["2000-01-01T06:00:00", "2000-01-01T06:00:00.500"]);
});

t.test("as many values are shown as fit into a row, and always the first and the last", async (t) => {
  const first = ["2013-01-01T00:00:00", "2013-01-01T06:00:00", "2013-01-01T12:00:00"];
  const last = ["2014-12-31T12:00:00", "2014-12-31T18:00:00"];
  t.strictSame(formatPreview({ first, last }), ["2013-01-01T00:00:00", "…", "2014-12-31T18:00:00"]);
  t.strictSame(formatPreview({ first: ["x".repeat(900), "y"], last: [] }).length, 2);
});
