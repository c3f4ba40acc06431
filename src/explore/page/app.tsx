import { useEffect, useState } from "preact/hooks";
import { unitText } from "../../cf/unit-text.js";
import type { VariableDescription } from "../protocol.js";
import { CategoryLegend } from "./colour/category-legend.js";
import { ColourBar } from "./colour/colour-bar.js";
import { ColourControls } from "./colour/colour-controls.js";
import { Choice, CopyButton } from "./controls.js";
import { AxisChoice, DimensionControls } from "./dimension-controls.js";
import { HelpDialog, openHelp } from "./help-dialog.js";
import { useComputed, useValue } from "./hooks.js";
import { MapView } from "./map/map-view.js";
import type { ExploreModel } from "./model.js";
import { PlotView } from "./plot/plot-view.js";
import { CodePanel } from "./save/code-panel.js";
import { SavePanel } from "./save/save-panel.js";
import { announcementOf, emptinessOf, otherSteps, shownSteps, statusOf } from "./status-text.js";
import { TextView } from "./text-view.js";
import { formatViewHash } from "./view-hash.js";

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
      <h1 title={variable?.title}>
        {variable === undefined ? dataset : variable.title}
        {variable?.units !== undefined && <span class="muted"> [{unitText(variable.units)}]</span>}
      </h1>
      {step !== undefined && (
        <p class="step">
          {step.asked}
          {step.shown !== step.asked && <span class="muted"> · showing {step.shown}</span>}
        </p>
      )}
      <p class="links">
        <CopyButton label="Copy link" textOf={() => location.href} id="copy-link" />
        <button type="button" onClick={openHelp}>
          Help
        </button>
      </p>
    </header>
  );
}

/** Returns the steps that are asked for and shown, as text, time first; undefined if the variable has no other axes. */
function shownStep(model: ExploreModel): { readonly asked: string; readonly shown: string } | undefined {
  const resolved = model.resolved.value;
  if (resolved?.axes === undefined) return undefined;
  const asked = otherSteps(resolved).join(" · ");
  if (asked === "") return undefined;
  // Steps that follow each other quickly need no words.
  return { asked, shown: model.picture.isDimmed.value ? shownSteps(model, resolved).join(" · ") : asked };
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
      <span class="progress muted">{useLate(status.progress, status.isBusy)}</span>
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
  ["code", "Export"],
];

/** Variables from which on the list can be filtered. */
const FILTER_FROM = 8;

/** List of the variables, data before coordinates, with a filter if there are many. */
function VariableList(props: { readonly model: ExploreModel; readonly onChosen: () => void }) {
  const { model, onChosen } = props;
  const dataset = useValue(model.dataset);
  const current = useValue(model.variable);
  const [filter, setFilter] = useState("");
  const variables = (dataset?.variables ?? []).filter((each) => matches(each, filter));
  const choose = (path: string): void => {
    model.chooseVariable(path);
    onChosen();
  };
  const lists = [
    ["Variables", variables.filter((each) => !each.isCoordinate)],
    ["Coordinates", variables.filter((each) => each.isCoordinate)],
  ] as const;
  return (
    <nav class="variables" aria-label="Variables">
      {(dataset?.variables.length ?? 0) >= FILTER_FROM && (
        <input
          type="search"
          placeholder="Filter…"
          aria-label="Filter variables"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
      )}
      {lists.map(
        ([title, list]) =>
          list.length > 0 && (
            <section key={title}>
              <h2>{title}</h2>
              <ul>
                {list.map((each) => (
                  <li key={each.path}>
                    <button
                      type="button"
                      class="variable"
                      title={each.problem ?? each.title}
                      aria-current={each === current ? "true" : undefined}
                      onClick={() => choose(each.path)}
                    >
                      <span class="name">
                        {each.path.split(/(?<=\/)/).map((part) => [part, <wbr key={part} />])}
                      </span>
                      <span class="dims">{each.dims.join(" ")}</span>
                    </button>
                  </li>
                ))}
              </ul>
            </section>
          ),
      )}
      {filter !== "" && variables.length === 0 && <p class="muted">No variable matches “{filter}”.</p>}
    </nav>
  );
}

/** A version of the dataset, as the server lists it. */
interface ListedVersion {
  readonly kind: "branch" | "tag" | "snapshot";
  readonly name: string;
  readonly time: string;
  readonly message: string;
  /** Id of the dataset at this version. */
  readonly id: string;
}

