import { wrongParameter, ZpublishError } from "../../plugin-api.js";

/** A geometry of Well-Known Text (OGC 06-103r4). Plain data. */
export interface WktGeometry {
  readonly type: WktType;
  /** Numbers per position: x and y, then z and m if there are such. */
  readonly stride: number;
  /** Places of z and m in a position; -1 if there are none. */
  readonly z: number;
  readonly m: number;
  /** Points; lines; polygons, each a list of rings. One after the other, all numbers of a ring, a line or all points in one array. */
  readonly parts: readonly (readonly Float64Array[])[];
}

const NUMBER = "[-+.\\de]{1,40}";
const POSITION = `${NUMBER}(?: ${NUMBER}){1,3}`;
const POSITIONS = listOf(POSITION);
/** Lists that follow the name of a type, in texts with single spaces. */
const LISTS = {
  POINT: `\\( ?${POSITION} ?\\)`,
  MULTIPOINT: listOf(`(?:${POSITION}|\\( ?${POSITION} ?\\))`),
  LINESTRING: POSITIONS,
  MULTILINESTRING: listOf(POSITIONS),
  POLYGON: listOf(POSITIONS),
  MULTIPOLYGON: listOf(listOf(POSITIONS)),
};
type WktType = keyof typeof LISTS;

function listOf(item: string): string {
  return `\\( ?${item}(?: ?, ?${item})* ?\\)`;
}

/** Text of a geometry, and the types that are accepted. */
interface WktTask {
  readonly text: string;
  readonly types: readonly WktType[];
}

/** Most positions of a geometry. */
export const MAX_POSITIONS = 2 ** 17;

/**
 * Parses a geometry: positions in degrees of longitude and latitude, closed rings. May run in the pool.
 * @throws ZpublishError `invalid-query`; `too-large` if there are too many positions
 */
export default function parseWkt({ text, types }: WktTask): WktGeometry {
  const expected = `${types.join(" or ")} as Well-Known Text, in degrees of longitude and latitude`;
  const refusal = (what = expected) => wrongParameter("coords", "wkt", what, text);
  if (text.split(",", MAX_POSITIONS + 1).length > MAX_POSITIONS) {
    const most = `Expected coords of at most ${MAX_POSITIONS} positions, received more`;
    throw new ZpublishError("too-large", most);
  }
  const spaced = text.replace(/\s+/g, " ").trim();
  const matchOf = (type: WktType) => new RegExp(`^${type} ?(zm|z|m)? ?(${LISTS[type]})$`, "i").exec(spaced);
  const type = types.find(matchOf);
  if (type === undefined) throw refusal();
  const [, marks = "", lists = ""] = matchOf(type)!;
  const parts = partsOf(type, lists);
  const stride = marks === "" ? parts[0]![0]![0]!.length : 2 + marks.length;
  for (const ring of parts.flat()) {
    const isPlace = (position: readonly number[]) =>
      position.length === stride && position.every(Number.isFinite) && Math.abs(position[1]!) <= 90;
    if (!ring.every((position) => isPlace(position) && Math.abs(position[0]!) <= 720)) throw refusal();
    if (type.endsWith("LINESTRING") && ring.length < 2) throw refusal("lines of at least two positions");
    const [[x, y], [lastX, lastY]] = [ring[0]!, ring.at(-1)!];
    if (type.endsWith("POLYGON") && (ring.length < 4 || x !== lastX || y !== lastY))
      throw refusal("closed rings of at least four positions");
  }
  const z = stride === 4 || (stride === 3 && marks.toUpperCase() !== "M") ? 2 : -1;
  const flat = parts.map((rings) => rings.map((ring) => Float64Array.from(ring.flat())));
  return { type, stride, z, m: stride === 4 ? 3 : stride === 3 && z < 0 ? 2 : -1, parts: flat };
}

/** Reads lists as JSON, in which positions are lists, too. */
function partsOf(type: WktType, lists: string): number[][][][] {
  const json = lists
    .replace(new RegExp(POSITION, "gi"), (position) => JSON.stringify(position.split(" ").map(Number)))
    .replaceAll("(", "[")
    .replaceAll(")", "]");
  const value = JSON.parse(json);
  if (type === "MULTIPOLYGON") return value;
  if (type === "POLYGON" || type === "MULTILINESTRING") return [value];
  // Points of several may be in parentheses of their own.
  return [[value.map((position: number[] | number[][]) => position.flat())]];
}

/** A region in degrees. */
export interface DegreeBox {
  readonly west: number;
  readonly south: number;
  readonly east: number;
  readonly north: number;
}

/** Returns the region of a geometry. */
export function regionOf({ parts, stride }: Pick<WktGeometry, "parts" | "stride">): DegreeBox {
  let [west, south, east, north] = [720, 90, -720, -90];
  for (const ring of parts.flat())
    for (let at = 0; at < ring.length; at += stride) {
      [west, east] = [Math.min(west, ring[at]!), Math.max(east, ring[at]!)];
      [south, north] = [Math.min(south, ring[at + 1]!), Math.max(north, ring[at + 1]!)];
    }
  return { west, south, east, north };
}
