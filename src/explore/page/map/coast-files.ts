import type { Box } from "../../protocol.js";
import { type CoastLine, decodeCoastline } from "./coastline.js";
import type { Size } from "./plane-box.js";

/** Lines that are read, finest last; undefined until they are, and null while they are read. */
export interface Coasts {
  coarse: readonly CoastLine[] | null | undefined;
  fine: readonly CoastLine[] | null | undefined;
}

/** Coastlines of a page that has just begun. */
export const COASTS: Coasts = { coarse: undefined, fine: undefined };

/** CSS pixels per degree from which on the coarse coastline looks coarse. */
const FINE_FROM = 4;

/** Reads the coastline that the box asks for, once. Returns whether there is a new one to draw. */
export async function loadCoast(
  coasts: Coasts,
  urls: Readonly<Record<keyof Coasts, string>>,
  box: Box | undefined,
  size: Size,
): Promise<boolean> {
  if (box === undefined) return false;
  const kind = size.height / Math.abs(box.top - box.bottom) > FINE_FROM ? "fine" : "coarse";
  if (coasts[kind] !== undefined) return false;
  coasts[kind] = null;
  const response = await fetch(urls[kind]);
  // A map without its coast is still a map: the request can be seen in the browser's console.
  if (!response.ok) return false;
  coasts[kind] = decodeCoastline(new Uint8Array(await response.arrayBuffer()));
  return true;
}
