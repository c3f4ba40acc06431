import type { Place } from "../../../cf/projection.js";
import { COLOUR_SCALES, type ColourScaleName } from "../../../colour/colour-scales.js";
import { centreOf } from "../../axis.js";
import { openHelp } from "../help-dialog.js";
import type { ExploreModel } from "../model.js";
import { centreOfBox, placeOfPoint } from "./plane-box.js";

const PAN = 0.15;
const ZOOM = 1.5;
const LONG_STEP = 10;

/** Directions of the arrow keys: to the right, upwards. */
const ARROWS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, 1],
  ArrowDown: [0, -1],
};

const KEYS: Readonly<Record<string, (model: ExploreModel) => void>> = {
  "+": (model) => model.camera.zoom(1 / ZOOM),
  "=": (model) => model.camera.zoom(1 / ZOOM),
  "-": (model) => model.camera.zoom(ZOOM),
  "0": (model) => model.camera.show(undefined),
  ",": (model) => stepBy(model, -1),
  ".": (model) => stepBy(model, 1),
  "<": (model) => stepBy(model, -LONG_STEP),
  ">": (model) => stepBy(model, LONG_STEP),
  Home: (model) => stepBy(model, Number.NEGATIVE_INFINITY),
  End: (model) => stepBy(model, Number.POSITIVE_INFINITY),
  " ": (model) => {
    const axis = model.slidAxis.peek();
    if (axis !== undefined) model.playback.toggle(axis);
  },
  "[": (model) => chooseNeighbour(model, -1),
  "]": (model) => chooseNeighbour(model, 1),
  c: nextScale,
  i: (model) => model.colours.choose({ isReversed: !model.colours.choice.peek().isReversed }),
  r: (model) => void model.colours.fitHere(),
  l: (model) => model.colours.toggleLock(),
  s: (model) => model.colours.choose({ isSymmetric: !model.colours.choice.peek().isSymmetric }),
  p: toggleCrossHair,
  t: plotHere,
  g: (model) => {
    model.hasCoast.value = !model.hasCoast.peek();
  },
  x: (model) => {
    const axes = model.resolved.peek()?.axes;
    if (axes !== undefined) model.setAxes(axes.y, axes.x);
  },
  y: () => document.getElementById("copy-link")?.click(),
  "?": openHelp,
  Escape: (model) => {
    if (model.probes.hasCrossHair.peek()) toggleCrossHair(model);
    else model.setProbe(undefined);
  },
};

/** Listens to keys of an element. Returns a function that ends that. */
export function listenToKeys(element: HTMLElement, model: ExploreModel): () => void {
  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = ARROWS[event.key];
    const act = KEYS[event.key];
    if (arrow === undefined && act === undefined) return;
    event.preventDefault();
    if (arrow === undefined) act?.(model);
    else if (model.probes.hasCrossHair.peek()) moveCrossHair(model, ...arrow);
    else model.camera.pan(arrow[0] * PAN, arrow[1] * PAN);
  };
  return listen(element, { keydown: onKey });
}

function stepBy(model: ExploreModel, count: number): void {
  const axis = model.slidAxis.peek();
  const step = axis === undefined ? undefined : model.resolved.peek()?.at[axis];
  if (axis === undefined || step === undefined) return;
  model.playback.stop();
  model.setStep(axis, step + count);
}

function chooseNeighbour(model: ExploreModel, direction: number): void {
  const variables = (model.dataset.peek()?.variables ?? []).filter(({ isCoordinate }) => !isCoordinate);
  const current = variables.findIndex(({ path }) => path === model.variable.peek()?.path);
  const next = variables[(current + direction + variables.length) % variables.length];
  if (next !== undefined) model.chooseVariable(next.path);
}

function nextScale(model: ExploreModel): void {
  const names = Object.keys(COLOUR_SCALES) as ColourScaleName[];
  const next = (names.indexOf(model.colours.scale.peek()) + 1) % names.length;
  model.colours.choose({ scale: names[next] });
}

/** Shows or hides the cross-hair, first in the middle of the map. */
function toggleCrossHair(model: ExploreModel): void {
  const { probes, camera } = model;
  const isShown = !probes.hasCrossHair.peek();
  probes.hasCrossHair.value = isShown;
  const box = camera.box.peek();
  probes.hover(isShown && box ? centreOfBox(box) : undefined);
}

