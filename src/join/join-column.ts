import { ZpublishError } from "../errors.js";
import { joinChunks } from "./join-chunks.js";
import type { JoinScope, JoinScopes } from "./join-scopes.js";
import { joinValues } from "./join-values.js";
import type { JoinedArray } from "./joined-tree.js";
import type { PartColumn } from "./part-columns.js";
import type { PartArray, PartDescription } from "./part-description.js";

/** One array of the joined tree. */
export interface JoinedColumn {
  readonly array: JoinedArray;
  /** Line for people, without the array's path; undefined if nothing was changed. */
  readonly warning?: string | undefined;
  /** Path of the bounds of times that were converted to other units; undefined if there are none. */
  readonly bounds?: string | undefined;
}

/**
 * Joins the arrays of one path.
 * @throws ZpublishError `invalid-metadata`, `unsupported`, naming two parts, if they cannot be one array
 */
export function joinColumn(
  column: PartColumn,
  parts: readonly PartDescription[],
  scopes: JoinScopes,
  dimension: string,
): JoinedColumn {
  const isAlong = column.arrays.some((array) => array?.dims.includes(dimension));
  const scope = isAlong ? scopes.scopeOf(column.group) : undefined;
  if (scope === undefined) return { array: arrayOfPart(column, scopes.main) };
  if (typeof scope === "string") throw new ZpublishError("invalid-metadata", scope);
  const { dims, axis, arrays } = membersOf(column, parts, scope, dimension);
  const stored = arrays.map((array) => array.stored);
  const values = arrays.flatMap((array) => array.values ?? []);
  const { names, weights } = scope;
  if (axis === 0 && values.length === arrays.length) {
    const joined = joinValues({ stored, values, names, weights }, scope, dims);
    const bounds = joined.stored.attrs.bounds ?? joined.stored.attrs.climatology;
    const prefix = column.path.slice(0, column.path.length - column.name.length);
    return {
      array: { kind: "values", stored: joined.stored, values: joined.values },
      warning: joined.warning,
      bounds: joined.isRetimed && typeof bounds === "string" ? `${prefix}${bounds}` : undefined,
    };
  }
  const joined = joinChunks({ stored, names, weights }, scope, axis, dims);
  return {
    array: { kind: "joined", stored: joined.stored, axis, spans: joined.spans },
    warning: joined.warning,
  };
}

/** Returns an array without the joined dimension: that of the first part that has it. */
function arrayOfPart({ arrays }: PartColumn, { present, order }: JoinScope): JoinedArray {
  const part = [...present, ...order].find((each) => arrays[each] !== undefined) as number;
  const { stored, dims } = arrays[part] as PartArray;
  return { kind: "part", part, stored: { ...stored, dimNames: dims } };
}

/** The arrays of one path in the parts that have steps, with equal dimensions. */
interface Members {
  readonly dims: readonly string[];
  readonly axis: number;
  readonly arrays: readonly PartArray[];
}

function membersOf(
  { path, arrays: all }: PartColumn,
  parts: readonly PartDescription[],
  { present, lengths }: JoinScope,
  dimension: string,
): Members {
  const nameOf = (part: number) => (parts[part] as PartDescription).name;
  const first = present.find((part) => all[part] !== undefined);
  if (first === undefined) {
    throw invalid(`expected an array in a file with steps along '${dimension}', received none`);
  }
  const { dims } = all[first] as PartArray;
  const dimsError = (part: number) =>
    invalid(
      `expected dimensions [${dims.join(", ")}] in ${nameOf(part)}, as in ${nameOf(first)}, received [${all[part]?.dims.join(", ")}]`,
    );
  const axis = dims.indexOf(dimension);
  if (axis < 0) throw dimsError(all.findIndex((array) => array?.dims.includes(dimension)));
  const arrays = present.map((part) => {
    const array = all[part];
    if (array === undefined) throw missingError(path, parts[part] as PartDescription, nameOf(first));
    if (array.dims.length !== dims.length || array.dims.some((dim, index) => dim !== dims[index])) {
      throw dimsError(part);
    }
    if (array.stored.shape[axis] === lengths[part]) return array;
    throw invalid(
      `expected ${lengths[part]} steps along '${dimension}' in ${nameOf(part)}, as its other arrays have, received ${array.stored.shape[axis]}`,
    );
  });
  return { dims, axis, arrays };
}

function missingError(path: string, { refused, name }: PartDescription, other: string): ZpublishError {
  const refusal = refused.find((each) => path === each.path || path.startsWith(`${each.path}/`));
  if (refusal !== undefined) return invalid(`${name}: ${refusal.reason}`);
  return invalid(`expected an array in ${name}, as in ${other}, received none`);
}

function invalid(message: string): ZpublishError {
  return new ZpublishError("invalid-metadata", message);
}
