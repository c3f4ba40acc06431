import { effect, signal, untracked } from "@preact/signals-core";
import type { Degrees, Place } from "../../../cf/projection.js";
import { withUnits } from "../../../cf/unit-text.js";
import { createAxis } from "../../axis.js";
import type { AxisDescription, AxisValues, ProbeAnswer } from "../../protocol.js";
import { cellEdges, decimalsOf, degreesKind, degreesText, stepText } from "../axis-ticks.js";
import type { PageState, PictureRequest, ResolvedView } from "../page-state.js";
import { degreesOf, type MapPlane } from "./plane-box.js";

/** Pixels from the pointer to the centre of a dot that it points at. */
const REACH = 16;

/** Values under the pointer and at the place of the series. */
export class ProbeModel {
  readonly #model: PageState;
  /** Cell under the pointer or the keyboard's cross-hair; undefined if there is none. */
  readonly pointer = signal<ProbeAnswer | undefined>(undefined);
  /** Cell of the series; undefined if there is none, or not yet. */
  readonly fixed = signal<ProbeAnswer | undefined>(undefined);
  /** Whether the pointer is the keyboard's cross-hair. */
  readonly hasCrossHair = signal(false);

  #place: Place | undefined;
  #towards: readonly [number, number] | undefined;
  #isAsking = false;
  #isOutdated = false;
  #cancelFixed: (() => void) | undefined;

  constructor(model: PageState) {
    this.#model = model;
    effect(() => {
      // The value under a pointer that rests changes with the picture.
      if (model.picture.frame.value?.isWhole === true) untracked(() => this.#ask());
    });
    effect(() => {
      const { probe } = model.view.value;
      const request = model.request.value;
      untracked(() => this.#askFixed(probe, request));
    });
  }

  /** Reads the value at a place, or none. Of places that come while one is read, the last counts. */
  hover(place: Place | undefined, towards?: readonly [number, number]): void {
    this.#place = place;
    this.#towards = towards;
    if (place === undefined) this.pointer.value = undefined;
    else this.#ask();
  }

  #ask(): void {
    const request = this.#model.request.peek();
    const place = this.#place;
    if (request === undefined || place === undefined) return;
    this.#isOutdated = this.#isAsking;
    if (this.#isAsking) return;
    this.#isAsking = true;
    const { box, width } = request.viewport;
    const reach = (REACH * Math.abs(box.right - box.left)) / width;
    const towards = this.#towards;
    const nearby = { ...probeRequest(request, place), reach, towards };
    this.#model.client.send<"probe">(nearby, (answer) => {
      this.#isAsking = false;
      // The cross-hair has moved there, and goes no further when the picture changes.
      if (towards !== undefined && towards === this.#towards && answer.kind === "value")
        [this.#place, this.#towards] = [answer, undefined];
      // A cell that cannot be read has no value to show; the picture says why.
      if (this.#place !== undefined) this.pointer.value = answer.kind === "value" ? answer : undefined;
      if (this.#isOutdated) this.#ask();
    });
  }

  #askFixed(place: Place | undefined, request: PictureRequest | undefined): void {
    this.#cancelFixed?.();
    this.#cancelFixed = undefined;
    if (place === undefined || request === undefined) {
      this.fixed.value = undefined;
      return;
    }
    this.#cancelFixed = this.#model.client.send<"probe">(probeRequest(request, place), (answer) => {
      this.fixed.value = answer.kind === "value" ? answer : undefined;
    });
  }
}

function probeRequest({ selection, axes, viewport, bands }: PictureRequest, { x, y }: Place) {
  return { kind: "probe", selection, axes, x, y, inCells: viewport.inCells, bands } as const;
}

/** Puts a cell and its value into words: centre, in degrees as well if the plane has them, value with units, and edges if they differ from the index. */
export function readoutOf(resolved: ResolvedView, answer: ProbeAnswer, plane: MapPlane | undefined) {
  const { variable, axes, values } = resolved;
  const value = withUnits(answer.text, answer.value === undefined ? undefined : variable.units);
  if (axes === undefined || answer.cell === undefined) return { place: "", value, bounds: "" };
  const parts = [axes.y, axes.x].map((index) => {
    const axis = variable.axes[index]!;
    return placeOf(axis, values[index]!, answer.cell?.[index] as number);
  });
  const place = answer.name === undefined ? [...new Set(parts.map(({ text }) => text))] : [answer.name];
  const degrees = degreesOf(plane, answer);
  if (degrees !== undefined && plane !== undefined) place.unshift(...degreesTexts(degrees, answer, plane));
  const bounds = parts.map((part) => part.bounds).filter((text) => text !== "");
  return { place: place.join(" "), value, bounds: bounds.join(" · ") };
}

/** Returns the text of a place on one axis, and of the edges of its cell. */
function placeOf(axis: AxisDescription, values: AxisValues, index: number): { text: string; bounds: string } {
  const { numbers, texts } = values;
  if (numbers === undefined || texts !== undefined)
    return { text: `${axis.dim} ${stepText(values, index)}`, bounds: "" };
  const places = createAxis(axis.length, values, axis);
  const [low, high] = cellEdges(places, index);
  const decimals = decimalsOf((high - low) / 10);
  const kind = degreesKind(axis);
  const write = (number: number, digits: number): string =>
    kind === undefined ? `${Number(number.toFixed(digits))}` : degreesText(number, kind, digits);
  const text = write(numbers[index]!, decimals);
  return {
    text: kind === undefined ? `${axis.dim} ${text}` : text,
    bounds: places.edges === undefined ? "" : `${write(low, decimals + 1)}–${write(high, decimals + 1)}`,
  };
}

/** Writes a place in degrees, with as many digits as tell cells of the plane apart. */
function degreesTexts({ latitude, longitude }: Degrees, { x, y }: Place, plane: MapPlane): string[] {
  const above = degreesOf(plane, { x, y: y + plane.y.cell });
  const cell = plane.isCurved || above === undefined ? 0.1 : Math.abs(above.latitude - latitude);
  const decimals = Math.max(2, Math.min(5, decimalsOf(cell / 10)));
  return [degreesText(latitude, "latitude", decimals), degreesText(longitude, "longitude", decimals)];
}
