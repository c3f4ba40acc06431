import { effect, type ReadonlySignal, type Signal, signal, untracked } from "@preact/signals-core";
import type { ProbeAnswer } from "../../protocol.js";
import type { View } from "../../view.js";
import type { WorkerClient } from "../worker-client.js";
import type { PictureRequest, ShownFrame } from "./picture-loader.js";
import type { Place } from "./plane-box.js";

/** What probes need to know. */
export interface ProbeInputs {
  readonly client: WorkerClient;
  readonly view: Signal<View>;
  readonly request: ReadonlySignal<PictureRequest | undefined>;
  readonly frame: Signal<ShownFrame | undefined>;
}

/** Values under the pointer and at the place of the series. */
export class ProbeModel {
  readonly #inputs: ProbeInputs;
  /** Cell under the pointer or the keyboard's cross-hair; undefined if there is none. */
  readonly pointer = signal<ProbeAnswer | undefined>(undefined);
  /** Cell of the series; undefined if there is none, or not yet. */
  readonly fixed = signal<ProbeAnswer | undefined>(undefined);
  /** Whether the pointer is the keyboard's cross-hair. */
  readonly hasCrossHair = signal(false);

  #place: Place | undefined;
  #isAsking = false;
  #isOutdated = false;
  #cancelFixed: (() => void) | undefined;

  constructor(inputs: ProbeInputs) {
    this.#inputs = inputs;
    effect(() => {
      // The value under a pointer that rests changes with the picture.
      if (inputs.frame.value?.isWhole === true) untracked(() => this.#ask());
    });
    effect(() => {
      const { probe } = inputs.view.value;
      const request = inputs.request.value;
      untracked(() => this.#askFixed(probe, request));
    });
  }

  /** Reads the value at a place, or none. Of places that come while one is read, the last counts. */
  hover(place: Place | undefined): void {
    this.#place = place;
    if (place === undefined) this.pointer.value = undefined;
    else this.#ask();
  }

  #ask(): void {
    const request = this.#inputs.request.peek();
    const place = this.#place;
    if (request === undefined || place === undefined) return;
    if (this.#isAsking) {
      this.#isOutdated = true;
      return;
    }
    this.#isAsking = true;
    this.#inputs.client.send<"probe">(probeRequest(request, place), (answer) => {
      this.#isAsking = false;
      // A cell that cannot be read has no value to show; the picture says why.
      if (this.#place !== undefined) this.pointer.value = answer.kind === "value" ? answer : undefined;
      if (!this.#isOutdated) return;
      this.#isOutdated = false;
      this.#ask();
    });
  }

  #askFixed(place: Place | undefined, request: PictureRequest | undefined): void {
    this.#cancelFixed?.();
    this.#cancelFixed = undefined;
    if (place === undefined || request === undefined) {
      this.fixed.value = undefined;
      return;
    }
    this.#cancelFixed = this.#inputs.client.send<"probe">(probeRequest(request, place), (answer) => {
      this.fixed.value = answer.kind === "value" ? answer : undefined;
    });
  }
}

function probeRequest({ selection, axes, viewport }: PictureRequest, { x, y }: Place) {
  return { kind: "probe", selection, axes, x, y, inCells: viewport.inCells } as const;
}
