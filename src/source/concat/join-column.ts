import { ZpublishError } from "../../errors.js";
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
  const { dims, axis, members } = membersOf(column, parts, scope, dimension);
  const withValues = members.flatMap((member) =>
    member.values === undefined ? [] : [{ ...member, values: member.values }],
  );
  if (axis === 0 && withValues.length === members.length) {
    const { stored, values, isRetimed, warning } = joinValues(withValues, scope.steps, dims);
    const bounds = stored.attrs.bounds ?? stored.attrs.climatology;
    const prefix = column.path.slice(0, column.path.length - column.name.length);
    const isLost = isRetimed && typeof bounds === "string";
    return {
      array: { kind: "values", stored, values },
      warning,
      bounds: isLost ? `${prefix}${bounds}` : undefined,
    };
  }
  const { stored, spans, warning } = joinChunks(members, scope.steps, axis, dims);
  return { array: { kind: "joined", stored, axis, spans }, warning };
}

/** Returns an array without the joined dimension: that of the first part that has it. */
function arrayOfPart({ arrays }: PartColumn, { present, order }: JoinScope): JoinedArray {
  const part = [...present, ...order].find((each) => arrays[each] !== undefined) as number;
  const { stored, dims } = arrays[part] as PartArray;
  return { kind: "part", part, stored: { ...stored, dimNames: dims } };
}

/** Returns the arrays of the parts that have steps, whose dimensions are equal. */
function membersOf(
  { path, arrays }: PartColumn,
  parts: readonly PartDescription[],
  { present, weights, lengths }: JoinScope,
  dimension: string,
) {
  const nameOf = (part: number) => (parts[part] as PartDescription).name;
  const firstPart = present.find((part) => arrays[part] !== undefined);
  if (firstPart === undefined) {
    throw invalid(`expected an array in a file with steps along '${dimension}', received none`);
  }
  const { dims } = arrays[firstPart] as PartArray;
  const axis = dims.indexOf(dimension);
  const members = present.map((part) => {
    const array = arrays[part];
    const as = `in ${nameOf(part)}, as in ${nameOf(firstPart)}`;
    if (array === undefined) {
      const { refused, name } = parts[part] as PartDescription;
      const refusal = refused.find((each) => path === each.path || path.startsWith(`${each.path}/`));
      if (refusal !== undefined) throw invalid(`${name}: ${refusal.reason}`);
      throw invalid(`expected an array ${as}, received none`);
    }
    if (array.dims !== dims && array.dims.join() !== dims.join()) {
      throw invalid(`expected dimensions [${dims.join(", ")}] ${as}, received [${array.dims.join(", ")}]`);
    }
    const length = array.stored.shape[axis];
    if (axis >= 0 && length !== lengths[part]) {
      throw invalid(
        `expected ${lengths[part]} steps along '${dimension}' in ${nameOf(part)}, as its other arrays have, received ${length}`,
      );
    }
    return {
      ...{ part, name: nameOf(part), weight: weights.get(part) ?? 0 },
      ...{ stored: array.stored, values: array.values },
    };
  });
  if (axis < 0) {
    const other = arrays.findIndex((array) => array?.dims.includes(dimension));
    throw invalid(
      `expected dimensions [${dims.join(", ")}] in ${nameOf(other)}, as in ${nameOf(firstPart)}, received [${arrays[other]?.dims.join(", ")}]`,
    );
  }
  return { dims, axis, members };
}

function invalid(message: string): ZpublishError {
  return new ZpublishError("invalid-metadata", message);
}
