import { type AxisDescription, type AxisValues, otherAxes } from "../protocol.js";
import { axisTicks, count, fittingTicks, stepText, type Tick } from "./axis-ticks.js";
import { Check, Choice, DrawnCanvas, IconButton } from "./controls.js";
import { useValue } from "./hooks.js";
import type { ExploreModel } from "./model.js";
import type { ResolvedView } from "./page-state.js";
import { PLAY_RATES } from "./playback.js";
import { axesBesides } from "./plot/plot-axis.js";
import { alongOf } from "./plot/plot-model.js";
import { tableOf } from "./resolve-view.js";

const MAX_COUNT = 9;
const DISTANCE = 56;
/** Pixels from the ends of the track to the middle of the thumb there. */
const THUMB = 8;

/** Draws the labels below a slider, as many as there is room for, which only a canvas tells before they are placed. */
function drawTicks(context: CanvasRenderingContext2D, axis: AxisDescription, values: AxisValues): void {
  const { clientWidth: width, clientHeight: height } = context.canvas;
  if (axis.length < 2) return;
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
  const { variable, axes } = resolved;
  const others =
    axes === undefined ? axesBesides(variable, alongOf(variable, along, axes)) : otherAxes(variable, axes);
  if (others.length === 0) return null;
  return (
    <section class="dimensions" aria-label="Dimensions">
      {others.map((index) => (
        <Dimension key={variable.dims[index]} model={model} resolved={resolved} index={index} />
      ))}
    </section>
  );
}

interface DimensionProps {
  readonly model: ExploreModel;
  readonly resolved: ResolvedView;
  readonly index: number;
}

function Dimension(props: DimensionProps) {
  const { model, resolved, index } = props;
  const [axis, values, step] = [resolved.variable.axes[index]!, resolved.values[index]!, resolved.at[index]!];
  const text = stepText(values, step, axis);
  const isPlaying = useValue(model.playback.axis) === index;
  const { dim, length } = axis;
  const last = length - 1;
  const labels = (context: CanvasRenderingContext2D): void => drawTicks(context, axis, values);
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
      <span class="dims">{dim}</span>
      <DimensionValue {...props} text={text} />
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
              max={last}
              value={step}
              aria-label={dim}
              aria-valuetext={text}
              onInput={(event) => move(event.currentTarget.valueAsNumber)}
            />
            <DrawnCanvas class="ticks" inputs={[axis, values]} draw={labels} />
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

/** The step that is shown, or that all bands are composed in colour. */
function DimensionValue(props: DimensionProps & { readonly text: string }) {
  const { model, resolved, index, text } = props;
  const isColour = resolved.bands !== undefined;
  if (index !== resolved.variable.bands?.axis) return <output class="dim-value">{text}</output>;
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
    <Choice
      label={<span class="spoken">Steps per second</span>}
      value={String(rate)}
      options={PLAY_RATES.map((each) => [String(each), `${each}/s`])}
      onChoose={(chosen) => model.playback.setRate(Number(chosen))}
    />
  );
}

/** Shows on the track which steps can be seen without reading. */
function CachedTrack({ model, index, length }: { model: ExploreModel; index: number; length: number }) {
  const isFollowed = useValue(model.playback.cachedAxis) === index;
  const cached = useValue(model.playback.cached);
  const steps = isFollowed ? cached : new Set<number>();
  const draw = (context: CanvasRenderingContext2D): void => {
    const width = context.canvas.clientWidth / length;
    for (const step of steps)
      context.fillRect(step * width, 0, Math.max(width, 1), context.canvas.clientHeight);
  };
  const inputs = [isFollowed, cached, length];
  return <DrawnCanvas class="cached" inputs={inputs} draw={draw} data-of={index} data-cached={steps.size} />;
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
          <Choice
            key={direction}
            label={
              <>
                <span aria-hidden="true">{direction === "x" ? "→" : "↑"}</span>
                <span class="spoken">{direction === "x" ? "Horizontal axis" : "Vertical axis"}</span>
              </>
            }
            value={variable.dims[axes[direction]]!}
            options={variable.dims.map((dim) => [dim, dim])}
            onChoose={(dim) => choose(direction, variable.dims.indexOf(dim))}
          />
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
