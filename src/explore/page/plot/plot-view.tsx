import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Probe } from "../../protocol.js";
import { count } from "../axis-ticks.js";
import { Check, Choice, Failure, IconButton } from "../controls.js";
import { useValue } from "../hooks.js";
import type { ExploreModel } from "../model.js";
import { fileName, saveFile, savePng } from "../save/save-panel.js";
import { bytesText } from "../status-text.js";
import { Chart } from "./chart.js";
import { cellOfPosition, type PlotZoom, type SeriesPlace, zoomedAbout } from "./plot-axis.js";
import { histogramShown, PlotModel, type ShownPlot, seriesShown } from "./plot-model.js";
import "./plots.css";
import type { ResolvedView } from "../page-state.js";

/** Choice between series and histogram, and of the axis along which the series runs. */
function PlotChoices({ model, along }: { readonly model: ExploreModel; readonly along: number | undefined }) {
  const resolved = useValue(model.resolved);
  const { probe } = useValue(model.view);
  if (resolved === undefined) return null;
  const { dims } = resolved.variable;
  const change = (part: Partial<Probe>): void =>
    model.setProbe({ x: 0, y: 0, along: undefined, plot: "series", ...probe, ...part });
  return (
    <>
      <Choice
        label="Plot"
        value={probe?.plot ?? "series"}
        options={[
          ["series", "series"],
          ["histogram", "histogram"],
        ]}
        onChoose={(chosen) => change({ plot: chosen })}
      />
      {probe?.plot !== "histogram" && along !== undefined && dims.length > 1 && (
        <Choice
          label="along"
          value={dims[along]!}
          options={dims.map((dim) => [dim, dim])}
          onChoose={(dim) => change({ along: dim })}
        />
      )}
    </>
  );
}

/** How far a series is read, and what can be done about it. */
function SeriesProgress({ plot }: { readonly plot: PlotModel }) {
  const { tooMuch, done, total, isReading, failure } = useValue(plot.series);
  const noteOf = (text: string, action: string, onClick: () => void) => (
    <p class="note">
      {isReading && <progress max={total} value={done} aria-label="Chunks read" />}
      {text}{" "}
      <button type="button" onClick={onClick}>
        {action}
      </button>
    </p>
  );
  const confirm = () => plot.confirm();
  const read = `${count(done)} of ${count(total)} chunks`;
  if (tooMuch !== undefined) {
    const cost = `${count(tooMuch.chunks)} chunks, about ${bytesText(tooMuch.bytes)}`;
    return noteOf(`This plot has to read ${cost}.`, "Read them", confirm);
  }
  if (isReading) return total > 0 ? noteOf(read, "Stop", () => plot.cancel()) : null;
  if (failure !== undefined || done === total) return null;
  return noteOf(`Stopped after ${read}.`, "Read the rest", confirm);
}

/** Stands where a plot would be, as long as its place is not found, or if it lies outside of the grid. */
function NoPlot({ model }: { readonly model: ExploreModel }) {
  const fixed = useValue(model.probes.fixed);
  return (
    <section class="plot" aria-label="Plot">
      {fixed !== undefined && fixed.cell === undefined && (
        <p class="note">
          This place is outside the grid, so there is nothing to plot.{" "}
          <button type="button" onClick={() => model.setProbe(undefined)}>
            Close the plot
          </button>
        </p>
      )}
    </section>
  );
}

const NOTHING_READ = new Float64Array();

/** Returns what the plot shows, of which variable, and what stands in its way; rendered again when these change. */
function useShownPlot(model: ExploreModel, plot: PlotModel, wantsLog: boolean) {
  const isHistogram = useValue(model.view).probe?.plot === "histogram";
  const place = useValue(plot.place);
  const series = useValue(plot.series);
  const histogram = useValue(plot.histogram);
  const resolved = useValue(model.resolved);
  const variable = isHistogram ? resolved?.variable : place?.variable;
  const histogramPlace = resolved?.axes === undefined ? "" : "of the visible cells";
  const shown = useMemo(() => {
    if (variable === undefined) return undefined;
    if (isHistogram)
      return histogram.found && histogramShown(variable, histogram.found, wantsLog, histogramPlace);
    const values = series.values ?? NOTHING_READ;
    return place && seriesShown(place, values, wantsLog, (cell) => showStep(model, place, cell));
  }, [variable, isHistogram, histogram.found, histogramPlace, place, series.values, wantsLog, model]);
  const isRead = isHistogram || series.values !== undefined;
  return {
    shown,
    variable,
    isHistogram,
    isRead,
    // What is not read yet must not look as if it were missing.
    maySave: shown !== undefined && isRead && (isHistogram || series.done === series.total),
    mark: place === undefined || isHistogram ? undefined : resolved && markOf(place, resolved),
    failure: isHistogram ? histogram.failure : series.failure,
  };
}