/** Moves the cross-hair to the centre of a neighbouring cell. */
function moveCrossHair(model: ExploreModel, right: number, up: number): void {
  const { camera, probes } = model;
  const [pointer, plane, box] = [probes.pointer.peek(), model.plane.peek(), camera.box.peek()];
  const resolved = model.resolved.peek();
  if (pointer?.cell === undefined || plane === undefined || !box || !resolved?.axes) return;
  const { axes, places } = resolved;
  const { cell } = pointer;
  const neighbour = (index: number, steps: number, from: number, mean: number): number => {
    const axis = places[index]!;
    // Cells of a curvilinear grid lie in rows of their own.
    if (plane.isCurved || axis.isClosed || steps === 0) return from + steps * mean;
    const next = cell[index]! + (axis.isDescending ? -steps : steps);
    return centreOf(axis, Math.max(0, Math.min(axis.length - 1, next)));
  };
  const [toRight, upwards] = [box.left < box.right ? right : -right, box.bottom < box.top ? up : -up];
  // Places of a list lie anywhere: the next one in this direction is found by the worker.
  if (plane.isCurved && resolved.variable.curvilinear?.list !== undefined) {
    probes.hover({ x: pointer.x, y: pointer.y }, [toRight, upwards]);
    return;
  }
  probes.hover({
    x: neighbour(axes.x, toRight, pointer.x, plane.x.cell),
    y: neighbour(axes.y, upwards, pointer.y, plane.y.cell),
  });
}

function plotHere(model: ExploreModel): void {
  const box = model.camera.box.peek();
  if (box === undefined) return;
  const { x, y } = model.probes.pointer.peek() ?? centreOfBox(box);
  model.setProbe({ x, y, along: model.view.peek().probe?.along, plot: "series" });
}

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
  const placeOf = (event: MouseEvent): Place | undefined => {
    const box = model.camera.box.peek();
    return box && placeOfPoint(box, model.camera.canvas.peek(), pointOf(event));
  };

  return listen(element, {
    pointerdown(event) {
      if (event.button !== 0) return;
      const point = pointOf(event);
      element.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, { ...point, beginX: point.x, beginY: point.y });
      if (pointers.size === 1) hasMoved = false;
    },
    pointermove(event) {
      const known = pointers.get(event.pointerId);
      model.probes.hasCrossHair.value = false;
      if (known === undefined) {
        model.probes.hover(placeOf(event));
        return;
      }
      const point = pointOf(event);
      if (!hasMoved && Math.hypot(point.x - known.beginX, point.y - known.beginY) < CLICK_SLOP) return;
      hasMoved = true;
      const before = [...pointers.values()];
      pointers.set(event.pointerId, { ...known, ...point });
      movePointers(model, before, [...pointers.values()]);
    },
    pointerup(event) {
      const isClick = pointers.delete(event.pointerId) && !hasMoved && pointers.size === 0;
      const place = placeOf(event);
      if (!isClick || place === undefined) return;
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
      model.camera.zoom(WHEEL ** (event.deltaY * lines * (event.ctrlKey ? 4 : 1)), placeOf(event));
    },
    dblclick(event) {
      model.camera.zoom(0.5, placeOf(event));
    },
  });
}

/** Adds listeners. @returns A function that removes them. */
function listen(
  element: HTMLElement,
  handlers: { [K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => void },
): () => void {
  const controller = new AbortController();
  const options = { passive: false, signal: controller.signal };
  for (const [type, handler] of Object.entries(handlers))
    element.addEventListener(type, handler as EventListener, options);
  return () => controller.abort();
}

/** Moves the map with one pointer; with two it is enlarged about the point between them as well. */
function movePointers(model: ExploreModel, before: readonly Pointer[], after: readonly Pointer[]): void {
  const [from, to] = [middleOf(before), middleOf(after)];
  const size = model.camera.canvas.peek();
  model.camera.pan((from.x - to.x) / size.width, (to.y - from.y) / size.height);
  const box = model.camera.box.peek();
  if (before.length < 2 || box === undefined) return;
  const factor = spreadOf(before) / spreadOf(after);
  if (Number.isFinite(factor)) model.camera.zoom(factor, placeOfPoint(box, size, to));
}

function middleOf(points: readonly Place[]): Place {
  const sum = points.reduce((total, { x, y }) => ({ x: total.x + x, y: total.y + y }), { x: 0, y: 0 });
  return { x: sum.x / points.length, y: sum.y / points.length };
}

function spreadOf([first, second]: readonly Place[]): number {
  return first === undefined || second === undefined ? 1 : Math.hypot(first.x - second.x, first.y - second.y);
}
