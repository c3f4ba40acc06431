import type { ColourScaleName } from "../colour/colour-scales.js";
import type { Box } from "./protocol.js";

/** Everything that the explorer's address holds: a link shows the same. What is undefined is chosen by rule. */
export interface View {
  /** Path of the variable. */
  readonly variable: string | undefined;
  /** Dimensions that run to the right and upwards. */
  readonly x: string | undefined;
  readonly y: string | undefined;
  /** Where the other dimensions stand, by name. */
  readonly at: Readonly<Record<string, Position>>;
  readonly box: Box | undefined;
  /** Whether cells are shown as they are stored, instead of on a map. */
  readonly asImage: boolean;
  readonly colour: ColourChoice;
  /** Place and dimension of the series beside the picture, and how it is plotted. */
  readonly probe: Probe | undefined;
}

/** A position along a dimension: by coordinate, since datasets grow, by index where there is none, or always the last. */
export type Position = { readonly value: string | number } | { readonly index: number } | "last";

/** Choice of colours. */
export interface ColourChoice {
  readonly scale: ColourScaleName | undefined;
  readonly isReversed: boolean;
  readonly isLog: boolean;
  /** By percentiles (default 2 to 98), or by hand. */
  readonly range:
    | { readonly percentiles: readonly [low: number, high: number] }
    | { readonly low: number; readonly high: number }
    | undefined;
  /** Whether the range is symmetric about zero. */
  readonly isSymmetric: boolean;
  /** Whether scale and range stay when another variable is chosen. */
  readonly isLocked: boolean;
}

/** The place of a series. */
export interface Probe {
  readonly x: number;
  readonly y: number;
  readonly along: string | undefined;
  readonly plot: "series" | "histogram";
}

/** View of an address that says nothing. */
export const EMPTY_VIEW: View = Object.freeze({
  variable: undefined,
  x: undefined,
  y: undefined,
  at: Object.freeze({}),
  box: undefined,
  asImage: false,
  colour: Object.freeze({
    scale: undefined,
    isReversed: false,
    isLog: false,
    range: undefined,
    isSymmetric: false,
    isLocked: false,
  }),
  probe: undefined,
});