/** The plot below the picture, or instead of it: a series along one axis at the chosen place, or a histogram. */
export function PlotView({ model }: { readonly model: ExploreModel }) {
  const plot = useMemo(() => new PlotModel(model), [model]);
  useEffect(() => () => plot.close(), [plot]);
  const [wantsLog, setLog] = useState(false);
  const section = useRef<HTMLElement>(null);
  const hasProbe = useValue(model.view).probe !== undefined;
  const resolved = useValue(model.resolved);
  const place = useValue(plot.place);
  const { shown, variable, isHistogram, isRead, maySave, mark, failure } = useShownPlot(
    model,
    plot,
    wantsLog,
  );
  const [zoom, setZoom] = useState<PlotZoom | undefined>();

  // On a phone the plot of a place that was touched is below the fold.
  const isShown = shown !== undefined;
  useEffect(() => {
    if (isShown) section.current?.scrollIntoView({ block: "nearest" });
  }, [isShown]);
  // Another axis has other bounds.
  useEffect(() => setZoom(undefined), [shown?.axis.positions]);

  if (resolved === undefined || variable === undefined) return <NoPlot model={model} />;
  return (
    <section
      class="plot"
      aria-label="Plot"
      ref={section}
      data-vertical={shown?.axis.isVertical === true ? "" : undefined}
    >
      <div class="plot-head">
        <h2>
          {shown?.name ?? "Plot"} <span class="muted">{shown?.place}</span>
        </h2>
        {hasProbe && resolved.axes !== undefined && (
          <IconButton icon="close" label="Close the plot" onClick={() => model.setProbe(undefined)} />
        )}
        <PlotChoices model={model} along={place?.along} />
        <Check label="Log scale" isSet={wantsLog} onChange={setLog} />
        <button type="button" disabled={zoom === undefined} onClick={() => setZoom(undefined)}>
          Reset zoom
        </button>
        <SaveButtons shown={maySave ? shown : undefined} section={section} />
      </div>
      {failure !== undefined && (
        <Failure
          sentence={failure.sentence}
          onRetry={failure.mayRetry && !isHistogram ? () => plot.confirm() : undefined}
        />
      )}
      {!isHistogram && <SeriesProgress plot={plot} />}
      {!isRead && <div class="chart" />}
      {shown !== undefined && isRead && <ReadPlot shown={shown} mark={mark} zoom={zoom} setZoom={setZoom} />}
    </section>
  );
}

/** Buttons that save a plot; they are off if there is none to save. */
function SaveButtons(props: {
  readonly shown: ShownPlot | undefined;
  readonly section: { readonly current: HTMLElement | null };
}) {
  const { shown, section } = props;
  const saveCsv = (): void => {
    if (shown === undefined) return;
    const csv = new Blob([shown.csv()], { type: "text/csv;charset=utf-8" });
    saveFile(fileName([shown.name, shown.place], "csv"), csv);
  };
  const savePicture = (): void => {
    const figure = section.current?.querySelector<HTMLElement>(".chart");
    if (shown === undefined || figure == null) return;
    const title = `${shown.variable.title}: ${shown.name}`;
    savePng([shown.name, shown.place], { title, subtitle: shown.place, figure, bar: undefined });
  };
  return (
    <>
      <button type="button" disabled={!shown} onClick={saveCsv} aria-label="Save the plot as CSV">
        CSV
      </button>
      <button type="button" disabled={!shown} onClick={savePicture} aria-label="Save the plot as PNG">
        PNG
      </button>
    </>
  );
}

/** The chart, and below it what reads it out. */
function ReadPlot(props: {
  readonly shown: ShownPlot;
  readonly mark: number | undefined;
  readonly zoom: PlotZoom | undefined;
  readonly setZoom: (zoom: PlotZoom | undefined) => void;
}) {
  const { shown, mark, zoom, setZoom } = props;
  const { positions } = shown.axis;
  const [point, setPoint] = useState<number | undefined>();
  useEffect(() => setPoint(undefined), [positions]);
  const enlarge = (factor: number): void => setZoom(zoomedAbout(positions, zoom, point, factor));
  return (
    <>
      <Chart
        shown={shown}
        zoom={zoom}
        point={point}
        mark={mark}
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
          max={Math.max(0, positions.length - 1)}
          value={point ?? 0}
          aria-label="Read values"
          aria-valuetext={shown.textOf(point ?? 0)}
          onInput={(event) => setPoint(event.currentTarget.valueAsNumber)}
        />
        <IconButton icon="plus" label="Zoom in on the plot" onClick={() => enlarge(0.5)} />
        <IconButton icon="minus" label="Zoom out of the plot" onClick={() => enlarge(2)} />
        <output>{point === undefined ? shown.summary : shown.textOf(point)}</output>
      </div>
    </>
  );
}

/** Returns the position of the step that is shown; along an axis of the picture, of the cell that was chosen. */
function markOf({ along, axis, at }: SeriesPlace, { axes, at: shown }: ResolvedView): number | undefined {
  if (axes === undefined) return undefined;
  const isShown = along === axes.x || along === axes.y;
  const cell = (isShown ? at : shown)[along] ?? 0;
  return axis.positions[cellOfPosition(axis, cell)];
}

/** Shows the picture of a step that was clicked in the plot, unless the plot runs along an axis of the picture. */
function showStep(model: ExploreModel, { along }: SeriesPlace, cell: number): void {
  const axes = model.resolved.peek()?.axes;
  if (axes !== undefined && along !== axes.x && along !== axes.y) model.setStep(along, cell);
}
