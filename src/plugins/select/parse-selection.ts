import { type LabelMethod, parseQuery, readInteger, wrongParameter } from "../../plugin-api.js";
import type { PointTable } from "./parse-points.js";

/** What a query says about one axis. Texts are as in the query. */
export type AxisQuery =
  | Readonly<{ kind: "labels"; labels: readonly Readonly<{ text: string; method: LabelMethod }>[] }>
  /** Inclusive; undefined is open. */
  | Readonly<{ kind: "range"; from: string | undefined; to: string | undefined; step: number; text: string }>
  | Readonly<{ kind: "indexes"; indexes: readonly number[] }>
  /** A slice of Python; undefined is open. */
  | Readonly<{
      kind: "slice";
      begin: number | undefined;
      end: number | undefined;
      step: number;
      text: string;
    }>
  /** A label per point. */
  | (Readonly<{ kind: "points"; points: PointTable; column: number }> & PointLookup);

/** How labels of points are found. */
interface PointLookup {
  readonly method: LabelMethod;
  /** Greatest distance from the label that is found, in units of the coordinate, or a duration such as `PT6H`. */
  readonly tolerance: string | undefined;
}

/** What a query says about one axis, and the parameter, or the column of points, that says it. */
export interface AxisParameter {
  readonly parameter: string;
  readonly query: AxisQuery;
}

/** A parsed query. How labels are found is for points. */
export interface SelectionQuery extends PointLookup {
  /** As they came; empty for all variables that have a selected dimension. */
  readonly variables: readonly string[];
  /** By dimension or coordinate. */
  readonly axes: ReadonlyMap<string, AxisParameter>;
  /** Undefined if `Accept` decides. */
  readonly format: string | undefined;
  /** Undefined if the format decides. */
  readonly isDecoded: boolean | undefined;
  /** Values that the answer may have; undefined if their bytes alone count. */
  readonly maxValues: number | undefined;
}

const METHODS: readonly string[] = ["exact", "nearest", "ffill", "bfill"];
const isMethod = (text: string): text is LabelMethod => METHODS.includes(text);
const INDEX = "isel.";
const STEP = "step.";
/** Parameters that come once. */
const SINGLE = ["f", "decode", "method", "tolerance", "max_values"];
const INTEGER = /^[+-]?\d{1,15}$/;
const SLICE = /^([+-]?\d{1,15})?:([+-]?\d{1,15})?(?::([+-]?\d{1,15})?)?$/;

/**
 * Parses the query of a selection. Names of dimensions are not checked: each parameter that is none of the fixed ones is one.
 * @param formats Names of formats.
 * @param isOfPoints Whether the body has points, which `method` and `tolerance` are for.
 * @throws ZpublishError `invalid-query`
 */
export function parseSelection(
  query: string,
  formats: readonly string[],
  isOfPoints: boolean,
): SelectionQuery {
  const values = parseQuery(query, { repeated: ["{dimension}"] });
  const single = (name: string): string | undefined => {
    const given = values.get(name);
    if (given !== undefined && given.length > 1)
      throw wrongParameter(name, "repeated_parameter", "the parameter once", given.join(" and "));
    return given?.[0];
  };
  const [format, decode, method, tolerance, most] = SINGLE.map(single);
  const ofPoints = method ?? tolerance;
  if (ofPoints !== undefined && !isOfPoints) {
    const expected = "a body of points (POST); a label has its method before it: nearest::8.6";
    throw wrongParameter(method === undefined ? "tolerance" : "method", "not_applicable", expected, ofPoints);
  }
  if (format !== undefined && !formats.includes(format))
    throw wrongParameter("f", "enum", `one of ${formats.join(", ")}`, format);
  if (decode !== undefined && decode !== "0" && decode !== "1")
    throw wrongParameter("decode", "enum", "0 or 1", decode);
  if (method !== undefined && !isMethod(method))
    throw wrongParameter("method", "enum", `one of ${METHODS.join(", ")}`, method);
  if (tolerance !== undefined && (method ?? "exact") === "exact")
    throw wrongParameter("tolerance", "not_applicable", "a method besides exact", tolerance);
  return {
    variables: values.get("var") ?? [],
    axes: parseAxes(values),
    format,
    isDecoded: decode === undefined ? undefined : decode === "1",
    method: method ?? "exact",
    tolerance,
    maxValues: most === undefined ? undefined : readInteger("max_values", most, 1, Number.MAX_SAFE_INTEGER),
  };
}

