import { format } from "d3-format";
import type { Probe } from "../../view.js";
import type { ExploreModel } from "../model.js";
import { bytesText } from "../status-text.js";
import { useValue } from "../use-value.js";
import type { PlotModel } from "./plot-model.js";

const count = format(",");

/** Choice between series and histogram, and of the axis along which the series runs. */
export function PlotChoices({
  model,
  plot,
  along,
}: {
  readonly model: ExploreModel;
  readonly plot: PlotModel;
  readonly along: number | undefined;
}) {
  const isOfVariable = useValue(plot.isOfVariable);
  const resolved = useValue(model.resolved);
  const { probe } = useValue(model.view);
  if (resolved === undefined) return null;
  const { variable, axes } = resolved;
  const change = (part: Partial<Probe>): void =>
    model.setProbe({ x: 0, y: 0, along: undefined, plot: "series", ...probe, ...part });
  return (
    <>
      <label>
        plot{" "}
        <select
          value={probe?.plot ?? "series"}
          onChange={(event) =>
            change({ plot: event.currentTarget.value === "histogram" ? "histogram" : "series" })
          }
        >
          <option value="series">series</option>
          <option value="histogram">histogram</option>
        </select>
      </label>
      {probe?.plot === "histogram" && axes !== undefined && (
        <label>
          of{" "}
          <select
            value={isOfVariable ? "variable" : "visible"}
            onChange={(event) => {
              plot.isOfVariable.value = event.currentTarget.value === "variable";
            }}
          >
            <option value="visible">what is visible</option>
            <option value="variable">the variable</option>
          </select>
        </label>
      )}
      {probe?.plot !== "histogram" && along !== undefined && variable.dims.length > 1 && (
        <label>
          along{" "}
          <select
            value={variable.dims[along]}
            onChange={(event) => change({ along: event.currentTarget.value })}
          >
            {variable.dims.map((dim) => (
              <option key={dim} value={dim}>
                {dim}
              </option>
            ))}
          </select>
        </label>
      )}
    </>
  );
}

/** How far a series is read, and what can be done about it. */
export function SeriesProgress({ plot }: { readonly plot: PlotModel }) {
  const { tooMuch, done, total, isReading, failure } = useValue(plot.series);
  if (tooMuch !== undefined) {
    return (
      <p class="note">
        This plot reads {count(tooMuch.chunks)} chunks, about {bytesText(tooMuch.bytes)}.{" "}
        <button type="button" onClick={() => plot.confirm()}>
          Read them
        </button>
      </p>
    );
  }
  if (isReading && total > 0) {
    return (
      <p class="note" data-reading>
        <progress max={total} value={done} aria-label="Chunks read" /> {count(done)} of {count(total)} chunks{" "}
        <button type="button" onClick={() => plot.cancel()}>
          Stop
        </button>
      </p>
    );
  }
  if (isReading || failure !== undefined || done === total) return null;
  return (
    <p class="note">
      Stopped after {count(done)} of {count(total)} chunks.{" "}
      <button type="button" onClick={() => plot.confirm()}>
        Read the rest
      </button>
    </p>
  );
}

/** Stands where a plot would be, as long as its place is not found, or if it lies outside of the grid. */
export function NoPlot({ model }: { readonly model: ExploreModel }) {
  const fixed = useValue(model.probes.fixed);
  return (
    <section class="plot" aria-label="Plot">
      {fixed !== undefined && fixed.cell === undefined && (
        <p class="note">
          This place is outside of the grid: there is nothing to plot.{" "}
          <button type="button" onClick={() => model.setProbe(undefined)}>
            Close the plot
          </button>
        </p>
      )}
    </section>
  );
}
