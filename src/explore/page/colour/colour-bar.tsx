import { effect } from "@preact/signals-core";
import { useEffect, useRef } from "preact/hooks";
import type { ExploreModel } from "../model.js";
import { useValue } from "../use-value.js";
import { type BarDomain, domainOf, drawColourBar } from "./draw-colour-bar.js";
import { positionInRange, roundToRange, valueInRange } from "./shown-range.js";

/** Part of the range by which an arrow key moves an end; ten times as much with the keys Page Up and Page Down. */
const KEY_STEP = 0.01;

const KEY_STEPS: Readonly<Record<string, number>> = {
  ArrowLeft: -KEY_STEP,
  ArrowDown: -KEY_STEP,
  ArrowRight: KEY_STEP,
  ArrowUp: KEY_STEP,
  PageDown: -10 * KEY_STEP,
  PageUp: 10 * KEY_STEP,
};

/** The colour bar: the histogram of the values in their colours, with a handle at each end of the range. */
export function ColourBar({ model }: { readonly model: ExploreModel }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const dragged = useRef<BarDomain | undefined>(undefined);
  const range = useValue(model.colours.range);
  const units = useValue(model.variable)?.units ?? "";
  useEffect(() => {
    const element = canvas.current;
    if (element === null) return undefined;
    let timer: number | undefined;
    const draw = (): void => {
      timer = undefined;
      drawColourBar(element, model, dragged.current);
    };
    const schedule = (): void => {
      timer ??= requestAnimationFrame(draw);
    };
    const stop = effect(() => {
      void [model.colours.table.value, model.colours.range.value, model.colours.found.value];
      void [model.variable.value, model.contents.value];
      schedule();
    });
    const observer = new ResizeObserver(schedule);
    observer.observe(element);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", schedule);
    return () => {
      stop();
      observer.disconnect();
      scheme.removeEventListener("change", schedule);
      if (timer !== undefined) cancelAnimationFrame(timer);
    };
  }, [model]);

  const setEnd = (end: "low" | "high", value: number): void => {
    const now = model.colours.range.peek();
    if (now === undefined) return;
    const rounded = roundToRange(value, now);
    if (end === "low" ? rounded >= now.high : rounded <= now.low) return;
    model.colours.setRange(end === "low" ? rounded : now.low, end === "high" ? rounded : now.high);
  };

  const { hasMissing } = useValue(model.contents);
  const domain = dragged.current ?? domainOf(range);
  return (
    <div class="bar">
      <div class="bar-scale">
        <canvas
          ref={canvas}
          role="img"
          aria-label={`Colours from ${range?.low} to ${range?.high} ${units}`}
        />
        {range !== undefined &&
          (["low", "high"] as const).map((end) => (
            <div
              key={end}
              class={`handle ${end}`}
              role="slider"
              tabIndex={0}
              aria-label={end === "low" ? "Lower end of the colours" : "Upper end of the colours"}
              aria-valuemin={end === "low" ? domain.low : range.low}
              aria-valuemax={end === "low" ? range.high : domain.high}
              aria-valuenow={range[end]}
              aria-valuetext={`${roundToRange(range[end], range)} ${units}`}
              style={{ left: `${domain.positionOf(range[end]) * 100}%` }}
              onPointerDown={(event) => {
                event.currentTarget.setPointerCapture(event.pointerId);
                dragged.current = domainOf(range);
              }}
              onPointerMove={(event) => {
                const parent = event.currentTarget.parentElement;
                if (dragged.current === undefined || parent === null) return;
                const { left, width } = parent.getBoundingClientRect();
                setEnd(end, dragged.current.valueAt((event.clientX - left) / width));
              }}
              onLostPointerCapture={() => {
                dragged.current = undefined;
                // The bar shows the new range from end to end.
                if (canvas.current !== null) drawColourBar(canvas.current, model);
              }}
              onKeyDown={(event) => {
                const step = KEY_STEPS[event.key];
                if (step === undefined) return;
                event.preventDefault();
                setEnd(end, valueInRange(range, positionInRange(range, range[end]) + step));
              }}
            />
          ))}
      </div>
      {hasMissing && (
        <span class="legend">
          <span class="hatch" aria-hidden="true" /> missing
        </span>
      )}
    </div>
  );
}