function parseAxes(values: ReadonlyMap<string, readonly string[]>): SelectionQuery["axes"] {
  const axes = new Map<string, { parameter: string; query: AxisQuery }>();
  for (const [parameter, texts] of values) {
    if (parameter === "var" || SINGLE.includes(parameter) || parameter.startsWith(STEP)) continue;
    const isIndex = parameter.startsWith(INDEX);
    const name = isIndex ? parameter.slice(INDEX.length) : parameter;
    const other = axes.get(name);
    if (other !== undefined)
      throw wrongParameter(parameter, "contradiction", `either it or '${other.parameter}'`, texts.join());
    const query = isIndex ? parseIndexes(parameter, texts) : parseLabels(parameter, texts);
    axes.set(name, { parameter, query });
  }
  for (const [parameter, texts] of values) {
    if (!parameter.startsWith(STEP)) continue;
    const text = texts.join();
    const name = parameter.slice(STEP.length);
    const axis = axes.get(name);
    if (axis?.query.kind !== "range")
      throw wrongParameter(parameter, "not_applicable", `a range such as ${name}=a/b`, text);
    if (!INTEGER.test(text) || Number(text) < 1)
      throw wrongParameter(parameter, "int_parsing", "an integer from 1 on", text);
    axis.query = { ...axis.query, step: Number(text) };
  }
  return axes;
}

function parseLabels(parameter: string, texts: readonly string[]): AxisQuery {
  const labels = texts.map((text) => {
    const [, method, rest = text] = /^([a-z]+)::(.*)$/s.exec(text) ?? [];
    if (method !== undefined && !isMethod(method))
      throw wrongParameter(parameter, "enum", `a method of ${METHODS.join(", ")} before '::'`, text);
    if (rest === "") throw wrongParameter(parameter, "missing", "a label, or a range a/b", text);
    return { text: rest, method };
  });
  const range = labels.find(({ text, method }) => method === undefined && text.includes("/"));
  if (range === undefined)
    return { kind: "labels", labels: labels.map(({ text, method = "exact" }) => ({ text, method })) };
  const ends = range.text.split("/");
  if (labels.length > 1)
    throw wrongParameter(parameter, "contradiction", "one range, or values without one", texts.join(" and "));
  if (ends.length > 2 || ends.includes(""))
    throw wrongParameter(parameter, "range", "a range a/b, a/.. or ../b", range.text);
  const [from, to] = ends.map((end) => (end === ".." ? undefined : end));
  return { kind: "range", from, to, step: 1, text: range.text };
}

function parseIndexes(parameter: string, texts: readonly string[]): AxisQuery {
  if (texts.every((text) => INTEGER.test(text))) return { kind: "indexes", indexes: texts.map(Number) };
  const wrong = texts.find((text) => !INTEGER.test(text)) ?? "";
  const match = SLICE.exec(wrong);
  if (match === null)
    throw wrongParameter(parameter, "slice_parsing", "an index, or a slice begin:end:step", wrong);
  const all = texts.join(" and ");
  if (texts.length > 1)
    throw wrongParameter(parameter, "contradiction", "one slice, or indexes without one", all);
  const [begin, end, step] = match.slice(1).map((part) => (part === undefined ? undefined : Number(part)));
  if (step === 0) throw wrongParameter(parameter, "slice_parsing", "a step that is not 0", wrong);
  return { kind: "slice", begin, end, step: step ?? 1, text: wrong };
}
