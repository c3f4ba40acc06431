import { useEffect, useState } from "preact/hooks";
import { COLOUR_SCALES, type ColourScaleName, colourTable } from "../../../colour/colour-scales.js";
import { Check, Choice, IconButton } from "../controls.js";
import { useValue } from "../hooks.js";
import { cssColour } from "../map/frame-painter.js";
import type { ExploreModel } from "../model.js";
import { rangeText } from "./colour-model.js";

const SCALES = Object.keys(COLOUR_SCALES) as ColourScaleName[];
const PERCENTILES: readonly (readonly [number, number, string])[] = [
  [2, 98, "percentiles 2 to 98"],
  [0, 100, "minimum to maximum"],
  [10, 90, "percentiles 10 to 90"],
  [0.1, 99.9, "percentiles 0.1 to 99.9"],
];

const STOPS = 16;

/** Everything about the colours that can be chosen. */
export function ColourControls({ model }: { readonly model: ExploreModel }) {
  const { colours } = model;
  const choice = useValue(colours.choice);
  const byHand = choice.range !== undefined && "low" in choice.range;
  const percentiles =
    choice.range !== undefined && "percentiles" in choice.range ? choice.range.percentiles : [2, 98];
  const chooseRange = (text: string): void => {
    const range = colours.range.peek();
    if (text !== "hand") colours.choose({ range: percentilesOf(text) });
    else if (range !== undefined) colours.setRange(range.low, range.high);
  };
  return (
    <section class="colour-row" aria-label="Colours">
      <ScalePicker model={model} />
      <IconButton
        icon="swap"
        label="Reverse the colour scale"
        isPressed={choice.isReversed}
        onClick={() => colours.choose({ isReversed: !choice.isReversed })}
      />
      <Choice
        label="Range"
        value={byHand ? "hand" : percentiles.join("-")}
        options={rangeOptions(percentiles)}
        onChoose={chooseRange}
      />
      <RangeInput model={model} end="low" />
      <RangeInput model={model} end="high" />
      <button type="button" onClick={() => void colours.fitHere()}>
        Fit to view
      </button>
      <Check label="Log scale" isSet={choice.isLog} onChange={(isLog) => colours.choose({ isLog })} />
      <Check
        label="Symmetric"
        isSet={choice.isSymmetric}
        onChange={(isSymmetric) => colours.choose({ isSymmetric })}
      />
      <Check
        label="Keep for other variables"
        isSet={choice.isLocked}
        onChange={() => model.colours.toggleLock()}
      />
    </section>
  );
}

function rangeOptions(percentiles: readonly number[]): [value: string, text: string][] {
  const listed = PERCENTILES.map(([low, high, label]): [string, string] => [`${low}-${high}`, label]);
  const own = percentiles.join("-");
  if (!listed.some(([value]) => value === own)) listed.push([own, `percentiles ${percentiles.join(" to ")}`]);
  return [...listed, ["hand", "custom"]];
}

function percentilesOf(text: string): { readonly percentiles: readonly [number, number] } | undefined {
  const [low, high] = text.split("-").map(Number) as [number, number];
  return low === 2 && high === 98 ? undefined : { percentiles: [low, high] };
}

/** An end of the range as a number that can be changed. */
function RangeInput({ model, end }: { readonly model: ExploreModel; readonly end: "low" | "high" }) {
  const range = useValue(model.colours.range);
  const [text, setText] = useState("");
  const shown = range === undefined ? "" : rangeText(range[end], range);
  useEffect(() => setText(shown), [shown]);
  const apply = (): void => {
    const value = Number(text);
    if (range === undefined || text.trim() === "" || !Number.isFinite(value) || text === shown)
      setText(shown);
    else model.colours.setRange(end === "low" ? value : range.low, end === "high" ? value : range.high);
  };
  return (
    <input
      class="number"
      type="text"
      inputMode="decimal"
      style={{ minWidth: `${shown.length + 3}ch` }}
      aria-label={end === "low" ? "Minimum of the range" : "Maximum of the range"}
      value={text}
      onInput={(event) => setText(event.currentTarget.value)}
      onBlur={apply}
      onKeyDown={(event) => {
        if (event.key === "Enter") apply();
      }}
    />
  );
}

/** List of the colour scales, each with its colours. */
function ScalePicker({ model }: { readonly model: ExploreModel }) {
  const scale = useValue(model.colours.scale);
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="picker" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class="spoken">Colour scale: </span>
        <span class="swatch" style={{ background: gradientOf(scale) }} aria-hidden="true" /> {scale}
      </summary>
      <fieldset>
        <legend class="spoken">Colour scale</legend>
        {SCALES.map((name) => (
          <label key={name}>
            <input
              type="radio"
              name="scale"
              value={name}
              checked={name === scale}
              onChange={() => model.colours.choose({ scale: name })}
              onClick={(event) => {
                // A choice with the pointer closes the list; one with the arrow keys does not.
                if (event.detail > 0) setOpen(false);
              }}
            />
            <span class="swatch" style={{ background: gradientOf(name) }} aria-hidden="true" />
            {name}
          </label>
        ))}
      </fieldset>
    </details>
  );
}

function gradientOf(name: ColourScaleName): string {
  const table = colourTable(name);
  const stops = Array.from({ length: STOPS }, (_, index) =>
    cssColour(table, Math.round((index * 255) / (STOPS - 1))),
  );
  return `linear-gradient(to right,${stops.join(",")})`;
}
