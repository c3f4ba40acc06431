import type { ExploreModel } from "../model.js";
import { type Place, placeAt } from "./plane-box.js";

/** CSS pixels by which a pointer may move for a press to be a click. */
const CLICK_SLOP = 5;
/** Factor by which the box shrinks per pixel that the wheel turns. */
const WHEEL = 1.0015;

interface Pointer extends Place {
  readonly beginX: number;
  readonly beginY: number;
}

/**
 * Listens to pointers: drag moves the map, two fingers and the wheel enlarge it, a click chooses a place for the plot, rest shows a value.
 * @returns A function that ends that.
 */
export function listenToPointers(element: HTMLElement, model: ExploreModel): () => void {
  const pointers = new Map<number, Pointer>();
  let hasMoved = false;
  const pointOf = (event: MouseEvent): Place => {
    const { left, top } = element.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  };
  const placeOf = (point: Place): Place | undefined => {
    const box = model.camera.box.peek();
    return box && placeAt(box, model.camera.canvas.peek(), point);
  };

  const handlers: { [K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => void } = {
    pointerdown(event) {
      if (event.button !== 0) return;
      const point = pointOf(event);
      element.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, { ...point, beginX: point.x, beginY: point.y });
      if (pointers.size === 1) hasMoved = false;
    },
    pointermove(event) {
      const point = pointOf(event);
      const known = pointers.get(event.pointerId);
      model.probes.hasCrossHair.value = false;
      if (known === undefined) {
        model.probes.hover(placeOf(point));
        return;
      }
      if (!hasMoved && Math.hypot(point.x - known.beginX, point.y - known.beginY) < CLICK_SLOP) return;
      hasMoved = true;
      const before = [...pointers.values()];
      pointers.set(event.pointerId, { ...known, ...point });
      movePointers(model, before, [...pointers.values()]);
    },
    pointerup(event) {
      const isClick = pointers.delete(event.pointerId) && !hasMoved && pointers.size === 0;
      if (!isClick) return;
      const place = placeOf(pointOf(event));
      if (place === undefined) return;
      // A finger does not hover: its tap shows the value.
      if (event.pointerType !== "mouse") model.probes.hover(place);
      const { probe } = model.view.peek();
      model.setProbe({ ...place, along: probe?.along, plot: probe?.plot ?? "series" });
    },
    pointercancel(event) {
      pointers.delete(event.pointerId);
    },
    pointerleave(event) {
      // A finger leaves whenever it is lifted.
      if (event.pointerType === "mouse" && !model.probes.hasCrossHair.peek()) model.probes.hover(undefined);
    },
    wheel(event) {
      event.preventDefault();
      const lines = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? 1 : 20;
      model.camera.zoom(WHEEL ** (event.deltaY * lines * (event.ctrlKey ? 4 : 1)), placeOf(pointOf(event)));
    },
    dblclick(event) {
      model.camera.zoom(0.5, placeOf(pointOf(event)));
    },
  };
  const entries = Object.entries(handlers) as [string, EventListener][];
  for (const [type, handler] of entries) element.addEventListener(type, handler, { passive: false });
  return () => {
    for (const [type, handler] of entries) element.removeEventListener(type, handler);
  };
}

/** Moves the map with one pointer; with two it is enlarged about the point between them as well. */
function movePointers(model: ExploreModel, before: readonly Pointer[], after: readonly Pointer[]): void {
  const [from, to] = [centreOf(before), centreOf(after)];
  const size = model.camera.canvas.peek();
  model.camera.pan((from.x - to.x) / size.width, (to.y - from.y) / size.height);
  const box = model.camera.box.peek();
  if (before.length < 2 || box === undefined) return;
  const factor = spreadOf(before) / spreadOf(after);
  if (Number.isFinite(factor)) model.camera.zoom(factor, placeAt(box, size, to));
}

function centreOf(points: readonly Place[]): Place {
  const sum = points.reduce((total, { x, y }) => ({ x: total.x + x, y: total.y + y }), { x: 0, y: 0 });
  return { x: sum.x / points.length, y: sum.y / points.length };
}

function spreadOf([first, second]: readonly Place[]): number {
  return first === undefined || second === undefined ? 1 : Math.hypot(first.x - second.x, first.y - second.y);
}
