import { computed } from "@preact/signals-core";
import { useMemo, useState } from "preact/hooks";
import { stepText } from "./axis-cells.js";
import { openHelp } from "./help-dialog.js";
import type { ExploreModel } from "./model.js";
import { otherAxes } from "./resolve-view.js";
import { useValue } from "./use-value.js";

/** Milliseconds for which the page says that a link was copied. */
const COPIED_MS = 2000;

/** Head of the page: dataset, variable with units, the step that is shown, links. */
export function Headline({ model }: { readonly model: ExploreModel }) {
  const variable = useValue(model.variable);
  const step = useValue(useMemo(() => computed(() => shownStep(model)), [model]));
  const [isCopied, setCopied] = useState(false);
  const { dataset, title, page } = model.source;
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(location.href);
    setCopied(true);
    setTimeout(() => setCopied(false), COPIED_MS);
  };
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
        {/* Browsers have no clipboard on pages that came without TLS. */}
        {navigator.clipboard !== undefined && (
          <button type="button" class="quiet" onClick={copy} id="copy-link">
            {isCopied ? "Copied" : "Copy link"}
          </button>
        )}
        <button type="button" class="quiet" onClick={openHelp}>
          Keys and help
        </button>
      </p>
    </header>
  );
}

/** Returns the steps that are asked for and shown, as text; undefined if the variable has no other axes. */
function shownStep(model: ExploreModel): { readonly asked: string; readonly shown: string } | undefined {
  const resolved = model.resolved.value;
  const frame = model.picture.frame.value;
  if (resolved?.axes === undefined) return undefined;
  const { axes, variable, values } = resolved;
  const textOf = (at: readonly number[]): string =>
    otherAxes(variable, axes)
      .sort((one, other) => rank(variable.axes[one]?.role) - rank(variable.axes[other]?.role))
      .map((axis) => stepText(values[axis] as (typeof values)[number], at[axis] as number))
      .join(" · ");
  const asked = textOf(resolved.at);
  if (asked === "") return undefined;
  // Steps that follow each other quickly need no words.
  const isBehind = model.picture.isDimmed.value && frame?.request.selection.variable === variable.path;
  return { asked, shown: isBehind ? textOf(frame.request.selection.at) : asked };
}

/** Time comes first. */
function rank(role: string | undefined): number {
  return role === "T" ? 0 : 1;
}
