import type { ListedCells, VariableDescription } from "../../protocol.js";
import { valueText } from "../../value-text.js";
import { finestOf } from "../array-reader.js";
import { PRIORITY, ReadFailure } from "../chunk-queue.js";
import type { DatasetSession } from "../dataset-session.js";
import {
  centresOf,
  cornersUnderPixels,
  createPolygonFinder,
  dotsUnderPixels,
  nearestPlace,
  type PixelMap,
  type Places,
  type Polygons,
  PROJECTED_METRES,
} from "./cells-on-map.js";

/** Most cells of a list that are put on a map. */
const MAX_CELLS = 2 ** 22;
/** Room beside the outermost dots, as part of the extent, and in degrees round a single one. */
const [MARGIN, LONELY_MARGIN] = [0.06, 1];

/** Cells on a map: where they are, and which of them are seen. */
export interface CellsOnMap {
  /** Cells per row; 1 if they have one axis. */
  readonly columns: number;
  readonly centres: Places;
  /** Longitudes and latitudes whose extent is shown, and the room beside it. */
  readonly x: Float64Array;
  readonly y: Float64Array;
  readonly marginOf: (degrees: number) => number;
  /** Returns the cell under the middle of each pixel, -1 where there is none. */
  readonly under: (map: PixelMap) => Int32Array;
  /** Returns the cell at a place; -1 if there is none. */
  readonly at: (x: number, y: number, reach: number) => number;
}

/** An array that was read as a whole. */
export interface WholeNumbers {
  readonly numbers: Float64Array;
  readonly shape: readonly number[];
}

/** Reads the places of the cells of a variable that are a list. @param read Reads the numbers of an array as a whole. @throws ReadFailure */
export async function readListedCells(
  { path, shape, plane, curvilinear }: VariableDescription,
  list: ListedCells,
  read: (path: string) => Promise<WholeNumbers>,
): Promise<CellsOnMap> {
  const columns = plane!.y === plane!.x ? 1 : shape[plane!.x]!;
  const count = shape[plane!.y]! * columns;
  if (count > MAX_CELLS)
    throw new ReadFailure(
      `“${path}” has ${count.toLocaleString("en")} places, more than are put on a map (${MAX_CELLS.toLocaleString("en")}).`,
    );
  const { latitude, longitude } = curvilinear!;
  const [latitudes, longitudes, connectivity, owners] = await Promise.all([
    read(latitude),
    read(longitude),
    list.corners === undefined ? undefined : read(list.corners),
    list.ragged === undefined ? undefined : read(list.ragged.path),
  ]);
  const placesOf = (numbers: WholeNumbers, most: number) => {
    const places = degreesOf(numbers, list, most);
    return owners === undefined ? places : atLastCells(places, owners.numbers, list.ragged!.isCounts, count);
  };
  const [y, x] = [placesOf(latitudes, 90.001), placesOf(longitudes, 720)];
  if (list.shape === "dots") return dotsOnMap({ longitudes: x, latitudes: y }, columns);
  const [outer, inner] = (connectivity ?? latitudes).shape as [number, number];
  const [cells, perCell] = list.isTransposed ? [inner, outer] : [outer, inner];
  const table = connectivity && cornerTable(connectivity.numbers, y.length, list, cells);
  const cornerOf = (cell: number, corner: number) => {
    const place = cell * perCell + corner;
    return table === undefined ? place : table[place]!;
  };
  const polygons: Polygons = { count: cells, x, y, perCell, cornerOf, isGrid: false };
  if (list.shape === "edges") return dotsOnMap(centresOf(polygons), columns);
  if (list.shape === "faces") return polygonsOnMap(polygons, columns, centresOf(polygons));
  const nodes = { longitudes: x, latitudes: y };
  return polygonsOnMap(polygons, columns, nodes, (map, faces) => cornersUnderPixels(polygons, map, faces));
}