/** Opens the same view of another version of the dataset. Shows nothing if the dataset has no versions. */
function VersionChoice({ model }: { readonly model: ExploreModel }) {
  const { versions = "", unversioned, dataset, token } = model.source;
  const [listed, setListed] = useState<readonly ListedVersion[]>([]);
  useEffect(() => {
    if (versions === "") return;
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    fetch(versions, { headers })
      .then(async (answer) => setListed(answer.ok ? await answer.json() : []))
      // The versions are not what the page is for.
      .catch(() => undefined);
  }, [versions, token]);
  if (versions === "") return null;
  const options = listed
    .filter(({ kind }) => kind !== "branch")
    .map(({ id, name, time, message }) => [id, `${name} · ${time.slice(0, 10)} · ${message}`] as const);
  const isListed = dataset === unversioned || options.some(([id]) => id === dataset);
  const choose = (id: string): void => {
    const here = new URL(".", versions);
    const below = location.pathname.slice(here.pathname.length) + location.search;
    const hash = formatViewHash(model.view.peek());
    location.assign(`${new URL(`../${encodeURIComponent(id)}/`, here)}${below}#${hash}`);
  };
  return (
    <div class="axis-row">
      <Choice
        label="Version"
        value={dataset}
        options={[
          [unversioned, "as it is now"],
          ...(isListed ? [] : [[dataset, dataset.slice(unversioned.length + 1)] as const]),
          ...options,
        ]}
        onChoose={choose}
      />
    </div>
  );
}

function matches({ path, title, attrs }: VariableDescription, filter: string): boolean {
  const text = `${path} ${title} ${String(attrs.standard_name ?? "")}`.toLowerCase();
  const words = filter.toLowerCase().split(/\s+/);
  return words.every((word) => text.includes(word));
}

/** What a variable shows, and what it is moved by. */
function Panes(props: {
  readonly model: ExploreModel;
  readonly form: VariableDescription["form"] | undefined;
  /** Whether values are coloured by a scale. */
  readonly hasScale: boolean;
}) {
  const { model, form, hasScale } = props;
  const hasProbe = useValue(model.view).probe !== undefined;
  const categories = useValue(model.colours.categories);
  const dataset = useValue(model.dataset);
  const emptiness = dataset && emptinessOf(dataset);
  return (
    <div class="panes">
      {form === "image" && <MapView model={model} />}
      {form === "image" && categories !== undefined && (
        <CategoryLegend model={model} categories={categories} />
      )}
      {form === "image" && hasScale && (
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
    </div>
  );
}

/** The whole page. */
export function ExplorerPage({ model }: { readonly model: ExploreModel }) {
  const [sheet, setSheet] = useState<SheetName | undefined>();
  const variable = useValue(model.variable);
  const hasProbe = useValue(model.view).probe !== undefined;
  const isColour = useValue(model.resolved)?.bands !== undefined;
  const hasScale = useValue(model.colours.categories) === undefined && !isColour;
  const form = variable?.problem === undefined ? variable?.form : undefined;
  const hasCode = sheet === "code" && variable !== undefined;
  const toggle = (name: SheetName): void => setSheet(sheet === name ? undefined : name);
  return (
    <div
      class="app"
      data-sheet={sheet}
      data-form={form}
      data-plot={form === "image" && hasProbe ? "" : undefined}
    >
      <Headline model={model} />
      <div class="side">
        <div class="sheet" data-name="variables">
          <VersionChoice model={model} />
          <VariableList model={model} onChosen={() => setSheet(undefined)} />
          <AxisChoice model={model} />
        </div>
        <div class="sheet" data-name="code">
          <button type="button" id="code-button" aria-expanded={hasCode} onClick={() => toggle("code")}>
            Code and download
          </button>
          <SavePanel model={model} />
        </div>
      </div>
      <div class="stage">
        <Panes model={model} form={form} hasScale={hasScale} />
        <StatusLine model={model} />
      </div>
      {hasCode && <CodePanel model={model} onClose={() => setSheet(undefined)} />}
      <nav class="sheets" aria-label="Panels">
        {SHEETS.filter(([name]) => name !== "colours" || hasScale).map(([name, label]) => (
          <button key={name} type="button" aria-expanded={sheet === name} onClick={() => toggle(name)}>
            {label}
          </button>
        ))}
      </nav>
      <HelpDialog />
    </div>
  );
}
