import { batch, computed, type ReadonlySignal, signal } from "@preact/signals-core";
import type { Place } from "../../../cf/projection.js";
import type { Box, Viewport } from "../../protocol.js";
import type { PageState } from "../page-state.js";
import { boxText, centreOfBox, fitBox, mapBox, panBox, type Size, wholeBox, zoomBox } from "./plane-box.js";

/** Part of a pixel that no screen shows. */
const UNSEEN = 0.01;

/** Returns a place on the map that is shorter to write, and looks the same. */
export function shortPlace({ x, y }: Place, box: Box, size: Size): Place {
  const [perX, perY] = [(box.right - box.left) / size.width, (box.top - box.bottom) / size.height];
  return { x: rounded(x, perX * UNSEEN), y: rounded(y, perY * UNSEEN) };
}

/** Returns a box that is shorter to write, and looks the same: no screen has a million pixels along one side. */
export function shortBox(box: Box): Box {
  const [width, height] = [box.right - box.left, box.top - box.bottom];
  return mapBox(
    box,
    (x) => rounded(x, width * 1e-6),
    (y) => rounded(y, height * 1e-6),
  );
}

/** Rounds a number to the fewest decimals that move it by no more than a tolerance. */
function rounded(value: number, tolerance: number): number {
  for (let decimals = 0; decimals <= 12; decimals++) {
    const short = Number(value.toFixed(decimals));
    if (Math.abs(short - value) <= Math.abs(tolerance)) return short;
  }
  return value;
}

/** Milliseconds without movement after which the picture is sharpened. */
const REST_MS = 150;

/** The part of the plane that is visible, and how it is moved. */
export class Camera {
  readonly #model: PageState;
  /** Size of the canvas in CSS pixels, and device pixels per CSS pixel. */
  readonly canvas = signal({ width: 0, height: 0, ratio: 1 });
  /** Whether the view is being moved, so that a picture need not be at its best. */
  readonly isMoving = signal(false);
  /** What is visible, in the proportions of the canvas; undefined until plane and canvas are known. */
  readonly box: ReadonlySignal<Box | undefined>;
  readonly inCells: ReadonlySignal<boolean>;
  readonly viewport: ReadonlySignal<Viewport | undefined>;
  #restTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(model: PageState) {
    const { view, plane } = model;
    this.#model = model;
    this.inCells = computed(() => view.value.asImage);
    let last: Box | undefined;
    this.box = computed(() => {
      const shown = plane.value;
      const size = this.canvas.value;
      if (shown === undefined || size.width === 0 || size.height === 0) return undefined;
      const box = fitBox(shown, view.value.box ?? wholeBox(shown), size);
      // The same object as before, if nothing has moved: what depends on it need not be made again.
      if (last === undefined || boxText(box) !== boxText(last)) last = box;
      return last;
    });
    this.viewport = computed(() => {
      const box = this.box.value;
      if (box === undefined) return undefined;
      const { width, height, ratio } = this.canvas.value;
      // While steps are played, pictures have one pixel per CSS pixel.
      const sharpness = model.isPlaying.value ? 1 : ratio;
      const inCells = this.inCells.value;
      const [pixelWidth, pixelHeight] = [Math.round(width * sharpness), Math.round(height * sharpness)];
      return { box, width: pixelWidth, height: pixelHeight, inCells, ratio: sharpness };
    });
  }

  /** Enlarges the box by a factor about a place; about its centre unless one is given. */
  zoom(factor: number, place?: Place): void {
    const [plane, box] = [this.#model.plane.peek(), this.box.peek()];
    if (plane === undefined || box === undefined) return;
    this.show(zoomBox(plane, box, this.canvas.peek(), factor, place ?? centreOfBox(box)));
  }

  /** Moves the box by parts of its width and height. */
  pan(right: number, up: number): void {
    const [plane, box] = [this.#model.plane.peek(), this.box.peek()];
    if (plane !== undefined && box !== undefined)
      this.show(panBox(plane, box, this.canvas.peek(), right, up));
  }

  /** Shows the middle of what is visible: a share of its width and height. */
  showCentre(share: number): void {
    this.zoom(share);
    const centre = this.#model.view.peek().box;
    this.show(centre && shortBox(centre));
  }

  show(box: Box | undefined): void {
    batch(() => {
      this.noteMovement();
      this.#model.change({ box });
    });
  }

  /** Sets {@link isMoving} until nothing has moved for a moment; then the box is rounded for the address. */
  noteMovement(): void {
    this.isMoving.value = true;
    clearTimeout(this.#restTimer);
    this.#restTimer = setTimeout(() => {
      batch(() => {
        this.isMoving.value = false;
        const { box } = this.#model.view.peek();
        // Not while it moves: errors of rounding would add up.
        if (box !== undefined && boxText(box) !== boxText(shortBox(box)))
          this.#model.change({ box: shortBox(box) });
      });
    }, REST_MS);
  }
}