/** Returns cells on a map that are polygons. @param refine Turns the polygons under pixels into cells. Default: they are the cells. */
export function polygonsOnMap(
  polygons: Polygons,
  columns: number,
  centres: Places,
  refine = (_map: PixelMap, faces: Int32Array) => faces,
): CellsOnMap {
  const find = createPolygonFinder(polygons);
  const under = (map: PixelMap) => refine(map, find(map));
  const tiny = 1e-9;
  const { x, y } = polygons;
  return {
    columns,
    centres,
    x,
    y,
    marginOf: () => 0,
    under,
    // As one pixel there shows it.
    at: (x, y) =>
      under({ left: x - tiny, right: x + tiny, top: y + tiny, bottom: y - tiny, width: 1, height: 1 })[0]!,
  };
}

function dotsOnMap(centres: Places, columns: number): CellsOnMap {
  return {
    columns,
    centres,
    x: centres.longitudes,
    y: centres.latitudes,
    marginOf: (degrees) => (degrees > 0 ? degrees * MARGIN : LONELY_MARGIN),
    under: (map) => dotsUnderPixels(centres, map),
    at: (x, y, reach) => nearestPlace(centres, x, y, reach),
  };
}

/** Returns coordinates in degrees, NaN for what cannot be one. */
function degreesOf(
  { numbers }: WholeNumbers,
  { isRadians, projection }: ListedCells,
  most: number,
): Float64Array {
  const factor = projection ? projection.scale / PROJECTED_METRES : isRadians ? 180 / Math.PI : 1;
  return numbers.map((number) => (Math.abs(number * factor) <= most ? number * factor : Number.NaN));
}

/** Puts the last cell of each place of a ragged array there; other cells, which would be hidden by it, get NaN. */
function atLastCells(
  places: Float64Array,
  owners: Float64Array,
  isCounts: boolean,
  count: number,
): Float64Array {
  const cells = new Float64Array(count).fill(Number.NaN);
  const lasts = new Int32Array(places.length).fill(-1);
  let end = 0;
  // An index beyond an array changes nothing.
  for (const [index, owner] of owners.entries()) {
    if (!isCounts) lasts[owner] = index;
    else if (owner > 0) {
      end += owner;
      lasts[index] = end - 1;
    }
  }
  for (const [place, cell] of lasts.entries()) cells[cell] = places[place]!;
  return cells;
}

/** Returns the indices of corners by cell, -1 for what is none. */
function cornerTable(
  numbers: Float64Array,
  nodes: number,
  { startIndex, isTransposed }: ListedCells,
  cells: number,
): Int32Array {
  const table = new Int32Array(numbers.length);
  const perCell = numbers.length / cells;
  for (let place = 0; place < table.length; place++) {
    const from = isTransposed ? (place % perCell) * cells + Math.floor(place / perCell) : place;
    const corner = numbers[from]! - startIndex;
    table[place] = corner >= 0 && corner < nodes ? corner : -1;
  }
  return table;
}

/** Reads the names of a cell: those of its station or track, and its time; undefined if it has none. @throws ReadFailure */
export async function nameOfCell(
  session: DatasetSession,
  { dims, curvilinear }: VariableDescription,
  cell: readonly number[],
  signal: AbortSignal,
): Promise<string | undefined> {
  const texts = (curvilinear?.list?.labels ?? []).map(async (path) => {
    const label = session.variable(path);
    const source = finestOf(label);
    const axes = label.dims.map((dim) => dims.indexOf(dim));
    const at = axes.map((axis) => cell[axis] ?? 0);
    const { coords, offset } = session.placeOf(source, at);
    const chunk = await session.readChunk(source, coords, PRIORITY.probe, signal);
    // Characters of a text are an axis of their own.
    const count = axes.at(-1) === -1 ? label.shape.at(-1)! : 1;
    const stride = session.documentOf(source).strides.at(-1) ?? 1;
    const parts = Array.from({ length: count }, (_, index) =>
      valueText(label, chunk, offset + index * stride),
    );
    const text = parts.join("");
    // Characters are bytes, which are UTF-8 in most files, and Latin-1 in others.
    const decoded = new TextDecoder().decode(Uint8Array.from(text, (each) => each.charCodeAt(0)));
    return (count === 1 || decoded.includes("\ufffd") ? text : decoded).trim();
  });
  const name = (await Promise.all(texts)).filter((text) => text !== "").join(" · ");
  return name === "" ? undefined : name;
}
