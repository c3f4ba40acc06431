import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { type AxisDescription, type AxisValues, otherAxes } from "../protocol.js";
import { axisTicks, count, fittingTicks, stepText, type Tick } from "./axis-ticks.js";
import { Check, IconButton } from "./controls.js";
import { useValue, watchLook } from "./hooks.js";
import type { ExploreModel } from "./model.js";
import { PLAY_RATES } from "./playback.js";
import { axesBesides } from "./plot/plot-axis.js";
import { alongOf } from "./plot/plot-model.js";
import { tableOf } from "./resolve-view.js";

const MAX_COUNT = 9;
const DISTANCE = 56;
/** Pixels from the ends of the track to the middle of the thumb there. */
const THUMB = 8;

/** The labels below a slider, as many as there is room for. A canvas, since only a canvas measures texts before they are placed. */
function SliderTicks({ axis, values }: { readonly axis: AxisDescription; readonly values: AxisValues }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    const { current } = canvas;
    if (current === null) return undefined;
    const draw = (): void => drawTicks(current, axis, values);
    draw();
    return watchLook(current, draw);
  }, [axis, values]);
  return <canvas class="ticks" ref={canvas} />;
}

function drawTicks(canvas: HTMLCanvasElement, axis: AxisDescription, values: AxisValues): void {
  const context = canvas.getContext("2d");
  const { clientWidth: width, clientHeight: height } = canvas;
  if (context === null || width === 0 || axis.length < 2) return;
  const ratio = devicePixelRatio;
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  context.scale(ratio, ratio);
  const { color, fontFamily } = getComputedStyle(canvas);
  context.fillStyle = color;
  context.font = `11.5px ${fontFamily}`;
  context.textBaseline = "middle";
  const spanOf = ({ value, label }: Tick): [number, number] => {
    const middle = THUMB + (value / (axis.length - 1)) * (width - 2 * THUMB);
    const wide = context.measureText(label).width;
    const left = Math.max(0, Math.min(middle - wide / 2, width - wide));
    return [left, left + wide];
  };
  const most = Math.max(1, Math.min(MAX_COUNT, Math.floor(width / DISTANCE)));
  for (const tick of fittingTicks(most, (count) => sliderTicks(axis, values, count), spanOf))
    context.fillText(tick.label, spanOf(tick)[0], height / 2);
}

function sliderTicks(axis: AxisDescription, values: AxisValues, maxCount: number): readonly Tick[] {
  const { length } = axis;
  const { texts, numbers } = values;
  if (texts !== undefined || numbers === undefined)
    return axisTicks(axis, { ...values, numbers: undefined }, 0, length - 1, maxCount);
  const step = Math.max(1, Math.ceil(length / maxCount));
  return Array.from({ length: Math.ceil(length / step) }, (_, index) => ({
    value: index * step,
    // Without the unit, which the value above has.
    label: stepText(values, index * step, axis).split(" ")[0]!,
  }));
}

/** Sliders of the dimensions that are no axes of the picture, or of the plot instead of one. */
export function DimensionControls({ model }: { readonly model: ExploreModel }) {
  const resolved = useValue(model.resolved);
  const along = useValue(model.view).probe?.along;
  if (resolved === undefined) return null;
  const { variable, axes, values, at, bands } = resolved;
  const others =
    axes === undefined ? axesBesides(variable, alongOf(variable, along, axes)) : otherAxes(variable, axes);
  if (others.length === 0) return null;
  return (
    <section class="dimensions" aria-label="Dimensions">
      {others.map((index) => (
        <Dimension
          key={variable.axes[index]?.dim}
          model={model}
          index={index}
          axis={variable.axes[index]!}
          values={values[index]!}
          step={at[index]!}
          isColour={index === variable.bands?.axis ? index === bands?.axis : undefined}
        />
      ))}
    </section>
  );
}

