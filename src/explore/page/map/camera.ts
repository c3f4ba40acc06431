import { batch, computed, type ReadonlySignal, type Signal, signal } from "@preact/signals-core";
import type { Box, Viewport } from "../../protocol.js";
import type { View } from "../../view.js";
import {
  centreOfBox,
  fitBox,
  type Place,
  type Plane,
  panBox,
  type Size,
  wholeBox,
  zoomBox,
} from "./plane-box.js";
import { shortBox } from "./short-place.js";

/** Size of the canvas in CSS pixels, and device pixels per CSS pixel. */
export interface CanvasSize extends Size {
  readonly ratio: number;
}

/** Milliseconds without movement after which the picture is sharpened. */
const REST_MS = 150;

/** Rows of the middle that is shown if the whole would be too much. */
const CENTRE_CELLS = 1000;

/** The part of the plane that is visible, and how it is moved. */
export class Camera {
  readonly #view: Signal<View>;
  readonly plane: ReadonlySignal<Plane | undefined>;
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
    plane: ReadonlySignal<Plane | undefined>,
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
