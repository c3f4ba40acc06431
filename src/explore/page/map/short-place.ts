import { type Axis, cellAxis, centreOf, indexAt } from "../../axis.js";
import type { Place, Plane } from "./plane-box.js";

/** Part of a cell by which a place may be moved. */
const SLACK = 0.01;

/**
 * Returns a place that is short to write and lies in the same cell: near the cell's centre, or near where it was if the plane is that of a
 * curvilinear grid or the place is outside.
 * @param places Axes to the right and upwards, as their coordinates are.
 * @param inCells Whether the plane counts cells, whatever the coordinates are.
 */
export function shortPlace(
  place: Place,
  plane: Plane,
  places: { readonly x: Axis; readonly y: Axis },
  inCells: boolean,
): Place {
  const shorten = (value: number, key: "x" | "y"): number => {
    const axis = inCells ? cellAxis(places[key].length) : places[key];
    return plane.isCurved ? rounded(value, plane[key].cell) : shortCoordinate(axis, value, plane[key].cell);
  };
  return { x: shorten(place.x, "x"), y: shorten(place.y, "y") };
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
