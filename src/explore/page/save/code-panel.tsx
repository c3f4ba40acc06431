import { useMemo, useState } from "preact/hooks";
import { type MapCode, mapCode } from "../../../usage/map-code.js";
import { type ClientCode, type CodeVariable, selectionCode } from "../../../usage/selection-code.js";
import { type SelectionFile, selectionFile } from "../../../usage/selection-url.js";
import { Choice, CopyButton, IconButton } from "../controls.js";
import { useComputed, useValue } from "../hooks.js";
import type { ExploreModel } from "../model.js";
import { alongOf } from "../plot/plot-model.js";
import { bytesText } from "../status-text.js";
import { pictureVariable, seriesVariable } from "./shown-cells.js";
import "../plot/plots.css";

/** What the code reads: the picture, or the series at the chosen place. */
type Part = "picture" | "series";

type AnyCode = ClientCode | MapCode;
type ClientName = AnyCode["client"];

/** Code that reads what is on the screen, with each client. It has a place of its own beside or below the map. */
export function CodePanel(props: { readonly model: ExploreModel; readonly onClose: () => void }) {
  const { model, onClose } = props;
  const [client, setClient] = useState<ClientName>("xarray");
  const [part, setPart] = useState<Part>("picture");
  const hasSeries = useValue(model.probes.fixed)?.cell !== undefined;
  const shownPart = hasSeries ? part : "picture";
  const selection = useComputed(() => codeVariable(model, shownPart), [model, shownPart]);
  const isMoving = useValue(model.camera.isMoving);
  const file = selection && fileOf(model, selection, shownPart);
  const hasMaps = useComputed(() => liesOnEarth(model), [model]) && shownPart === "picture";
  const codes = useMemo((): readonly AnyCode[] => {
    const url = model.source.store.replace(/\/$/, "");
    const read = selectionCode({ url, version: 2, variable: selection });
    const maps = hasMaps && selection ? mapCode(model.source.maps, inDataset(model, selection)) : [];
    return [...read, ...(file === undefined ? [] : [file.code]), ...maps];
  }, [model, selection, file?.url, hasMaps]);
  const shown = codes.find((each) => each.client === client) ?? codes[0];
  return (
    <section
      class="code"
      aria-label="Code"
      aria-busy={isMoving}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        onClose();
        document.getElementById("code-button")?.focus();
      }}
    >
      <div class="code-head">
        <h2>Code for this view</h2>
        {hasSeries && (
          <Choice
            label="Reads"
            value={part}
            options={[
              ["picture", "the visible cells"],
              ["series", "the plotted series"],
            ]}
            onChoose={setPart}
          />
        )}
        <ClientChoice codes={codes} client={client} onChoose={setClient} />
        <CopyButton label="Copy code" textOf={() => shown?.code ?? ""} />
        <IconButton icon="close" label="Close the code" onClick={onClose} />
      </div>
      {file !== undefined && <Download file={file} source={model.source} />}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: code that scrolls is scrolled by the keys, too */}
      <section tabIndex={0} aria-label={`Code for ${shown?.client}`}>
        <pre data-language={shown?.language}>{shown?.code}</pre>
      </section>
    </section>
  );
}

/** The link to a file with what the code reads, and its size. */
function Download(props: { readonly file: SelectionFile; readonly source: ExploreModel["source"] }) {
  const { format, url, byteLength, selectedBytes } = props.file;
  const { token, maxSelectionBytes: maxBytes } = props.source;
  if (selectedBytes > maxBytes)
    return <p class="muted">No more than {bytesText(maxBytes)} can be downloaded at once: zoom in.</p>;
  return (
    <p>
      <a href={token === undefined ? url : `${url}&token=${encodeURIComponent(token)}`} download>
        Download {format}
      </a>{" "}
      <span class="muted">about {bytesText(byteLength)}</span>{" "}
      <CopyButton label="Copy URL" textOf={() => url} />
    </p>
  );
}

function ClientChoice(props: {
  readonly codes: readonly AnyCode[];
  readonly client: ClientName;
  readonly onChoose: (client: ClientName) => void;
}) {
  return (
    <fieldset class="tabs">
      <legend class="spoken">Client</legend>
      {props.codes.map((each) => (
        <label class="check" key={each.client}>
          <input
            type="radio"
            name="code-client"
            value={each.client}
            checked={each.client === props.client}
            onChange={() => props.onChoose(each.client)}
          />
          {each.client}
        </label>
      ))}
    </fieldset>
  );
}

/** Returns the file with a selection: CSV of what is plotted, else NetCDF; undefined if the server makes none. */
function fileOf({ source, variable, resolved }: ExploreModel, part: CodeVariable, shown: Part) {
  const { select } = source;
  const { kind, itemSize: item = 0 } = variable.peek()?.dataType ?? {};
  if (select === undefined || kind === "c" || kind === "V") return undefined;
  const format = shown === "series" || resolved.peek()?.axes === undefined ? "CSV" : "NetCDF";
  return selectionFile(format, select, inDataset({ source }, part), { item });
}

/** Returns a variable of the group with its path in the dataset. */
function inDataset({ source: { group } }: Pick<ExploreModel, "source">, part: CodeVariable): CodeVariable {
  return { ...part, path: group === "" ? part.path : `${group}/${part.path}` };
}

/** Tells whether what is shown is a map of a part of the Earth, of which the server may have tiles. */
function liesOnEarth({ plane }: ExploreModel): boolean {
  const shown = plane.value;
  return (
    shown !== undefined && (shown.isCurved || shown.aspect === "degrees" || shown.projection !== undefined)
  );
}

/** Returns what is on the screen, as code selects it; undefined as long as it is not known. */
function codeVariable(model: ExploreModel, part: Part): CodeVariable | undefined {
  const resolved = model.resolved.value;
  if (resolved === undefined) return undefined;
  const { variable, values, axes } = resolved;
  const cell = model.probes.fixed.value?.cell;
  if (part === "series" && cell !== undefined) {
    return seriesVariable(variable, values, cell, alongOf(variable, model.view.value.probe?.along, axes));
  }
  return pictureVariable(resolved, model.camera.box.value, model.plane.value?.isCurved === true);
}
