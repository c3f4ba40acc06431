import { type AxisSelection, wrongParameter } from "../../plugin-api.js";

/** One variable that a constraint asks for, and its indexes; none of an axis means all of it. */
export interface DapProjection {
  /** As it came, without one level of percent escapes. */
  readonly name: string;
  readonly indexes: readonly IndexRange[];
}

/** `[first:stride:last]`: unlike in Python, the stride is in the middle and the last index is part of it. */
interface IndexRange {
  readonly first: number;
  readonly stride: number;
  /** Undefined: to the end of the axis. */
  readonly last: number | undefined;
}

/** What a request of DAP4 asks for. */
export interface Dap4Query {
  /** Undefined: all variables. */
  readonly projections: readonly DapProjection[] | undefined;
  /** Whether a checksum is to follow each variable. */
  readonly hasChecksums: boolean;
}

/** A range of indexes of one axis. */
type IndexStep = Extract<AxisSelection, { readonly step: number }>;

/** A variable as it is seen by clients, whose axes a constraint cuts. */
interface CuttableVariable {
  readonly shape: readonly number[];
}

/** A piece of a variable. */
export interface Slice<V extends CuttableVariable> {
  readonly variable: V;
  /** One per axis. */
  readonly axes: readonly IndexStep[];
  readonly shape: readonly number[];
  readonly isWhole: boolean;
}

/**
 * Parses the query of DAP2: `t2m[0:2:8][3],lat`. Clients send it as it is or percent-encoded.
 * @returns undefined if it asks for all variables.
 * @throws ZpublishError `invalid-query`, also for conditions and functions, which only sequences have.
 */
export function parseDap2Query(query: string): readonly DapProjection[] | undefined {
  const [projection = "", ...conditions] = clausesOf(query);
  const [condition] = conditions;
  if (condition !== undefined) throw wrong("condition", "no condition: there are no sequences", condition);
  return parseProjections(decoded(projection), ",");
}

/**
 * Parses the query of DAP4: `dap4.ce=/t2m[0:2:8][];/group/lat&dap4.checksum=true`.
 * @throws ZpublishError `invalid-query`
 */
export function parseDap4Query(query: string): Dap4Query {
  let projections: Dap4Query["projections"];
  let hasChecksums = false;
  for (const clause of clausesOf(query).filter((each) => each !== "")) {
    const text = decoded(clause);
    const [, name, value = ""] = /^dap4\.(ce|checksum)=(.*)$/s.exec(text) ?? [];
    if (name === "ce") projections = parseProjections(value, ";");
    else if (name === "checksum" && /^(?:true|false)$/i.test(value)) hasChecksums = /true/i.test(value);
    else throw wrong("clause", "dap4.ce=… or dap4.checksum=true|false", text);
  }
  return { projections, hasChecksums };
}

/** Splits a query. The token of those who cannot send headers is for others to check. */
function clausesOf(query: string): string[] {
  return query.split("&").filter((clause, at) => !clause.startsWith("token=") && (at === 0 || clause !== ""));
}

const NAME = /[^[\](){}|,;=<>]+/y;
const INDEXES = /\[(?:(\d{1,15})(?::(\d{0,15}))?(?::(\d{0,15}))?)?\]/y;

function parseProjections(text: string, separator: "," | ";"): readonly DapProjection[] | undefined {
  if (text === "") return undefined;
  const projections: DapProjection[] = [];
  for (let at = 0; at <= text.length; at += 1) {
    const name = matchAt(NAME, text, at)?.[0] ?? "";
    at += name.length;
    if (name === "") throw wrong("name", `the name of a variable at character ${at}`, text.slice(at));
    const indexes: IndexRange[] = [];
    for (let found = matchAt(INDEXES, text, at); found; found = matchAt(INDEXES, text, at)) {
      indexes.push(rangeOf(found, separator === ";"));
      at += found[0].length;
    }
    if (at < text.length && text[at] !== separator)
      throw wrong("indexes", `[first:stride:last] or '${separator}' at character ${at}`, text.slice(at));
    projections.push({ name, indexes });
  }
  return projections;
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/** @param mayBeOpen Whether the last index may be left out, as in DAP4. */
function rangeOf([text, one, two, three]: RegExpExecArray, mayBeOpen: boolean): IndexRange {
  const isOpen = one === undefined || (three ?? two) === "";
  if ((isOpen && !mayBeOpen) || (three !== undefined && two === ""))
    throw wrong("indexes", "[index], [first:last] or [first:stride:last]", text);
  if (one === undefined) return { first: 0, stride: 1, last: undefined };
  const first = Number(one);
  const stride = three === undefined ? 1 : Number(two);
  return { first, stride, last: isOpen ? undefined : Number(three ?? two ?? one) };
}

/** Undoes one level of percent escapes. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw wrong("escape", "percent escapes of UTF-8", text);
  }
}

/**
 * Finds the variables of a constraint.
 * @param find Returns a variable by its name in this protocol; undefined if there is none.
 * @throws ZpublishError `invalid-query` if there is no such variable, or if an index is outside of it.
 */
export function cutVariables<V extends CuttableVariable>(
  projections: readonly DapProjection[],
  find: (name: string) => V | undefined,
): Slice<V>[] {
  const slices = projections.map(({ name, indexes }) => {
    // Names are percent-encoded in documents, and some clients encode them again.
    const variable = find(name) ?? (name.includes("%") ? find(decoded(name)) : undefined);
    if (variable === undefined) throw wrong("variable", "the name of a variable", name);
    return cutVariable(variable, indexes, name);
  });
  if (new Set(slices.map(({ variable }) => variable)).size < slices.length)
    throw wrong("variable", "each variable once", projections.map(({ name }) => name).join());
  return slices;
}

/** Returns all of a variable, or the given indexes of its first axes. @throws ZpublishError `invalid-query` */
export function cutVariable<V extends CuttableVariable>(
  variable: V,
  indexes: readonly IndexRange[] = [],
  name = "",
): Slice<V> {
  const { shape } = variable;
  if (indexes.length > shape.length)
    throw wrong("indexes", `indexes of ${shape.length} axes of '${name}'`, `those of ${indexes.length}`);
  const axes = shape.map((length, axis): IndexStep => {
    const range = indexes[axis];
    if (range === undefined) return { begin: 0, count: length, step: 1 };
    const { first, stride, last = length - 1 } = range;
    if (first > last || last >= length || stride < 1)
      throw wrong(
        "indexes",
        `indexes within 0 to ${length - 1} of axis ${axis} of '${name}', ascending, and a stride of at least 1`,
        `[${first}:${stride}:${last}]`,
      );
    return { begin: first, count: Math.floor((last - first) / stride) + 1, step: stride };
  });
  const isWhole = axes.every(({ count }, axis) => count === shape[axis]);
  return { variable, axes, shape: axes.map(({ count }) => count), isWhole };
}

function wrong(type: string, expected: string, received: string): Error {
  return wrongParameter("constraint", type, expected, received);
}
