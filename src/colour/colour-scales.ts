import {
  interpolateBlues,
  interpolateBrBG,
  interpolateCividis,
  interpolateGreys,
  interpolateInferno,
  interpolateMagma,
  interpolatePuOr,
  interpolateRainbow,
  interpolateRdBu,
  interpolateTurbo,
  interpolateViridis,
  schemeTableau10,
} from "d3-scale-chromatic";

/** A colour scale. */
interface ColourScale {
  /** Use of it: from low to high, away from a middle, or round a circle such as directions. */
  readonly kind: "sequential" | "diverging" | "cyclic";
  /** Returns a CSS colour, for a position from 0 to 1. */
  readonly interpolate: (position: number) => string;
}

/**
 * Colour scales by name, those that colour-blind people can read first; turbo is offered since many ask for a rainbow, and is
 * never a default. d3's diverging scales begin with red: here the greatest values are red.
 */
export const COLOUR_SCALES = Object.freeze({
  viridis: { kind: "sequential", interpolate: interpolateViridis },
  cividis: { kind: "sequential", interpolate: interpolateCividis },
  magma: { kind: "sequential", interpolate: interpolateMagma },
  inferno: { kind: "sequential", interpolate: interpolateInferno },
  blues: { kind: "sequential", interpolate: interpolateBlues },
  greys: { kind: "sequential", interpolate: interpolateGreys },
  turbo: { kind: "sequential", interpolate: interpolateTurbo },
  rdbu: { kind: "diverging", interpolate: (position: number) => interpolateRdBu(1 - position) },
  puor: { kind: "diverging", interpolate: (position: number) => interpolatePuOr(1 - position) },
  brbg: { kind: "diverging", interpolate: (position: number) => interpolateBrBG(position) },
  cyclic: { kind: "cyclic", interpolate: interpolateRainbow },
} as const satisfies Record<string, ColourScale>);

/** Name of a colour scale. */
export type ColourScaleName = keyof typeof COLOUR_SCALES;

/** Revision of the tables; part of the ETag of pictures. */
export const COLOUR_REVISION = "1";

/** Tells whether a text names a colour scale. */
export function isColourScaleName(name: string): name is ColourScaleName {
  return Object.hasOwn(COLOUR_SCALES, name);
}

const tables = new Map<string, Uint8Array>();

/**
 * Returns the colours of a scale from its least to its greatest value: 256 × 3 bytes, red first. Shared: must not be changed.
 * @param isReversed Whether the scale begins with the colour of its greatest value. Default false.
 */
export function colourTable(name: ColourScaleName, isReversed = false): Uint8Array {
  const key = `${name} ${isReversed}`;
  let table = tables.get(key);
  if (table === undefined) {
    table = new Uint8Array(256 * 3);
    const { interpolate } = COLOUR_SCALES[name];
    for (let index = 0; index < 256; index++) {
      const position = (isReversed ? 255 - index : index) / 255;
      table.set(channelsOf(interpolate(position)), index * 3);
    }
    tables.set(key, table);
  }
  return table;
}

/**
 * Returns the colours of categories: 3 bytes each, red first. Up to ten have colours that differ clearly; more are spread over a
 * rainbow.
 */
export function categoryColours(count: number): Uint8Array {
  const isFew = count <= schemeTableau10.length;
  const colours = Array.from({ length: count }, (_, index) =>
    isFew ? (schemeTableau10[index] as string) : interpolateTurbo((index + 0.5) / count),
  );
  return Uint8Array.from(colours.flatMap(channelsOf));
}

/** Parses `#rrggbb` and `rgb(r, g, b)`, the forms that d3 writes. */
function channelsOf(colour: string): number[] {
  if (colour.startsWith("#"))
    return [1, 3, 5].map((begin) => Number.parseInt(colour.slice(begin, begin + 2), 16));
  return (colour.match(/-?[\d.]+/g) ?? []).slice(0, 3).map((part) => Math.round(Number(part)));
}
