import { type Axis, cellAxis, centreOf, indexAt } from "../../axis.js";
import type { Box } from "../../protocol.js";
import type { ResolvedView } from "../resolve-view.js";
import type { Place, Plane } from "./plane-box.js";

/** Part of a cell by which a place may be moved. */
const SLACK = 0.01;

/**
 * Returns a place that is short to write and lies in the same cell: near the cell's centre, or near where it was if the plane is that of a
 * curvilinear grid or the place is outside.
 * @param inCells Whether the plane counts cells, whatever the coordinates are.
 */
export function shortPlace(
  place: Place,
  plane: Plane,
  { axes, places }: Pick<ResolvedView, "axes" | "places">,
  inCells: boolean,
): Place {
  const shorten = (value: number, key: "x" | "y"): number => {
    const own = axes && places[axes[key]];
    if (own === undefined) return value;
    const axis = inCells ? cellAxis(own.length) : own;
    return plane.isCurved ? rounded(value, plane[key].cell) : shortCoordinate(axis, value, plane[key].cell);
  };
  return { x: shorten(place.x, "x"), y: shorten(place.y, "y") };
}

/** Part of a box's length that no screen shows. */
const UNSEEN = 1e-6;

/** Returns a box that is shorter to write, and looks the same. */
export function shortBox({ left, right, bottom, top }: Box): Box {
  const shorten = (one: number, other: number) => (value: number) =>
    rounded(value, (Math.abs(one - other) * UNSEEN) / SLACK);
  const [x, y] = [shorten(left, right), shorten(bottom, top)];
  return { left: x(left), right: x(right), bottom: y(bottom), top: y(top) };
}

function shortCoordinate(axis: Axis, value: number, cell: number): number {
  const index = indexAt(axis, value);
  if (index < 0) return rounded(value, cell);
  const turns = axis.period === undefined ? 0 : Math.round((value - centreOf(axis, index)) / axis.period);
  const centre = centreOf(axis, index) + turns * (axis.period ?? 0);
  const short = rounded(centre, cell);
  // Cells of one axis may differ much in length.
  return indexAt(axis, short) === index ? short : centre;
}

/** Rounds a number to the fewest decimals that move it by no more than a part of a cell. */
function rounded(value: number, cell: number): number {
  for (let decimals = 0; decimals <= 12; decimals++) {
    const short = Number(value.toFixed(decimals));
    if (Math.abs(short - value) <= cell * SLACK) return short;
  }
  return value;
}
