import { useState } from "preact/hooks";
import { CategoryLegend } from "./colour/category-legend.js";
import { ColourBar } from "./colour/colour-bar.js";
import { ColourControls } from "./colour/colour-controls.js";
import { AxisChoice, DimensionControls } from "./dimension-controls.js";
import { Headline } from "./headline.js";
import { HelpDialog } from "./help-dialog.js";
import { MapView } from "./map/map-view.js";
import type { ExploreModel } from "./model.js";
import { PlotView } from "./plot/plot-view.js";
import { CodePanel } from "./save/code-panel.js";
import { SavePanel } from "./save/save-panel.js";
import { StatusLine } from "./status-line.js";
import { TextView } from "./text-view.js";
import { useValue } from "./use-value.js";
import { VariableList } from "./variable-list.js";

/** Part of the page that rises as a sheet on a phone. */
export type SheetName = "variables" | "colours" | "code";

const SHEETS: readonly (readonly [SheetName, string])[] = [
  ["variables", "Variables"],
  ["colours", "Colours"],
  ["code", "Code, save"],
];

/** The whole page. */
export function App({ model }: { readonly model: ExploreModel }) {
  const [sheet, setSheet] = useState<SheetName | undefined>();
  const variable = useValue(model.variable);
  const hasProbe = useValue(model.view).probe !== undefined;
  const categories = useValue(model.colours.categories);
  const form = variable?.problem === undefined ? variable?.form : undefined;
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
        {form === "image" && categories === undefined && <ColourBar model={model} />}
        {form === "image" && categories !== undefined && (
          <CategoryLegend model={model} categories={categories} />
        )}
        {form === "image" && categories === undefined && (
          <div class="sheet" data-name="colours">
            <ColourControls model={model} />
          </div>
        )}
        {form === "text" && <TextView model={model} />}
        {form !== undefined && form !== "text" && <DimensionControls model={model} />}
        {(form === "plot" || (form === "image" && hasProbe)) && <PlotView model={model} />}
        <StatusLine model={model} />
      </div>
      <nav class="sheets" aria-label="Panels">
        {SHEETS.filter(([name]) => name !== "colours" || categories === undefined).map(([name, label]) => (
          <button
            key={name}
            type="button"
            aria-expanded={sheet === name}
            onClick={() => setSheet(sheet === name ? undefined : name)}
          >
            {label}
          </button>
        ))}
      </nav>
      <HelpDialog />
    </div>
  );
}
