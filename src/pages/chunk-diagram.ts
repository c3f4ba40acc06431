import { type Markup, markup, NO_MARKUP, trustedMarkup } from "./markup.js";

/** Pixels of the longest edge, and of the shortest as a share of it. */
const LONGEST = 120;
const SHORTEST_SHARE = 0.22;
/** Maximum of lines drawn across an edge. More would merge. */
const MAX_LINES = 24;
/** Maximum length of a dimension's name; the rest is cut. */
const MAX_NAME_CHARS = 14;
/** Pixels by which the third axis goes right, and up, per pixel of its length. */
const SLANT = 0.45;

interface Edge {
  readonly name: string;
  readonly length: number;
  readonly pixels: number;
  /** Positions of chunk borders as shares of the edge, without its ends. */
  readonly borders: readonly number[];
}

/**
 * Draws the last three axes of an array as a block cut into its chunks, as inline SVG. Empty for scalars and empty arrays.
 * @param dims Names of the axes.
 */
export function renderChunkDiagram(
  dims: readonly string[],
  shape: readonly number[],
  chunkShape: readonly number[],
): Markup {
  if (shape.length === 0 || shape.includes(0)) return NO_MARKUP;
  const first = Math.max(0, shape.length - 3);
  const face = Math.max(...shape.slice(-2));
  const edges = shape
    .slice(first)
    .map((length, index) =>
      edgeOf(dims[first + index] as string, length, chunkShape[first + index] as number, face),
    );
  const x = edges.at(-1) as Edge;
  const y = edges.at(-2) ?? { name: "", length: 1, pixels: 26, borders: [] };
  const z = edges.at(-3);
  const depth = z === undefined ? 0 : z.pixels * SLANT;
  const width = x.pixels + depth;
  const height = y.pixels + depth;
  const labelWidth = y.name === "" ? 0 : 7 * labelOf(y).length + 10;
  return markup`<svg width="${Math.ceil(width + Math.max(labelWidth, 8))}" height="${Math.ceil(height + 20 + (z === undefined ? 0 : 16))}" aria-hidden="true">${trustedMarkup(
    `<g transform="translate(1 ${z === undefined ? 1 : 17})">${block(x, y, z, depth)}</g>`,
  )}${label(0, height + (z === undefined ? 16 : 32), x)}${
    y.name !== "" && label(x.pixels + depth + 8, (z === undefined ? 5 : 21) + y.pixels / 2, y)
  }${z !== undefined && label(Math.max(0, depth - 10), 11, z)}</svg>`;
}

/**
 * Computes one edge. It grows with the fourth root of its share of the face's longer edge: lengths differ by orders of
 * magnitude, and the shortest stays visible.
 */
function edgeOf(name: string, length: number, chunkLength: number, face: number): Edge {
  const share = Math.min(1.2, Math.max(SHORTEST_SHARE, (length / face) ** 0.25));
  const chunks = Math.ceil(length / chunkLength);
  const lines = Math.min(chunks - 1, MAX_LINES);
  const borders = Array.from({ length: lines }, (_, index) =>
    chunks - 1 > MAX_LINES ? (index + 1) / (MAX_LINES + 1) : ((index + 1) * chunkLength) / length,
  );
  return { name, length, pixels: Math.round(LONGEST * share), borders };
}

/** Draws the front face, and the top and right sides if there is a third axis. It writes only numbers: nothing to escape. */
function block(x: Edge, y: Edge, z: Edge | undefined, depth: number): string {
  const w = x.pixels;
  const h = y.pixels;
  let svg = `<rect class="face" x="0" y="${depth}" width="${w}" height="${h}"/>`;
  let lines = "";
  for (const share of x.borders) lines += `M${round(share * w)} ${depth}v${h}`;
  for (const share of y.borders) lines += `M0 ${round(depth + share * h)}h${w}`;
  if (z !== undefined) {
    svg += `<path class="side" d="M0 ${depth}l${depth} ${-depth}h${w}l${-depth} ${depth}zM${w} ${depth}l${depth} ${-depth}v${h}l${-depth} ${depth}z"/>`;
    for (const share of x.borders) lines += `M${round(share * w)} ${depth}l${depth} ${-depth}`;
    for (const share of y.borders) lines += `M${w} ${round(depth + share * h)}l${depth} ${-depth}`;
    for (const share of z.borders) {
      const back = round(share * depth);
      lines += `M${back} ${round(depth - back)}h${w}v${h}`;
    }
  }
  return lines === "" ? svg : `${svg}<path class="line" d="${lines}"/>`;
}

function label(x: number, y: number, edge: Edge): Markup {
  return markup`<text x="${round(x)}" y="${round(y)}">${labelOf(edge)}</text>`;
}

function labelOf({ name, length }: Edge): string {
  return `${name.length > MAX_NAME_CHARS ? `${name.slice(0, MAX_NAME_CHARS - 1)}…` : name} ${length}`;
}

function round(pixels: number): number {
  return Math.round(pixels * 10) / 10;
}
