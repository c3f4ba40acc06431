import { LosslessNumber } from "lossless-json";
import t from "tap";
import type { JsonValue } from "../../src/json/json-value.js";
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

t.test("names become links, and are the same after decoding", async (t) => {
  const encoded = {
    "a b": "a%20b",
    "a/b": "a%2Fb",
    "x:y?#%&'\"(1)": "x%3Ay%3F%23%25%26%27%22%281%29",
    é日: "%C3%A9%E6%97%A5",
    "-_.~": "-_.~",
  };
  for (const [name, link] of Object.entries(encoded)) {
    t.equal(encodeSegment(name), link);
    t.equal(decodeURIComponent(link), name);
  }
  t.equal(decodeURIComponent(encodeSegment("\ud800")), "\ufffd", "half a character");
  t.equal(encodePath("/a b/c"), "/a%20b/c");
});

t.test("values of attributes, codecs and counts are texts with every digit", async (t) => {
  const attributes: [JsonValue, string][] = [
    ["degK", "degK"],
    [new LosslessNumber("-9223372036854775808"), "-9223372036854775808"],
    [new LosslessNumber("1.0"), "1.0"],
    [Number.NaN, "NaN"],
    [-0, "-0"],
    [null, "null"],
    [false, "false"],
    [[1, new LosslessNumber("2.50"), Number.POSITIVE_INFINITY], "1, 2.50, Infinity"],
    [["a", "b"], '["a","b"]'],
    [[], "[]"],
    [{ a: 1 }, '{"a":1}'],
  ];
  for (const [value, text] of attributes) t.equal(formatAttribute(value), text);
  t.match(formatAttribute({ key: "x".repeat(100) }), /\n {2}"key"/, "long JSON is indented");
  t.equal(codecText({ id: "zlib", level: 1 }), "zlib (level 1)");
  t.equal(codecText({ id: "vlen-utf8" }), "vlen-utf8");
  t.strictSame([null, "NaN", 0].map(formatFillValue), ["none", "NaN", "0"]);
  t.strictSame([formatCount(2920), formatCounted(1, "chunk")], ["2,920", "1 chunk"]);
  t.equal(formatCounted(12345, "chunk"), "12,345 chunks");
});

t.test("bytes are written in binary units with three digits", async (t) => {
  const expected: readonly [number, string][] = [
    [1023, "1023 B"],
    [1536, "1.50 KiB"],
    [100 * 1024 ** 2, "100 MiB"],
    [1024 ** 2 - 1, "1.00 MiB"],
    [1e30, "827181 YiB"],
  ];
  for (const [byteLength, text] of expected) t.equal(formatByteLength(byteLength), text);
});

function borders(svg: string): number {
  return (/<path class="line" d="([^"]*)"/.exec(svg)?.[1] ?? "").split("M").length - 1;
}

t.test("there is one line per border between chunks", async (t) => {
  t.equal(renderChunkDiagram([], [], []).html, "");
  t.equal(renderChunkDiagram(["x"], [0], [1]).html, "");
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

t.test("values of a template are escaped, markup in it is not", async (t) => {
  const inner = markup`<b>${"<i>"}</b>`;
  t.equal(
    markup`<p title="${'"quoted"'}">${inner}${["a&", trustedMarkup("<br>")]}</p>`.html,
    '<p title="&quot;quoted&quot;"><b>&lt;i&gt;</b>a&amp;<br></p>',
  );
  t.equal(markup`[${undefined}${false}${[]}${NO_MARKUP}${0}${""}]`.html, "[0]");
  const text = "line\n\ttab é 日本 طهران 👩‍🚀";
  t.equal(escapeHtml(`${text}"'`), `${text}&quot;&#39;`);
});

t.test(
  "controls, direction overrides, lone surrogates and noncharacters are shown, not obeyed",
  async (t) => {
    t.equal(escapeHtml("a\u0000b\u001bc\u007f\r"), "a\\u0000b\\u001bc\\u007f\\u000d");
    t.equal(escapeHtml("\u202egnp.exe\u2066\u2028"), "\\u202egnp.exe\\u2066\\u2028");
    t.equal(escapeHtml("\ud800 \ufdd0 \ufdd1"), "\\ud800 \\ufdd0 \\ufdd1");
  },
);

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
  const others = ["2000-01-01T06:00:00.000", "2000-01-01T06:00:00.500"];
  t.strictSame(formatPreview({ first: others, last: [] }), ["2000-01-01T06:00:00", others[1]]);
});

t.test("as many values are shown as fit into a row, and always the first and the last", async (t) => {
  const first = ["2013-01-01T00:00:00", "2013-01-01T06:00:00", "2013-01-01T12:00:00"];
  const last = ["2014-12-31T12:00:00", "2014-12-31T18:00:00"];
  t.strictSame(formatPreview({ first, last }), ["2013-01-01T00:00:00", "…", "2014-12-31T18:00:00"]);
  t.strictSame(formatPreview({ first: ["x".repeat(900), "y"], last: [] }).length, 2);
});
