import { format } from "d3-format";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Probe } from "../../protocol.js";
import { IconButton } from "../icons.js";
import type { ExploreModel } from "../model.js";
import type { ResolvedView } from "../resolve-view.js";
import { fileName, pngOf, publicLink, saveFile } from "../save/save-panel.js";
import { bytesText } from "../status-text.js";
import { useValue } from "../use-value.js";
import { Chart } from "./chart.js";
import { cellAt, type PlotZoom, type SeriesPlace, zoomedAbout } from "./plot-axis.js";
import { histogramShown, PlotModel, seriesShown } from "./plot-model.js";
import "./plots.css";

const count = format(",");

/** Choice between series and histogram, and of the axis along which the series runs. */
function PlotChoices({
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
function SeriesProgress({ plot }: { readonly plot: PlotModel }) {
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
function NoPlot({ model }: { readonly model: ExploreModel }) {
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

const NOTHING_READ = new Float64Array();

/** The plot below the picture, or instead of it: a series along one axis at the chosen place, or a histogram. */
export function PlotView({ model }: { readonly model: ExploreModel }) {
  const plot = useMemo(() => new PlotModel(model), [model]);
  useEffect(() => () => plot.close(), [plot]);
  const view = useValue(model.view);
  const place = useValue(plot.place);
  const series = useValue(plot.series);
  const histogram = useValue(plot.histogram);
  const resolved = useValue(model.resolved);
  const [wantsLog, setLog] = useState(false);
  const [zoom, setZoom] = useState<PlotZoom | undefined>();
  const [point, setPoint] = useState<number | undefined>();
  const section = useRef<HTMLElement>(null);
  const isHistogram = view.probe?.plot === "histogram";
  const isOfVariable = useValue(plot.isOfVariable);
  const histogramPlace =
    resolved?.axes === undefined ? "" : isOfVariable ? "sample of the whole variable" : "what is visible";
  const variable = isHistogram ? resolved?.variable : place?.variable;

  const shown = useMemo(() => {
    if (variable === undefined) return undefined;
    if (isHistogram)
      return histogram.found && histogramShown(variable, histogram.found, wantsLog, histogramPlace);
    return (
      place &&
      seriesShown(place, series.values ?? NOTHING_READ, wantsLog, (cell) => showStep(model, place, cell))
    );
  }, [variable, isHistogram, histogram.found, histogramPlace, place, series.values, wantsLog, model]);

  // On a phone the plot of a place that was touched is below the fold.
  const isShown = shown !== undefined;
  useEffect(() => {
    if (isShown) section.current?.scrollIntoView({ block: "nearest" });
  }, [isShown]);

  // Another axis has other bounds.
  const positions = shown?.content.positions;
  useEffect(() => {
    setZoom(undefined);
    setPoint(undefined);
  }, [positions]);

  if (resolved === undefined || variable === undefined) return <NoPlot model={model} />;
  const mark = place === undefined || isHistogram ? undefined : markOf(place, resolved);
  const failure = isHistogram ? histogram.failure : series.failure;
  const saveCsv = (): void => {
    if (shown === undefined) return;
    saveFile(
      fileName([shown.name, shown.place], "csv"),
      new Blob([shown.csv()], { type: "text/csv;charset=utf-8" }),
    );
  };
  const savePng = async (): Promise<void> => {
    const figure = section.current?.querySelector<HTMLElement>(".chart");
    if (shown === undefined || figure === null || figure === undefined) return;
    const title = `${variable.title}: ${shown.name}`;
    const link = publicLink(location.href);
    const png = await pngOf({ title, subtitle: shown.place, link, figure, bar: undefined });
    saveFile(fileName([shown.name, shown.place], "png"), png);
  };
  const isRead = isHistogram || series.values !== undefined;
  // What is not read yet must not look as if it were missing.
  const maySave = shown !== undefined && (isHistogram || (isRead && series.done === series.total));
  const length = shown?.content.positions.length ?? 0;
  const enlarge = (factor: number): void => {
    if (shown !== undefined) setZoom(zoomedAbout(shown.content.positions, zoom, point, factor));
  };
  return (
    <section
      class="plot"
      aria-label="Plot"
      ref={section}
      data-vertical={shown?.content.isVertical === true ? "" : undefined}
    >
      <div class="plot-head">
        <h2>
          {shown?.name ?? "Plot"} <span class="muted">{shown?.place}</span>
        </h2>
        <PlotChoices model={model} plot={plot} along={place?.along} />
        <label class="check">
          <input
            type="checkbox"
            checked={wantsLog}
            onChange={(event) => setLog(event.currentTarget.checked)}
          />{" "}
          log
        </label>
        <button type="button" disabled={zoom === undefined} onClick={() => setZoom(undefined)}>
          Whole axis
        </button>
        <button type="button" disabled={!maySave} onClick={saveCsv} aria-label="Save the plot as CSV">
          CSV
        </button>
        <button type="button" disabled={!maySave} onClick={savePng} aria-label="Save the plot as PNG">
          PNG
        </button>
        {view.probe !== undefined && resolved.axes !== undefined && (
          <IconButton icon="close" label="Close the plot" onClick={() => model.setProbe(undefined)} />
        )}
      </div>
      {failure !== undefined && (
        <p class="error" role="alert">
          {failure.sentence}{" "}
          {failure.mayRetry && !isHistogram && (
            <button type="button" onClick={() => plot.confirm()}>
              Retry
            </button>
          )}
        </p>
      )}
      {!isHistogram && <SeriesProgress plot={plot} />}
      {!isRead && <div class="chart" />}
      {shown !== undefined && isRead && (
        <>
          <Chart
            content={shown.content}
            zoom={zoom}
            point={point}
            mark={mark}
            label={`${shown.name} ${shown.place}: ${shown.summary}`}
            events={{
              onPoint: setPoint,
              onClick: shown.onClick,
              onSelect: (low, high) => setZoom({ low, high }),
            }}
          />
          <div class="plot-foot">
            <input
              type="range"
              min={0}
              max={Math.max(0, length - 1)}
              value={point ?? 0}
              aria-label="Read the plot"
              aria-valuetext={shown.textOf(point ?? 0)}
              onInput={(event) => setPoint(event.currentTarget.valueAsNumber)}
            />
            <IconButton icon="plus" label="Enlarge the axis here" onClick={() => enlarge(0.5)} />
            <IconButton icon="minus" label="Reduce the axis here" onClick={() => enlarge(2)} />
            <output>{point === undefined ? shown.summary : shown.textOf(point)}</output>
          </div>
        </>
      )}
    </section>
  );
}

/** Returns the position of the step that is shown; along an axis of the picture, of the cell that was chosen. */
function markOf({ along, axis, at }: SeriesPlace, { axes, at: shown }: ResolvedView): number | undefined {
  if (axes === undefined) return undefined;
  const isShown = along === axes.x || along === axes.y;
  const cell = (isShown ? at : shown)[along] ?? 0;
  return axis.positions[cellAt(axis, cell)];
}

/** Shows the picture of a step that was clicked in the plot, unless the plot runs along an axis of the picture. */
function showStep(model: ExploreModel, { along }: SeriesPlace, cell: number): void {
  const axes = model.resolved.peek()?.axes;
  if (axes !== undefined && along !== axes.x && along !== axes.y) model.setStep(along, cell);
}
