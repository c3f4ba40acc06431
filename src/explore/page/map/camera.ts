import { batch, computed, type ReadonlySignal, type Signal, signal } from "@preact/signals-core";
import { type Axis, cellAxis, centreOf, indexAt } from "../../axis.js";
import type { Box, View, Viewport } from "../../protocol.js";
import type { ResolvedView } from "../resolve-view.js";
import {
  centreOfBox,
  fitBox,
  type MapPlane,
  type Place,
  panBox,
  type Size,
  wholeBox,
  zoomBox,
} from "./plane-box.js";

/** Part of a cell by which a place may be moved. */
const SLACK = 0.01;

/**
 * Returns a place that is short to write and lies in the same cell: near the cell's centre, or near where it was if the plane is that of a
 * curvilinear grid or the place is outside.
 * @param inCells Whether the plane counts cells, whatever the coordinates are.
 */
export function shortPlace(
  place: Place,
  plane: MapPlane,
  { axes, places }: Pick<ResolvedView, "axes" | "places">,
  inCells: boolean,
): Place {
  const shorten = (value: number, key: "x" | "y"): number => {
    const own = axes && places[axes[key]];
    if (own === undefined) return value;
    const axis = inCells ? cellAxis(own.length) : own;
    return plane.isCurved ? rounded(value, plane[key].cell) : shortCoordinate(axis, value, plane[key].cell);
  };
  return { x: shorten(place.x, "x"), y: shorten(place.y, "y") };
}

/** Part of a box's length that no screen shows. */
const UNSEEN = 1e-6;

/** Returns a box that is shorter to write, and looks the same. */
export function shortBox({ left, right, bottom, top }: Box): Box {
  const shorten = (one: number, other: number) => (value: number) =>
    rounded(value, (Math.abs(one - other) * UNSEEN) / SLACK);
  const [x, y] = [shorten(left, right), shorten(bottom, top)];
  return { left: x(left), right: x(right), bottom: y(bottom), top: y(top) };
}

function shortCoordinate(axis: Axis, value: number, cell: number): number {
  const index = indexAt(axis, value);
  if (index < 0) return rounded(value, cell);
  const turns = axis.period === undefined ? 0 : Math.round((value - centreOf(axis, index)) / axis.period);
  const centre = centreOf(axis, index) + turns * (axis.period ?? 0);
  const short = rounded(centre, cell);
  // Cells of one axis may differ much in length.
  return indexAt(axis, short) === index ? short : centre;
}

/** Rounds a number to the fewest decimals that move it by no more than a part of a cell. */
function rounded(value: number, cell: number): number {
  for (let decimals = 0; decimals <= 12; decimals++) {
    const short = Number(value.toFixed(decimals));
    if (Math.abs(short - value) <= cell * SLACK) return short;
  }
  return value;
}

/** Size of the canvas in CSS pixels, and device pixels per CSS pixel. */
interface CanvasSize extends Size {
  readonly ratio: number;
}

/** Milliseconds without movement after which the picture is sharpened. */
const REST_MS = 150;

/** Rows of the middle that is shown if the whole would be too much. */
const CENTRE_CELLS = 1000;

/** The part of the plane that is visible, and how it is moved. */
export class Camera {
  readonly #view: Signal<View>;
  readonly plane: ReadonlySignal<MapPlane | undefined>;
  readonly canvas = signal<CanvasSize>({ width: 0, height: 0, ratio: 1 });
  /** Whether the view is being moved, so that a picture need not be at its best. */
  readonly isMoving = signal(false);
  /** What is visible, in the proportions of the canvas; undefined until plane and canvas are known. */
  readonly box: ReadonlySignal<Box | undefined>;
  /** Whether the box counts cells, instead of using coordinates. */
  readonly inCells: ReadonlySignal<boolean>;
  /** Box and size of the picture that is asked for. */
  readonly viewport: ReadonlySignal<Viewport | undefined>;
  #restTimer: ReturnType<typeof setTimeout> | undefined;

  /** @param isPlaying While it is set, pictures have one pixel per CSS pixel. */
  constructor(
    view: Signal<View>,
    plane: ReadonlySignal<MapPlane | undefined>,
    isPlaying: ReadonlySignal<boolean>,
  ) {
    this.#view = view;
    this.plane = plane;
    this.inCells = computed(() => view.value.asImage);
    let last: Box | undefined;
    this.box = computed(() => {
      const shown = plane.value;
      const size = this.canvas.value;
      if (shown === undefined || size.width === 0 || size.height === 0) return undefined;
      const box = fitBox(shown, view.value.box ?? wholeBox(shown), size);
      // The same object as before, if nothing has moved: what depends on it need not be made again.
      if (last === undefined || !isSameBox(box, last)) last = box;
      return last;
    });
    this.viewport = computed(() => {
      const box = this.box.value;
      const { width, height, ratio } = this.canvas.value;
      const sharpness = isPlaying.value ? 1 : ratio;
      if (box === undefined) return undefined;
      const inCells = this.inCells.value;
      return { box, width: Math.round(width * sharpness), height: Math.round(height * sharpness), inCells };
    });
  }

  /** Enlarges the box by a factor about a place; about its centre unless one is given. */
  zoom(factor: number, place?: Place): void {
    const [plane, box] = [this.plane.peek(), this.box.peek()];
    if (plane === undefined || box === undefined) return;
    this.show(zoomBox(plane, box, this.canvas.peek(), factor, place ?? centreOfBox(box)));
  }

  /** Moves the box by parts of its width and height. */
  pan(right: number, up: number): void {
    const [plane, box] = [this.plane.peek(), this.box.peek()];
    if (plane !== undefined && box !== undefined)
      this.show(panBox(plane, box, this.canvas.peek(), right, up));
  }

  /** Shows the middle of the plane, in so few cells that it is soon read. */
  showCentre(): void {
    const [plane, box] = [this.plane.peek(), this.box.peek()];
    if (plane === undefined || box === undefined) return;
    const cells = Math.abs((box.top - box.bottom) / plane.y.cell);
    this.zoom(Math.min(0.5, CENTRE_CELLS / cells));
    const centre = this.#view.peek().box;
    this.show(centre && shortBox(centre));
  }

  /** Shows a box; the whole plane if none is given. */
  show(box: Box | undefined): void {
    batch(() => {
      this.noteMovement();
      this.#view.value = { ...this.#view.peek(), box };
    });
  }

  /** Sets {@link isMoving} until nothing has moved for a moment; then the box is rounded for the address. */
  noteMovement(): void {
    this.isMoving.value = true;
    clearTimeout(this.#restTimer);
    this.#restTimer = setTimeout(() => {
      batch(() => {
        this.isMoving.value = false;
        const view = this.#view.peek();
        if (view.box === undefined) return;
        // Not while it moves: errors of rounding would add up.
        const box = shortBox(view.box);
        if (!isSameBox(box, view.box)) this.#view.value = { ...view, box };
      });
    }, REST_MS);
  }
}

function isSameBox(one: Box, other: Box): boolean {
  return (
    one.left === other.left &&
    one.right === other.right &&
    one.bottom === other.bottom &&
    one.top === other.top
  );
}
