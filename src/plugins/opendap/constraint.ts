import { type AxisSelection, wrongParameter } from "../../plugin-api.js";

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
 * Returns the constraint of DAP2 as it came: `t2m[0:2:8][3],lat`; empty for all variables.
 * @throws ZpublishError `invalid-query` for conditions and functions, which only sequences have
 */
export function parseDap2Query(query: string): string {
  const [constraint = "", condition] = clausesOf(query);
  if (condition !== undefined) throw wrong("condition", "no condition: there are no sequences", condition);
  return constraint;
}

/**
 * Parses the query of DAP4: `dap4.ce=/t2m[0:2:8][];/group/lat&dap4.checksum=true`.
 * @throws ZpublishError `invalid-query`
 */
export function parseDap4Query(query: string): {
  /** As it came; empty for all variables. */
  readonly constraint: string;
  /** Whether a checksum is to follow each variable. */
  readonly hasChecksums: boolean;
} {
  let constraint = "";
  let hasChecksums = false;
  for (const clause of clausesOf(query).filter((each) => each !== "")) {
    const [, name, value = ""] = /^dap4\.(ce|checksum)(?:=|%3D)(.*)$/is.exec(clause) ?? [];
    if (name === "ce") constraint = value;
    else if (name === "checksum" && /^(?:true|false)$/i.test(value)) hasChecksums = /true/i.test(value);
    else throw wrong("clause", "dap4.ce=… or dap4.checksum=true|false", clause);
  }
  return { constraint, hasChecksums };
}

/** Splits a query. The token of those who cannot send headers is for others to check. */
function clausesOf(query: string): string[] {
  return query.split("&").filter((clause, at) => !clause.startsWith("token=") && (at === 0 || clause !== ""));
}

/**
 * Cuts the variables that a constraint names. It is split as it came: a name may have a percent-encoded separator. Some clients encode the
 * whole constraint, so that a part that names no variable is decoded and split again, at most twice.
 * @param separator Between variables. With that of DAP4, the last index may be left out.
 * @param all The variables that an empty constraint names.
 * @param find Returns a variable by its name in this protocol; undefined if there is none.
 * @throws ZpublishError `invalid-query` if there is no such variable, or if an index is outside of it
 */
export function cutVariables<V extends CuttableVariable>(
  constraint: string,
  separator: "," | ";",
  all: Iterable<V>,
  find: (name: string) => V | undefined,
): Slice<V>[] {
  if (constraint === "") return Array.from(all, (variable) => cutVariable(variable));
  const cutAll = (text: string, decodings: number): Slice<V>[] =>
    text.split(separator).flatMap((part) => {
      const [name = "", ...indexes] = part.split(/(?=\[)/);
      const variable = find(decoded(name));
      if (variable !== undefined) return [cutVariable(variable, indexes, name, separator === ";")];
      const again = decoded(part);
      if (again === part || decodings === 0) throw wrong("variable", "the name of a variable", name);
      return cutAll(again, decodings - 1);
    });
  const slices = cutAll(constraint, 2);
  if (new Set(slices.map(({ variable }) => variable)).size < slices.length)
    throw wrong("variable", "each variable once", constraint);
  return slices;
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
 * Returns all of a variable, or the given indexes of its first axes: `[0:2:8]`.
 * @param mayBeOpen Whether the last index may be left out.
 * @throws ZpublishError `invalid-query`
 */
export function cutVariable<V extends CuttableVariable>(
  variable: V,
  indexes: readonly string[] = [],
  name = "",
  mayBeOpen = false,
): Slice<V> {
  const { shape } = variable;
  if (indexes.length > shape.length)
    throw wrong("indexes", `indexes of ${shape.length} axes of '${name}'`, `those of ${indexes.length}`);
  const axes = shape.map((length, axis): IndexStep => {
    const text = indexes[axis];
    if (text === undefined || (mayBeOpen && text === "[]")) return { begin: 0, count: length, step: 1 };
    const { first, stride, last = length - 1 } = rangeOf(text, mayBeOpen);
    if (first > last || last >= length || stride < 1)
      throw wrong(
        "indexes",
        `indexes within 0 to ${length - 1} of axis ${axis} of '${name}', ascending, and a stride of at least 1`,
        text,
      );
    return { begin: first, count: Math.floor((last - first) / stride) + 1, step: stride };
  });
  const isWhole = axes.every(({ count }, axis) => count === shape[axis]);
  return { variable, axes, shape: axes.map(({ count }) => count), isWhole };
}

/** Parses `[first:stride:last]`: unlike in Python, the stride is in the middle and the last index is part of it. */
function rangeOf(text: string, mayBeOpen: boolean) {
  const [, one, two, three] = /^\[(\d{1,15})(?::(\d{0,15}))?(?::(\d{0,15}))?\]$/.exec(text) ?? [];
  const end = three ?? two ?? one;
  if (one === undefined || (end === "" && !mayBeOpen) || (three !== undefined && two === ""))
    throw wrong("indexes", "[index], [first:last] or [first:stride:last]", text);
  const stride = three === undefined ? 1 : Number(two);
  return { first: Number(one), stride, last: end === "" ? undefined : Number(end) };
}

function wrong(type: string, expected: string, received: string): Error {
  return wrongParameter("constraint", type, expected, received);
}
