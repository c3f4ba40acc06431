import { useMemo, useState } from "preact/hooks";
import { type ClientCode, type CodeVariable, selectionCode } from "../../../usage/selection-code.js";
import { Choice, CopyButton } from "../controls.js";
import { useComputed, useValue } from "../hooks.js";
import type { ExploreModel } from "../model.js";
import { alongOf } from "../plot/plot-model.js";
import { pictureVariable, seriesVariable, wholeVariable } from "./shown-cells.js";
import "../plot/plots.css";

/** What the code reads: the picture, or the series at the chosen place. */
type Part = "picture" | "series";

type ClientName = ClientCode["client"];

/** Code that reads what is on the screen with each client. */
export function CodePanel({ model }: { readonly model: ExploreModel }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details
      class="code"
      onToggle={(event) => setOpen(event.currentTarget.open)}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !isOpen) return;
        event.currentTarget.open = false;
        event.currentTarget.querySelector("summary")?.focus();
      }}
    >
      <summary>Code for what is shown</summary>
      {isOpen && <Codes model={model} />}
    </details>
  );
}

function Codes({ model }: { readonly model: ExploreModel }) {
  const [client, setClient] = useState<ClientName>("xarray");
  const [part, setPart] = useState<Part>("picture");
  const hasSeries = useValue(model.probes.fixed)?.cell !== undefined;
  const shownPart = hasSeries ? part : "picture";
  const selection = useComputed(() => codeVariable(model, shownPart), [model, shownPart]);
  const isMoving = useValue(model.camera.isMoving);
  const codes = useMemo(
    () => selectionCode({ url: model.source.store.replace(/\/$/, ""), version: 2, variable: selection }),
    [model, selection],
  );
  const shown = codes.find((each) => each.client === client) ?? codes[0];
  return (
    <div aria-busy={isMoving}>
      {hasSeries && (
        <Choice
          class="code-part"
          label="of the"
          value={part}
          options={[
            ["picture", "visible picture"],
            ["series", "series"],
          ]}
          onChoose={setPart}
        />
      )}
      <fieldset class="tabs">
        <legend class="spoken">Client</legend>
        {codes.map((each) => (
          <label key={each.client}>
            <input
              type="radio"
              name="code-client"
              value={each.client}
              checked={each.client === client}
              onChange={() => setClient(each.client)}
            />
            {each.client}
          </label>
        ))}
      </fieldset>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: code that scrolls is scrolled by the keys, too */}
      <section tabIndex={0} aria-label={`Code for ${shown?.client}`}>
        <pre data-language={shown?.language}>{shown?.code}</pre>
      </section>
      <CopyButton label="Copy code" textOf={() => shown?.code ?? ""} />
    </div>
  );
}

/** Returns what is on the screen, as code selects it; undefined as long as it is not known. */
function codeVariable(model: ExploreModel, part: Part): CodeVariable | undefined {
  const resolved = model.resolved.value;
  if (resolved === undefined) return undefined;
  const { variable, values, axes, at, bands } = resolved;
  const cell = model.probes.fixed.value?.cell;
  if (part === "series" && cell !== undefined) {
    return seriesVariable(variable, values, cell, alongOf(variable, model.view.value.probe?.along, axes));
  }
  const box = model.camera.box.value;
  if (axes === undefined || box === undefined) return wholeVariable(variable);
  return pictureVariable({ variable, values, axes, at, bands, box, inCells: model.camera.inCells.value });
}
