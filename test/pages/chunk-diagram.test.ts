import t from "tap";
import { renderChunkDiagram } from "../../src/pages/variable-row.js";

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
