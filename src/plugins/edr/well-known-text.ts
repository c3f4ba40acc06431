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

/** Types that are read, and how deep their lists nest. */
const DEPTHS = { POINT: 1, MULTIPOINT: 1, LINESTRING: 1, MULTILINESTRING: 2, POLYGON: 2, MULTIPOLYGON: 3 };
type WktType = keyof typeof DEPTHS;

/** Text of a geometry, and the types that are accepted. */
interface WktTask {
  readonly text: string;
  readonly types: readonly WktType[];
}

/** Most positions of a geometry. */
export const MAX_POSITIONS = 2 ** 17;

const HEAD = /\s*([a-z]+?)\s*(zm|z|m)?\s*(?=\()/iy;
const POSITION = /\s*(\(?)\s*([-+.\de]+(?:\s+[-+.\de]+){1,3})\s*(\)?)\s*/iy;

/**
 * Parses a geometry: positions in degrees of longitude and latitude, closed rings. May run in the pool.
 * @throws ZpublishError `invalid-query`; `too-large` if there are too many positions
 */
export default function parseWkt({ text: asked, types }: WktTask): WktGeometry {
  const text = asked.replace(/\s+/g, " ");
  const expected = `${types.join(" or ")} as Well-Known Text, in degrees of longitude and latitude`;
  const refusal = (what = expected, received = text) => wrongParameter("coords", "wkt", what, received);
  HEAD.lastIndex = 0;
  const [head = "", name = "", marks = ""] = HEAD.exec(text) ?? [];
  const type = types.find((each) => each === name.toUpperCase());
  if (type === undefined) throw refusal();
  let at = head.length;
  let stride = marks === "" ? 0 : 2 + marks.length;
  let count = 0;

  /** Reads a list in parentheses, whose items `read` reads. */
  function list<T>(read: () => T): T[] {
    const items: T[] = [];
    skip("(");
    do items.push(read());
    while (skips(","));
    skip(")");
    return items;
  }
  function skips(character: string): boolean {
    while (text[at] === " ") at += 1;
    const isThere = text[at] === character;
    if (isThere) at += 1;
    return isThere;
  }
  function skip(character: string): void {
    if (!skips(character)) throw refusal(expected, text.slice(Math.max(0, at - 20), at + 20));
  }
  function position(): number[] {
    POSITION.lastIndex = at;
    const [all = "", open, texts = "", close] = POSITION.exec(text) ?? [];
    const numbers = texts.split(/\s+/).map(Number);
    // Points of several may be in parentheses of their own; another one ends the list.
    const isOwn = open === "(" && type === "MULTIPOINT";
    const isWhole = open === "" ? true : isOwn && close === ")";
    stride ||= numbers.length;
    const isPlace = numbers.length === stride && numbers.every(Number.isFinite);
    if (!isWhole || !isPlace || Math.abs(numbers[1]!) > 90 || Math.abs(numbers[0]!) > 720)
      throw refusal(expected, text.slice(at, at + 40));
    at += open === "" && close === ")" ? all.lastIndexOf(")") : all.length;
    count += 1;
    if (count > MAX_POSITIONS)
      throw new ZpublishError(
        "too-large",
        `Expected coords of at most ${MAX_POSITIONS} positions, received more`,
      );
    return numbers;
  }
  const ring = () => Float64Array.from(list(position).flat());
  const depth = DEPTHS[type];
  const parts = depth === 3 ? list(() => list(ring)) : depth === 2 ? [list(ring)] : [[ring()]];
  if (text.slice(at).trim() !== "") throw refusal(expected, text.slice(at, at + 40));
  const z = stride === 4 || (stride === 3 && marks.toUpperCase() !== "M") ? 2 : -1;
  const geometry = { type, stride, z, m: stride === 4 ? 3 : stride === 3 && z < 0 ? 2 : -1, parts };
  assertParts(geometry, refusal);
  return geometry;
}

/** @throws ZpublishError `invalid-query` if a line or ring is too short, or a ring is open */
function assertParts(
  { type, stride, parts }: WktGeometry,
  refusal: (expected: string) => ZpublishError,
): void {
  for (const ring of parts.flat()) {
    const length = ring.length / stride;
    if (type === "POINT" && length !== 1) throw refusal("one position of a POINT");
    if (type.endsWith("LINESTRING") && length < 2) throw refusal("lines of at least two positions");
    const isClosed = ring[0] === ring[ring.length - stride] && ring[1] === ring[ring.length - stride + 1];
    if (type.endsWith("POLYGON") && (length < 4 || !isClosed))
      throw refusal("closed rings of at least four positions");
  }
}
