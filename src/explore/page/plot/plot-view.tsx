import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { IconButton } from "../icons.js";
import type { ExploreModel } from "../model.js";
import type { ResolvedView } from "../resolve-view.js";
import { fileName, saveFile } from "../save/save-file.js";
import { pngOf, publicLink } from "../save/save-png.js";
import { useValue } from "../use-value.js";
import { Chart } from "./chart.js";
import { cellAt, type PlotZoom, type SeriesPlace, zoomedAbout } from "./plot-axis.js";
import { NoPlot, PlotChoices, SeriesProgress } from "./plot-controls.js";
import { PlotModel } from "./plot-model.js";
import { histogramShown, seriesShown } from "./shown-plot.js";
import "./plots.css";

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
