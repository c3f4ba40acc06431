import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { AxisDescription, AxisValues } from "../dataset-description.js";
import { axisTicks } from "./axis-ticks.js";

const MAX_COUNT = 9;
/** Pixels that a label needs. */
const DISTANCE = 56;

/** The labels below a slider, as many as there is room for. */
export function SliderTicks({
  axis,
  values,
}: {
  readonly axis: AxisDescription;
  readonly values: AxisValues;
}) {
  const element = useRef<HTMLDivElement>(null);
  const [count, setCount] = useState(MAX_COUNT);
  useLayoutEffect(() => {
    const { current } = element;
    if (current === null) return undefined;
    const measure = (): void =>
      setCount(Math.max(1, Math.min(MAX_COUNT, Math.floor(current.clientWidth / DISTANCE))));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(current);
    return () => observer.disconnect();
  }, []);
  const ticks = useMemo(() => sliderTicks(axis, values, count), [axis, values, count]);
  return (
    <div class="ticks" aria-hidden="true" ref={element}>
      {ticks.map(({ index, label }) => (
        <span key={index} style={placeAt(index / (axis.length - 1))}>
          {label}
        </span>
      ))}
    </div>
  );
}

/** Returns the style of a label at a position from 0 to 1: those at the ends stay on a narrow screen. */
function placeAt(position: number) {
  const shift = position < 0.05 ? 20 : position > 0.95 ? 80 : 50;
  return { left: `${position * 100}%`, transform: `translateX(-${shift}%)` };
}

/** Returns labels below a slider, at indices. */
function sliderTicks(
  axis: AxisDescription,
  values: AxisValues,
  maxCount: number,
): { readonly index: number; readonly label: string }[] {
  const { length } = axis;
  if (length < 2) return [];
  const { texts, numbers } = values;
  if (texts !== undefined || numbers === undefined) {
    const byIndex = { ...values, numbers: undefined };
    return axisTicks(axis, byIndex, 0, length - 1, maxCount).map(({ value, label }) => ({
      index: value,
      label,
    }));
  }
  const step = Math.max(1, Math.ceil(length / maxCount));
  return Array.from({ length: Math.ceil(length / step) }, (_, index) => ({
    index: index * step,
    label: String(Number(numbers[index * step]?.toPrecision(4))),
  }));
}
