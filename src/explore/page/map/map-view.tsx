import { computed, effect, untracked } from "@preact/signals-core";
import { useEffect, useRef } from "preact/hooks";
import type { Box } from "../../protocol.js";
import { IconButton } from "../controls.js";
import { useComputed, useValue, watchLook } from "../hooks.js";
import type { ExploreModel } from "../model.js";
import type { ShownFrame } from "../page-state.js";
import { pictureText, tooMuchText } from "../status-text.js";
import { type Coasts, loadCoast } from "./coastline.js";
import { type GroundColours, outlineDots, paintFrame, parseColour } from "./frame-painter.js";
import { listenToKeys, listenToPointers } from "./map-input.js";
import { drawOverlay, marginsOf, titleRoomOf } from "./map-overlay.js";
import { degreesAcross } from "./map-projection.js";
import { boxText, isMap, type MapPlane, planePixels, pointOf } from "./plane-box.js";
import { readoutOf } from "./probe-model.js";

/** CSS pixels from stripe to stripe of what is missing. */
const HATCH = 8;
/** Device pixels per CSS pixel beyond which a sharper picture is not worth its time. */
const MAX_RATIO = 2;

/** The picture: cells as they are, with coast and graticule above them, moved by pointer, touch and keys. */
export function MapView({ model }: { readonly model: ExploreModel }) {
  const container = useRef<HTMLDivElement>(null);
  const data = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const isDimmed = useValue(model.picture.isDimmed);
  const tooMuch = useComputed(() => tooMuchText(model), [model]);
  const alternative = useRested(model, () => pictureText(model));
  useEffect(() => {
    const [frame, canvas, overlay] = [container.current, data.current, over.current];
    if (frame === null || canvas === null || overlay === null) return undefined;
    return startMap(model, frame, canvas, overlay);
  }, [model]);
  return (
    <div class="map" ref={container}>
      <canvas class={isDimmed ? "data dimmed" : "data"} ref={data} role="img" aria-label={alternative} />
      <canvas class="over" ref={over} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: arrows and letters act on the map that has the focus */}
      <div class="touch" role="application" tabIndex={0} aria-label="Map. Press ? for keyboard shortcuts." />
      <div class="zoom">
        <IconButton icon="plus" label="Zoom in" onClick={() => model.camera.zoom(0.5)} />
        <IconButton icon="minus" label="Zoom out" onClick={() => model.camera.zoom(2)} />
        <IconButton icon="fit" label="Show everything" onClick={() => model.camera.show(undefined)} />
      </div>
      {tooMuch !== undefined && (
        <p class="ask" role="status">
          {tooMuch}{" "}
          <button type="button" onClick={() => model.readAll()}>
            Read all
          </button>
        </p>
      )}
      <Readout model={model} />
    </div>
  );
}

/** Returns what a function makes of signals as it was when the map rested last. */
function useRested(model: ExploreModel, compute: () => string): string {
  const rested = useRef("");
  const text = useComputed(
    () => (model.camera.isMoving.value || model.isPlaying.value ? undefined : compute()),
    [model],
  );
  if (text !== undefined) rested.current = text;
  return rested.current;
}

function Readout({ model }: { readonly model: ExploreModel }) {
  const pointer = useValue(model.probes.pointer);
  const resolved = useValue(model.resolved);
  const text =
    pointer?.cell === undefined || resolved === undefined
      ? undefined
      : readoutOf(resolved, pointer, model.plane.peek());
  return (
    <p class="readout" hidden={text === undefined}>
      {text?.place} <b>{text?.value}</b> <span class="muted">{text?.bounds}</span>
    </p>
  );
}

/** Draws the map whenever something that it shows changes, at most once per frame of the screen. Returns a function that ends that. */
function startMap(
  model: ExploreModel,
  container: HTMLDivElement,
  canvas: HTMLCanvasElement,
  overlay: HTMLCanvasElement,
): () => void {
  const painter = new PicturePainter(canvas);
  const coasts: Coasts = {};
  let request: number | undefined;
  const schedule = (): void => {
    request ??= requestAnimationFrame(() => {
      request = undefined;
      painter.draw(model);
      drawOverlay(overlay, model, coasts);
      void loadNewCoast();
    });
  };
  const loadNewCoast = async (): Promise<void> => {
    const { camera, source } = model;
    const [plane, box] = [model.plane.peek(), camera.box.peek()];
    if (plane === undefined || box === undefined || !isMap(plane)) return;
    const pixels = camera.canvas.peek().height / degreesAcross(plane.projection, box);
    if (await loadCoast(coasts, source.coasts, pixels)) schedule();
  };
  // A plane of another kind leaves other room for titles.
  const titleRoom = computed(() => titleRoomOf(model));
  const touch = container.querySelector<HTMLElement>(".touch")!;
  const resize = (): void => {
    placeCanvases(model, container, [canvas, touch], titleRoom.peek());
    schedule();
  };
  const stopResizing = effect(() => {
    void titleRoom.value;
    untracked(resize);
  });
  const stopDrawing = effect(() => {
    void [model.picture.frame.value, model.camera.box.value, model.colours.table.value, model.hasCoast.value];
    void [model.probes.pointer.value, model.probes.fixed.value, model.probes.hasCrossHair.value];
    schedule();
  });
  const stopWatching = watchLook(container, resize, () => {
    painter.forget();
    schedule();
  });
  const listening = [listenToPointers(touch, model), listenToKeys(touch, model)];
  return () => {
    for (const stop of [stopResizing, stopDrawing, stopWatching, ...listening]) stop();
    if (request !== undefined) cancelAnimationFrame(request);
  };
}

