import { elementCount } from "../../model/chunk-grid.js";
import type { Variable } from "../../model/data-tree.js";
import type { DatasetSnapshot } from "../dataset.js";
import { listGrids } from "./grids.js";

/** One level of the variable that a viewer should open first. */
export interface LevelSummary {
  readonly level: number;
  /** The variable at that level. */
  readonly variable: Variable;
  readonly byteLength: number;
}

/** Describes the levels of overviews by their largest variable, the dataset itself included; empty if no variable is coarsened. */
export function describeLevels({ levels, arrays }: DatasetSnapshot): readonly LevelSummary[] {
  if (levels === undefined) return [];
  const [grid] = listGrids(levels.dataset.tree, levels.horizontal);
  if (grid === undefined) return [];
  const summaries: LevelSummary[] = [];
  for (let level = 0; level <= levels.count; level++) {
    const variable = arrays.get(`${level}/${grid.variable.path}`)?.variable;
    if (variable === undefined) break;
    summaries.push({
      level,
      variable,
      byteLength: elementCount(variable.shape) * variable.dataType.itemSize,
    });
  }
  return summaries;
}
