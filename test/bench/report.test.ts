import t from "tap";
import type { Round } from "../../bench/measure-row.js";
import { parseBenchOptions } from "../../bench/options.js";
import { requestsChart } from "../../bench/report/bar-chart.js";
import { markdownReport } from "../../bench/report/markdown-table.js";
import { summarize } from "../../bench/report/summarize.js";

function rounds(subject: string, rates: readonly number[]): Round[] {
  return rates.map((requestsPerSecond, round) => ({
    ...{ row: "r", subject, round, requestsPerSecond, generator: "wrk", requests: 10, seconds: 1 },
    ...{ p50: 1, p90: 2, p99: 3, failures: 0, peakBytes: 2 ** 20 * (round + 1) },
    ...{ headByteLength: 120, generatorCpuSeconds: round / 2 + 0.45 },
  }));
}

const ROUNDS = [...rounds("limit", [100, 200, 400]), ...rounds("a<b", [50, 150, 100])];

t.test("a ratio is the median of the ratios within rounds", (t) => {
  const [limit, other] = summarize(ROUNDS, ["limit"]);
  t.match(limit, { requestsPerSecond: 200, range: [100, 400], ratios: { limit: 1 } });
  t.match(other, { requestsPerSecond: 100, ratios: { limit: 0.5 }, peakBytes: 3 * 2 ** 20 });
  t.end();
});

t.test("a subject that was not measured gives no ratio", (t) => {
  t.equal(summarize(ROUNDS, ["nginx"])[0]!.ratios.nginx, undefined);
  t.end();
});

t.test("the report has a line per subject, and says where, with what, and what is left out", (t) => {
  const report = markdownReport(summarize(ROUNDS, ["limit"]), ["limit"], {
    command: "npm run bench",
    date: "2026-01-01",
    machine: { CPU: "2 × x" },
    rounds: 3,
    seconds: 1,
    titles: { r: "a row" },
    notes: ["nginx is not installed"],
    experiments: [],
  });
  t.match(report, "| a<b | 100 | 50.0–150 | – | 1.00 | 2.00 | 3.00 | – | – | 3.00 | 95 % (!) | 120 | 0.50 |");
  t.notMatch(report, "too short to rely on");
  t.match(report, "- nginx is not installed");
  t.match(report, "- CPU: 2 × x");
  t.end();
});

t.test("the picture is SVG, with names escaped", (t) => {
  const picture = requestsChart(summarize(ROUNDS, []));
  t.match(picture, /^<svg [\s\S]*a&lt;b[\s\S]*<\/svg>\n$/);
  t.notMatch(picture, "NaN");
  t.end();
});

t.test("options have defaults, and what is not known is refused", (t) => {
  t.same(parseBenchOptions([], ["a"]), {
    names: [],
    rounds: 5,
    seconds: 3,
    isSmall: false,
    peers: [],
    hasSameHeaders: false,
  });
  t.same(parseBenchOptions(["a", "--rounds", "7", "--small", "--peer", "http://x"], ["a"]), {
    ...{ names: ["a"], rounds: 7, seconds: 3, isSmall: true, peers: ["http://x"], hasSameHeaders: false },
  });
  t.throws(() => parseBenchOptions(["b"], ["a"]), { message: /expected names among a, received b/ });
  t.throws(() => parseBenchOptions(["--rounds", "0"], []), { message: /--rounds: expected .* received 0/ });
  t.throws(() => parseBenchOptions(["--fast"], []), { message: /--fast/ });
  t.end();
});