/** Leaves room for labels beside the picture. */
function placeCanvases(
  model: ExploreModel,
  container: HTMLElement,
  elements: readonly HTMLElement[],
  titleRoom: number,
): void {
  const { clientWidth, clientHeight } = container;
  const margins = marginsOf(clientWidth, titleRoom);
  const width = Math.max(1, clientWidth - margins.left - margins.right);
  const height = Math.max(1, clientHeight - margins.top - margins.bottom);
  const { left, top } = margins;
  for (const { style } of elements)
    for (const [name, value] of Object.entries({ left, top, width, height }))
      style.setProperty(name, `${value}px`);
  model.camera.canvas.value = { width, height, ratio: Math.min(MAX_RATIO, devicePixelRatio) };
}

/** Colours pictures once, and draws them where the box has moved since. */
class PicturePainter {
  readonly #canvas: HTMLCanvasElement;
  readonly #painted = new Map<ShownFrame, HTMLCanvasElement>();
  #table: Uint8Array | undefined;

  constructor(canvas: HTMLCanvasElement) {
    this.#canvas = canvas;
  }

  forget(): void {
    this.#painted.clear();
  }

  draw(model: ExploreModel): void {
    const frame = model.picture.frame.peek();
    const box = model.camera.box.peek();
    const size = model.camera.canvas.peek();
    const context = this.#canvas.getContext("2d");
    if (context === null || box === undefined || model.plane.peek() === undefined) return;
    const { width, height } = model.camera.viewport.peek() ?? size;
    if (this.#canvas.width !== width) this.#canvas.width = width;
    if (this.#canvas.height !== height) this.#canvas.height = height;
    context.clearRect(0, 0, width, height);
    if (frame === undefined || frame.request.selection.variable !== model.variable.peek()?.path) return;
    const table = model.colours.table.peek();
    if (table !== this.#table) this.forget();
    this.#table = table;
    for (const known of this.#painted.keys()) {
      if (known !== frame && known.pixels !== frame.under?.pixels) this.#painted.delete(known);
    }
    context.imageSmoothingEnabled = false;
    for (const shown of frame.under === undefined ? [frame] : [frame.under, frame]) {
      const source =
        this.#painted.get(shown) ??
        this.#paint(shown, model, table, shown !== frame.under && frame.under !== undefined);
      this.#painted.set(shown, source);
      const from = shown.request.viewport.box;
      const begin = pointOf(box, { width, height }, { x: from.left, y: from.top });
      const end = pointOf(box, { width, height }, { x: from.right, y: from.bottom });
      context.drawImage(source, begin.x, begin.y, end.x - begin.x, end.y - begin.y);
    }
    this.#describe(frame, box);
  }

  #paint(frame: ShownFrame, model: ExploreModel, table: Uint8Array, isAbove: boolean): HTMLCanvasElement {
    const { width, height, pixels } = frame;
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [width, height];
    const context = canvas.getContext("2d") as CanvasRenderingContext2D;
    const image = context.createImageData(width, height);
    if (frame.request.bands !== undefined) {
      image.data.set(pixels);
      context.putImageData(image, 0, 0);
      model.contents.value = new Set();
      return canvas;
    }
    // Once all is read, pixels without data lie outside of the grid.
    const ground = groundColours(this.#canvas, isAbove || frame.done === frame.total);
    const period = Math.round((HATCH * width) / Math.max(1, model.camera.canvas.peek().width));
    const plane = model.plane.peek() as MapPlane;
    const inside = planePixels(plane, frame.request.viewport.box, frame);
    const target = new Uint32Array(image.data.buffer);
    const contents = paintFrame(pixels, width, table, ground, inside, target, period);
    if (plane.hasDots === true)
      outlineDots(
        pixels,
        width,
        parseColour(getComputedStyle(this.#canvas).getPropertyValue("--text")),
        target,
      );
    context.putImageData(image, 0, 0);
    if (!isAbove) model.contents.value = contents;
    return canvas;
  }

  /** Says on the element which picture it shows, for tests and for people who look closely. */
  #describe({ request, done, total, level }: ShownFrame, shownBox: Box): void {
    const { box } = request.viewport;
    const { dataset } = this.#canvas;
    dataset.box = boxText(box);
    dataset.range = `${request.range.low},${request.range.high}`;
    dataset.variable = request.selection.variable;
    dataset.at = request.selection.at.join(",");
    dataset.done = `${done}/${total}`;
    dataset.level = String(level);
    dataset.rests = String(!request.isMoving && box === shownBox);
  }
}

/** @param isClear Whether pixels without data are clear. */
function groundColours(element: Element, isClear: boolean): GroundColours {
  const style = getComputedStyle(element);
  const colourOf = (property: string) => parseColour(style.getPropertyValue(property));
  const clear = [0, 0, 0, 0] as const;
  return {
    missing: colourOf("--missing"),
    missingStripe: colourOf("--missing-stripe"),
    unread: isClear ? clear : colourOf("--unread"),
    unreadCheck: isClear ? clear : colourOf("--unread-check"),
  };
}
