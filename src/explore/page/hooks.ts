import { computed, type ReadonlySignal } from "@preact/signals-core";
import { useEffect, useMemo, useState } from "preact/hooks";

/** Returns the value of a signal, and renders the component again when it changes. */
export function useValue<T>(signal: ReadonlySignal<T>): T {
  const [, setValue] = useState<{ readonly value: T }>(() => ({ value: signal.peek() }));
  useEffect(
    () => signal.subscribe((value) => setValue((known) => (known.value === value ? known : { value }))),
    [signal],
  );
  return signal.peek();
}

/** Returns what a function makes of signals, and renders the component again when it changes. */
export function useComputed<T>(compute: () => T, inputs: readonly unknown[]): T {
  return useValue(useMemo(() => computed(compute), inputs));
}

/** Returns the context of a canvas, clear, in CSS pixels and with the page's text; undefined while it has no size. */
export function clearedContext(canvas: HTMLCanvasElement): CanvasRenderingContext2D | undefined {
  const context = canvas.getContext("2d");
  const { clientWidth, clientHeight } = canvas;
  if (context === null || clientWidth === 0) return undefined;
  const [width, height] = [clientWidth, clientHeight].map((length) => Math.round(length * devicePixelRatio));
  if (canvas.width !== width) canvas.width = width!;
  if (canvas.height !== height) canvas.height = height!;
  context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  context.clearRect(0, 0, clientWidth, clientHeight);
  const { color, fontFamily } = getComputedStyle(canvas);
  context.fillStyle = color;
  context.font = `12px ${fontFamily}`;
  return context;
}

/** Calls functions when an element changes its size, and when the page turns light or dark. Returns a function that ends that. */
export function watchLook(element: Element, onSize: () => void, onColours: () => void = onSize): () => void {
  const observer = new ResizeObserver(onSize);
  observer.observe(element);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", onColours);
  return () => {
    observer.disconnect();
    dark.removeEventListener("change", onColours);
  };
}
