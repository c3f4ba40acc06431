import type { ExploreModel } from "./model.js";

/** Place of the text view. */
export function TextView(_: { readonly model: ExploreModel }) {
  return null;
}