function Dimension(props: {
  readonly model: ExploreModel;
  readonly index: number;
  readonly axis: AxisDescription;
  readonly values: AxisValues;
  readonly step: number;
  readonly isColour: boolean | undefined;
}) {
  const { model, index, axis, values, step, isColour } = props;
  const isPlaying = useValue(model.playback.axis) === index;
  const { dim, length } = axis;
  const last = length - 1;
  const move = (target: number): void => {
    model.playback.stop();
    model.setStep(index, target);
  };
  const button = (icon: "first" | "back" | "forward" | "last", label: string, target: number) => (
    <IconButton icon={icon} label={label} onClick={() => move(target)} isDisabled={target === step} />
  );
  return (
    <fieldset class="dimension">
      <legend class="spoken">{dim}</legend>
      <span class="dim-name">{dim}</span>
      <DimensionValue model={model} text={stepText(values, step, axis)} isColour={isColour} />
      {length > 1 && (
        <>
          <span class="buttons">
            {button("first", `${dim}: first step`, 0)}
            {button("back", `${dim}: previous step`, Math.max(0, step - 1))}
            <IconButton
              icon={isPlaying ? "pause" : "play"}
              label={`${dim}: ${isPlaying ? "pause" : "play"}`}
              onClick={() => model.playback.toggle(index)}
            />
            {button("forward", `${dim}: next step`, Math.min(last, step + 1))}
            {button("last", `${dim}: last step`, last)}
          </span>
          <div class="slider">
            <CachedTrack model={model} index={index} length={length} />
            <input
              type="range"
              min={0}
              max={last}
              step={1}
              value={step}
              aria-label={dim}
              aria-valuetext={stepText(values, step, axis)}
              onInput={(event) => move(event.currentTarget.valueAsNumber)}
            />
            <SliderTicks axis={axis} values={values} />
          </div>
          <span class="dim-count muted">
            {count(step + 1)} / {count(length)}
          </span>
          {isPlaying && <PlayRate model={model} />}
        </>
      )}
    </fieldset>
  );
}

function DimensionValue(props: {
  readonly model: ExploreModel;
  readonly text: string;
  /** Whether the axis is one of bands that are composed in colour; undefined if it is none of bands. */
  readonly isColour: boolean | undefined;
}) {
  const { model, text, isColour } = props;
  if (isColour === undefined) return <output class="dim-value">{text}</output>;
  return (
    <span class="dim-value">
      <output>{isColour ? "all," : text}</output>{" "}
      <Check label="in colour" isSet={isColour} onChange={(isSet) => model.setColour(isSet)} />
    </span>
  );
}

function PlayRate({ model }: { readonly model: ExploreModel }) {
  const rate = useValue(model.playback.rate);
  return (
    <select
      aria-label="Steps per second"
      value={rate}
      onChange={(event) => model.playback.setRate(Number(event.currentTarget.value))}
    >
      {PLAY_RATES.map((each) => (
        <option key={each} value={each}>
          {each}/s
        </option>
      ))}
    </select>
  );
}

/** Shows on the track which steps can be seen without reading. */
function CachedTrack({ model, index, length }: { model: ExploreModel; index: number; length: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const isFollowed = useValue(model.playback.cachedAxis) === index;
  const cached = useValue(model.playback.cached);
  useEffect(() => drawCached(canvas.current!, isFollowed ? cached : new Set(), length));
  return <canvas class="cached" ref={canvas} width={600} height={1} data-of={index} />;
}

function drawCached(canvas: HTMLCanvasElement, cached: ReadonlySet<number>, length: number): void {
  const context = canvas.getContext("2d");
  if (context === null) return;
  canvas.dataset.cached = String(cached.size);
  context.clearRect(0, 0, canvas.width, 1);
  context.fillStyle = getComputedStyle(canvas).color;
  const width = canvas.width / length;
  for (const step of cached) context.fillRect(step * width, 0, Math.max(width, 1), 1);
}

/** Choice of the dimensions that run to the right and upwards. */
export function AxisChoice({ model }: { readonly model: ExploreModel }) {
  const resolved = useValue(model.resolved);
  const view = useValue(model.view);
  if (resolved?.axes === undefined) return null;
  const { axes, variable } = resolved;
  const { x, y } = axes;
  const table = tableOf(variable);
  if (table?.x === table?.y) return null;
  const choose = (direction: "x" | "y", chosen: number): void => {
    if (direction === "x") model.setAxes(chosen, chosen === y ? x : y);
    else model.setAxes(chosen === x ? y : x, chosen);
  };
  return (
    <section class="axes" aria-labelledby="axes-title">
      <h2 id="axes-title">Axes</h2>
      <div class="axis-row" hidden={x === y}>
        {(["x", "y"] as const).map((direction) => (
          <label key={direction}>
            <span aria-hidden="true">{direction === "x" ? "→" : "↑"}</span>
            <span class="spoken">{direction === "x" ? "Horizontal axis" : "Vertical axis"}</span>
            <select
              value={axes[direction]}
              onChange={(event) => choose(direction, Number(event.currentTarget.value))}
            >
              {variable.dims.map((dim, index) => (
                <option key={dim} value={index}>
                  {dim}
                </option>
              ))}
            </select>
          </label>
        ))}
        <IconButton icon="swap" label="Swap the axes" onClick={() => model.setAxes(y, x)} />
      </div>
      <Check
        label="Show rows and columns"
        isSet={view.asImage}
        onChange={(asImage) => model.change({ asImage, box: undefined, probe: undefined })}
      />
    </section>
  );
}
