import type { Rgba } from "./frame-painter.js";

/** Returns a colour of a style sheet, from a property that holds `#rrggbb` or `#rgb`. */
export function colourOf(style: CSSStyleDeclaration, property: string): Rgba {
  const text = style.getPropertyValue(property).trim().replace("#", "");
  const long = text.length === 3 ? text.replace(/./g, "$&$&") : text;
  const [red = 0, green = 0, blue = 0] = [0, 2, 4].map((at) => Number.parseInt(long.slice(at, at + 2), 16));
  return [red, green, blue, 255];
}
