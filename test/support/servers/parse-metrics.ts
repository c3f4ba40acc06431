/** Metrics as a strict reader of Prometheus' text format (0.0.4) takes them. */
export interface ParsedMetrics {
  /** Type by family. */
  readonly families: ReadonlyMap<string, string>;
  /** The one sample with exactly these labels; undefined where there is none. */
  value(name: string, labels: Readonly<Record<string, string>>): number | undefined;
}

const HELP = /^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (\S.*)$/;
const TYPE = /^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram|summary|untyped)$/;
const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y;
const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  histogram: ["_bucket", "_sum", "_count"],
  summary: ["", "_sum", "_count"],
};

/** @throws Error at the first line that is not of the format: a family without help, twice, or out of place; a sample twice. */
export function parseMetrics(text: string): ParsedMetrics {
  if (!text.endsWith("\n")) throw new Error("expected a line break at the end");
  const families = new Map<string, string>();
  const helped = new Set<string>();
  const samples = new Map<string, number>();
  const buckets = new Map<string, number>();
  let current = "";
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const help = HELP.exec(line);
    if (help !== null) {
      current = help[1] as string;
      if (helped.has(current)) throw new Error(`help of ${current} is there twice`);
      helped.add(current);
      continue;
    }
    const type = TYPE.exec(line);
    if (type !== null) {
      if (type[1] !== current) throw new Error(`type of ${type[1]} is not behind its help`);
      families.set(current, type[2] as string);
      continue;
    }
    const sample = SAMPLE.exec(line);
    if (sample === null) throw new Error(`no sample: ${line}`);
    const [, name = "", labelText = "", valueText = ""] = sample;
    const kind = families.get(current) ?? "";
    const names = (SUFFIXES[kind] ?? [""]).map((suffix) => current + suffix);
    if (!names.includes(name)) throw new Error(`${name} is no sample of ${kind} ${current}`);
    if (kind === "counter" && !name.endsWith("_total"))
      throw new Error(`counter ${name} does not end in _total`);
    const labels = parseLabels(labelText, line);
    const value =
      valueText === "+Inf" ? Number.POSITIVE_INFINITY : valueText === "Nan" ? Number.NaN : Number(valueText);
    if (Number.isNaN(value) && !/^nan$/i.test(valueText)) throw new Error(`no number: ${line}`);
    if (kind !== "gauge" && value < 0) throw new Error(`less than nothing: ${line}`);
    const key = keyOf(name, labels);
    if (samples.has(key)) throw new Error(`twice: ${line}`);
    samples.set(key, value);
    if (name.endsWith("_bucket")) {
      const { le: _, ...others } = labels;
      const series = keyOf(name, others);
      if (value < (buckets.get(series) ?? 0)) throw new Error(`buckets do not add up: ${line}`);
      buckets.set(series, value);
    }
  }
  return { families, value: (name, labels) => samples.get(keyOf(name, labels)) };
}

function parseLabels(text: string, line: string): Record<string, string> {
  const labels: Record<string, string> = {};
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < text.length) {
    const match = LABEL.exec(text);
    if (match === null) throw new Error(`no labels: ${line}`);
    labels[match[1] as string] = match[2] as string;
  }
  return labels;
}

function keyOf(name: string, labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([name, pairs]);
}
