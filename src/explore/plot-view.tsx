import type { ExploreModel } from "./model.js";

/** Place of the plot view. */
export function PlotView(_: { readonly model: ExploreModel }) {
  return null;
}
