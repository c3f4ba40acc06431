/** What was measured over ten seconds. */
export interface LongRunSample {
  /** Since the load began. */
  readonly seconds: number;
  /** Resident memory without the cache's map. */
  readonly residentMib: number;
  /** Resident pages of the cache's map, which the system may take back. */
  readonly mapMib: number;
  /** Size of the cache on the disk, and its bound. */
  readonly cacheMib: number;
  readonly maxCacheMib: number;
  readonly cacheEntries: number;
  readonly openFiles: number;
  readonly kinds: readonly KindSample[];
}

/** Requests of one kind. */
interface KindSample {
  readonly name: string;
  /** Milliseconds. */
  readonly p99: number;
  /** Requests per second. */
  readonly rate: number;
}

/** Writes samples as CSV, with the names of columns in the first line. */
export function longRunTable(samples: readonly LongRunSample[]): string {
  const columns = [
    ...["seconds", "memory MiB", "map MiB", "cache MiB", "cache bound MiB", "cached chunks", "open files"],
    ...(samples[0]?.kinds.flatMap(({ name }) => [`${name}: p99 ms`, `${name}: requests/s`]) ?? []),
  ];
  const rows = samples.map((each) => [
    ...[each.seconds, each.residentMib, each.mapMib, each.cacheMib, each.maxCacheMib],
    ...[each.cacheEntries, each.openFiles, ...each.kinds.flatMap(({ p99, rate }) => [p99, rate])],
  ]);
  const lines = rows.map((row) => row.map((value) => Number(value.toFixed(2))).join(","));
  return `${[columns.map((name) => JSON.stringify(name)).join(","), ...lines].join("\n")}\n`;
}

const WIDTH = 900;
const PANEL_HEIGHT = 240;
const MARGIN = { left: 70, right: 210, top: 34, bottom: 30 };
const COLOURS = ["#1b6ca8", "#d1495b", "#3d8b37", "#b8860b", "#6a4c93", "#2a9d8f", "#555555"];

/** A line of a panel: its values in the order of the samples. */
interface Line {
  readonly name: string;
  readonly values: readonly number[];
}

/** Draws samples as SVG: memory, latency and throughput over time. */
export function longRunPlot(samples: readonly LongRunSample[]): string {
  const minutes = samples.map(({ seconds }) => seconds / 60);
  const line = (name: string, take: (sample: LongRunSample) => number): Line => ({
    name,
    values: samples.map(take),
  });
  const ofKinds = (take: (kind: KindSample) => number): Line[] =>
    (samples[0]?.kinds ?? []).map(({ name }, i) => line(name, ({ kinds }) => take(kinds[i]!)));
  const panels = [
    panel("Memory and cache, MiB", minutes, false, [
      line("memory without the map", ({ residentMib }) => residentMib),
      line("resident pages of the map", ({ mapMib }) => mapMib),
      line("cache on the disk", ({ cacheMib }) => cacheMib),
      line("bound of the cache", ({ maxCacheMib }) => maxCacheMib),
    ]),
    panel(
      "99th percentile of the latency, ms",
      minutes,
      true,
      ofKinds(({ p99 }) => p99),
    ),
    panel(
      "Requests per second",
      minutes,
      true,
      ofKinds(({ rate }) => rate),
    ),
  ];
  const height = PANEL_HEIGHT * panels.length;
  const placed = panels.map((each, i) => `<g transform="translate(0 ${i * PANEL_HEIGHT})">${each}</g>`);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">
<title>Memory, cache, latency and rate of a server under full load</title>
<rect width="${WIDTH}" height="${height}" fill="#fff"/>
${placed.join("\n")}
</svg>
`;
}

function panel(
  title: string,
  minutes: readonly number[],
  isLogarithmic: boolean,
  lines: readonly Line[],
): string {
  const all = lines.flatMap(({ values }) => values);
  const ticks = isLogarithmic ? powersOfTen(all) : steps(Math.max(1, ...all));
  const [low = 0] = ticks;
  const high = ticks.at(-1) ?? 1;
  const scale = (value: number) => (isLogarithmic ? Math.log10(Math.max(value, low)) : value);
  const right = WIDTH - MARGIN.right;
  const bottom = PANEL_HEIGHT - MARGIN.bottom;
  const end = Math.max(1 / 60, ...minutes);
  const x = (minute: number) => MARGIN.left + (minute / end) * (right - MARGIN.left);
  const y = (value: number) =>
    bottom - ((scale(value) - scale(low)) / (scale(high) - scale(low))) * (bottom - MARGIN.top);
  const rules = ticks.map(
    (tick) =>
      `<path d="M${MARGIN.left} ${y(tick).toFixed(1)}H${right}" stroke="#ddd"/><text x="${MARGIN.left - 6}" y="${(y(tick) + 4).toFixed(1)}" text-anchor="end">${tick}</text>`,
  );
  const drawn = lines.map(({ name, values }, i) => {
    const colour = COLOURS[i % COLOURS.length];
    const points = values.map((value, at) => `${x(minutes[at]!).toFixed(1)},${y(value).toFixed(1)}`);
    const legend = `<text x="${right + 10}" y="${MARGIN.top + 8 + i * 18}" fill="${colour}">${name}</text>`;
    return `<polyline points="${points.join(" ")}" fill="none" stroke="${colour}" stroke-width="1.5"/>${legend}`;
  });
  return [
    `<text x="${MARGIN.left}" y="20" font-weight="bold">${title}</text>`,
    ...rules,
    `<text x="${right}" y="${PANEL_HEIGHT - 8}" text-anchor="end">${end.toFixed(0)} minutes</text>`,
    ...drawn,
  ].join("\n");
}

/** Returns the powers of ten around positive values. */
function powersOfTen(values: readonly number[]): number[] {
  const positive = values.filter((value) => value > 0);
  const first = Math.floor(Math.log10(Math.min(...positive, 1)));
  const last = Math.max(first + 1, Math.ceil(Math.log10(Math.max(...positive, 1))));
  return Array.from({ length: last - first + 1 }, (_, i) => Number((10 ** (first + i)).toPrecision(1)));
}

/** Returns round numbers from 0 to `highest` or a little above. */
function steps(highest: number): number[] {
  const rough = highest / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough) ?? rough;
  return Array.from({ length: Math.ceil(highest / step) + 1 }, (_, i) => i * step);
}
