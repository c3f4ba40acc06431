import { isCategorical } from "../../cf/packing.js";
import { isNumeric } from "../../codec/item-rows.js";
import type { JsonObject } from "../../json/json-value.js";
import type { Group, Variable } from "../../model/data-tree.js";
import type { CoarsenMethod, LevelMethod } from "../../zarr/plan/compute-step.js";

/** How a variable comes to a coarser level: as it is, coarsened, or not at all. */
export type LevelRule =
  | { readonly kind: "same" }
  | {
      readonly kind: "coarsen";
      readonly method: LevelMethod;
      /** Cells per axis that become one. */
      readonly factors: readonly number[];
    }
  | { readonly kind: "none"; readonly reason: string };

const SAME: LevelRule = Object.freeze({ kind: "same" });

/**
 * Returns how a variable comes to coarser levels. Coordinates are means of their cells. Categories and truth values are never averaged;
 * what has no mean (texts, times, structures, complex numbers) takes the first cell. Bounds of cells become those of coarser cells if they are pairs, and are left out else.
 * @param horizontal Dimensions that are coarsened.
 * @param method How data variables are coarsened.
 */
export function levelRule(
  group: Group,
  variable: Variable,
  horizontal: ReadonlySet<string>,
  method: CoarsenMethod,
): LevelRule {
  const { dims, dataType, attrs, name, shape, chunkShape } = variable;
  const factors = dims.map((dim) => (horizontal.has(dim) ? 2 : 1));
  if (!factors.includes(2)) return SAME;
  const { kind } = dataType;
  if (kind === "O") return { kind: "none", reason: "items of no fixed size cannot be coarsened" };
  if (boundsOf(group).has(name)) {
    const isPairs = factors.length === 2 && factors[0] === 2 && shape[1] === 2 && chunkShape[1] === 2;
    if (isPairs && isNumeric(dataType)) return { kind: "coarsen", method: "bounds", factors };
    return { kind: "none", reason: "expected two bounds per cell of one axis, in one chunk" };
  }
  const asked = group.coordinateNames.has(name) ? "mean" : method;
  if (kind === "b" || isCategorical(attrs))
    return { kind: "coarsen", method: asked === "mean" ? "mode" : asked, factors };
  return { kind: "coarsen", method: isNumeric(dataType) ? asked : "nearest", factors };
}

/** Attributes that say where the cells of the dataset are: of GDAL and rioxarray, and of the convention `spatial:`. */
const PLACES: ReadonlySet<string> = new Set(["GeoTransform", "spatial:transform", "spatial:shape"]);

/**
 * Returns the attributes of a coarser level of a group, or of a variable that stays the same: without those that say where the cells of
 * the dataset are, which win over coordinates. The same object if there are none.
 */
export function withoutPlaces(attrs: JsonObject): JsonObject {
  const entries = Object.entries(attrs);
  const kept = entries.filter(([key]) => !PLACES.has(key));
  return kept.length === entries.length ? attrs : Object.fromEntries(kept);
}

/**
 * Returns the attributes of a variable that is coarsened: as {@link withoutPlaces}, and without the names of variables that are left
 * out. xarray takes no name of a list of coordinates for one if another is missing.
 */
export function levelAttributes(attrs: JsonObject, isLeftOut: (name: string) => boolean): JsonObject {
  const { bounds, coordinates, ...rest } = withoutPlaces(attrs);
  const names = typeof coordinates === "string" ? coordinates.split(/\s+/) : [];
  const hasBounds = bounds !== undefined && !(typeof bounds === "string" && isLeftOut(bounds));
  return {
    ...rest,
    ...(coordinates !== undefined && {
      coordinates: names.some(isLeftOut) ? names.filter((name) => !isLeftOut(name)).join(" ") : coordinates,
    }),
    ...(hasBounds && { bounds }),
  };
}

const boundsOfGroups = new WeakMap<Group, ReadonlySet<string>>();

/** Returns the names of the variables of a group that hold bounds of coordinates (CF section 7.1). */
function boundsOf(group: Group): ReadonlySet<string> {
  let names = boundsOfGroups.get(group);
  if (names === undefined) {
    names = new Set(
      [...group.variables.values()]
        .map(({ attrs }) => attrs.bounds)
        .filter((name) => typeof name === "string"),
    );
    boundsOfGroups.set(group, names);
  }
  return names;
}
