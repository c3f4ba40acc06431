import type { ExploreModel } from "./model.js";

/** Place of the save panel. */
export function SavePanel(_: { readonly model: ExploreModel }) {
  return null;
}
