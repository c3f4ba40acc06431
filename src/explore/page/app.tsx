import { useEffect, useState } from "preact/hooks";
import { otherAxes } from "../protocol.js";
import { stepText } from "./axis-ticks.js";
import { CategoryLegend } from "./colour/category-legend.js";
import { ColourBar } from "./colour/colour-bar.js";
import { ColourControls } from "./colour/colour-controls.js";
import { CopyButton } from "./controls.js";
import { AxisChoice, DimensionControls } from "./dimension-controls.js";
import { HelpDialog, openHelp } from "./help-dialog.js";
import { useComputed, useValue } from "./hooks.js";
import { MapView } from "./map/map-view.js";
import type { ExploreModel } from "./model.js";
import { PlotView } from "./plot/plot-view.js";
import { CodePanel } from "./save/code-panel.js";
import { SavePanel } from "./save/save-panel.js";
import { announcementOf, emptinessOf, statusOf } from "./status-text.js";
import { TextView } from "./text-view.js";
import { VariableList } from "./variable-list.js";

/** Head of the page: dataset, variable with units, the step that is shown, links. */
function Headline({ model }: { readonly model: ExploreModel }) {
  const variable = useValue(model.variable);
  const step = useComputed(() => shownStep(model), [model]);
  const { dataset, title, page } = model.source;
  return (
    <header class="head">
      <p class="crumb">
        <a href={page}>{title}</a> <span class="muted">· Explore</span>
      </p>
      <h1>
        {variable === undefined ? dataset : variable.title}
        {variable?.units !== undefined && <span class="units"> [{variable.units}]</span>}
      </h1>
      {step !== undefined && (
        <p class="step">
          {step.asked}
          {step.shown !== step.asked && <span class="muted"> · showing {step.shown}</span>}
        </p>
      )}
      <p class="links">
        <CopyButton label="Copy link" textOf={() => location.href} class="quiet" id="copy-link" />
        <button type="button" class="quiet" onClick={openHelp}>
          Keys and help
        </button>
      </p>
    </header>
  );
}

/** Returns the steps that are asked for and shown, as text, time first; undefined if the variable has no other axes. */
function shownStep(model: ExploreModel): { readonly asked: string; readonly shown: string } | undefined {
  const resolved = model.resolved.value;
  const frame = model.picture.frame.value;
  if (resolved?.axes === undefined) return undefined;
  const { axes, variable, values, bands } = resolved;
  const isTime = (axis: number) => variable.axes[axis]?.role === "T";
  const others = otherAxes(variable, axes).filter((axis) => axis !== bands?.axis);
  const textOf = (at: readonly number[]): string =>
    [...others.filter(isTime), ...others.filter((axis) => !isTime(axis))]
      .map((axis) => stepText(values[axis]!, at[axis]!))
      .join(" · ");
  const asked = textOf(resolved.at);
  if (asked === "") return undefined;
  // Steps that follow each other quickly need no words.
  const isBehind = model.picture.isDimmed.value && frame?.request.selection.variable === variable.path;
  return { asked, shown: isBehind ? textOf(frame.request.selection.at) : asked };
}

/** Milliseconds after which the page says that it is reading. */
const QUIET_MS = 150;

/** What the page is doing, what went wrong, and what helps. */
function StatusLine({ model }: { readonly model: ExploreModel }) {
  const status = useComputed(() => statusOf(model), [model]);
  const announcement = useComputed(() => announcementOf(model), [model]);
  return (
    <footer class="status">
      <div class="messages">
        {status.messages.map(({ kind, text, actions }) => (
          <p key={text} class={kind} role={kind === "error" ? "alert" : undefined}>
            {text}{" "}
            {actions.map(({ label, run }) => (
              <button type="button" key={label} onClick={() => run(model)}>
                {label}
              </button>
            ))}
          </p>
        ))}
      </div>
      <span class="progress">{useLate(status.progress, status.isBusy)}</span>
      <div class="spoken" aria-live="polite">
        {announcement}
      </div>
    </footer>
  );
}

/** Returns a text at once, or only after a moment if it tells of something that may be over by then. */
function useLate(text: string, isLate: boolean): string {
  const [shown, setShown] = useState(text);
  useEffect(() => {
    if (!isLate) {
      setShown(text);
      return undefined;
    }
    const timer = setTimeout(() => setShown(text), QUIET_MS);
    return () => clearTimeout(timer);
  }, [text, isLate]);
  return shown;
}

type SheetName = "variables" | "colours" | "code";

const SHEETS: readonly (readonly [SheetName, string])[] = [
  ["variables", "Variables"],
  ["colours", "Colours"],
  ["code", "Code, save"],
];

/** The whole page. */
export function ExplorerPage({ model }: { readonly model: ExploreModel }) {
  const [sheet, setSheet] = useState<SheetName | undefined>();
  const variable = useValue(model.variable);
  const hasProbe = useValue(model.view).probe !== undefined;
  const categories = useValue(model.colours.categories);
  const isColour = useValue(model.resolved)?.bands !== undefined;
  const form = variable?.problem === undefined ? variable?.form : undefined;
  const dataset = useValue(model.dataset);
  const emptiness = dataset && emptinessOf(dataset);
  return (
    <div class="app" data-sheet={sheet} data-form={form}>
      <Headline model={model} />
      <div class="side">
        <div class="sheet" data-name="variables">
          <VariableList model={model} onChosen={() => setSheet(undefined)} />
          <AxisChoice model={model} />
        </div>
        <div class="sheet" data-name="code">
          <CodePanel model={model} />
          <SavePanel model={model} />
        </div>
      </div>
      <div class="stage">
        {form === "image" && <MapView model={model} />}
        {form === "image" && categories !== undefined && (
          <CategoryLegend model={model} categories={categories} />
        )}
        {form === "image" && categories === undefined && !isColour && (
          <>
            <ColourBar model={model} />
            <div class="sheet" data-name="colours">
              <ColourControls model={model} />
            </div>
          </>
        )}
        {form === "text" && <TextView model={model} />}
        {emptiness !== undefined && <p class="empty">{emptiness}</p>}
        {form !== undefined && form !== "text" && <DimensionControls model={model} />}
        {(form === "plot" || (form === "image" && hasProbe)) && <PlotView model={model} />}
        <StatusLine model={model} />
      </div>
      <nav class="sheets" aria-label="Panels">
        {SHEETS.filter(([name]) => name !== "colours" || (categories === undefined && !isColour)).map(
          ([name, label]) => (
            <button
              key={name}
              type="button"
              aria-expanded={sheet === name}
              onClick={() => setSheet(sheet === name ? undefined : name)}
            >
              {label}
            </button>
          ),
        )}
      </nav>
      <HelpDialog />
    </div>
  );
}
