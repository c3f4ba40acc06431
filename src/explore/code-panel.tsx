import type { ExploreModel } from "./model.js";

/** Place of the code panel. */
export function CodePanel(_: { readonly model: ExploreModel }) {
  return null;
}
