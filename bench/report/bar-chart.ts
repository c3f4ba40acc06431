import { groupBy } from "../group-by.js";
import type { Summary } from "./summarize.js";

/** Bars that stand together, on a scale of their own. */
export interface BarGroup {
  readonly title: string;
  readonly bars: readonly Bar[];
}

export interface Bar {
  /** The same label has the same color in every group. */
  readonly label: string;
  readonly value: number;
  /** Lowest and highest round. */
  readonly range: readonly [number, number];
}

const WIDTH = 760;
const LABEL_WIDTH = 190;
const VALUE_WIDTH = 150;
const BAR_HEIGHT = 18;
const ROW_GAP = 34;
const COLORS = ["#7a8793", "#3f8f5b", "#2563b0", "#b0672a", "#7d4fa3"];

/** As SVG: a group of bars below the other, each on a scale of its own, whiskers from lowest to highest round. */
export function barChart(groups: readonly BarGroup[], unit: string): string {
  const labels = [...new Set(groups.flatMap(({ bars }) => bars.map(({ label }) => label)))];
  const parts: string[] = [];
  let y = 34;
  for (const { title, bars } of groups) {
    parts.push(`<text x="8" y="${y}" font-weight="bold">${escaped(title)}</text>`);
    y += 8;
    const scale = (WIDTH - LABEL_WIDTH - VALUE_WIDTH) / Math.max(...bars.map(({ range }) => range[1]), 1);
    for (const { label, value, range } of bars) {
      const color = COLORS[labels.indexOf(label) % COLORS.length];
      const middle = y + BAR_HEIGHT / 2;
      const [low, high] = range.map((rate) => (LABEL_WIDTH + rate * scale).toFixed(1));
      parts.push(
        `<text x="${LABEL_WIDTH - 8}" y="${middle + 4}" text-anchor="end">${escaped(shortened(label))}</text>`,
        `<rect x="${LABEL_WIDTH}" y="${y + 2}" width="${(value * scale).toFixed(1)}" height="${BAR_HEIGHT - 4}" fill="${color}"/>`,
        `<path d="M${low} ${middle}H${high}M${low} ${middle - 4}v8M${high} ${middle - 4}v8" stroke="#222" fill="none"/>`,
        `<text x="${WIDTH - VALUE_WIDTH + 10}" y="${middle + 4}">${Math.round(value).toLocaleString("en-US")} ${escaped(unit)}</text>`,
      );
      y += BAR_HEIGHT;
    }
    y += ROW_GAP - 8;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" height="${y}" font-family="sans-serif" font-size="12" fill="#222">
<rect width="100%" height="100%" fill="#fff"/>
${parts.join("\n")}
</svg>
`;
}

/** Requests/s of the rows: a group per row. */
export function requestsChart(summaries: readonly Summary[]): string {
  const groups = [...groupBy(summaries, ({ row }) => row)].map(([title, group]) => ({
    title,
    bars: group.map(({ subject, requestsPerSecond, range }) => ({
      label: subject,
      value: requestsPerSecond,
      range,
    })),
  }));
  return barChart(groups, "requests/s");
}

function shortened(text: string): string {
  return text.length > 28 ? `${text.slice(0, 27)}…` : text;
}

function escaped(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}
