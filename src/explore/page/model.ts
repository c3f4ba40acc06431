import { batch, computed, effect, signal, untracked } from "@preact/signals-core";
import type { MapServices } from "../../usage/map-code.js";
import {
  type Box,
  type DatasetDescription,
  EMPTY_VIEW,
  type FailedAnswer,
  isOnGrid,
  otherAxes,
  type PicturePart,
  type Probe,
  type ReadingCost,
  type VariableDescription,
  type View,
} from "../protocol.js";
import { positionOf } from "./axis-ticks.js";
import { ColourModel } from "./colour/colour-model.js";
import { Camera, shortPlace } from "./map/camera.js";
import { PictureLoader } from "./map/picture-loader.js";
import type { MapPlane } from "./map/plane-box.js";
import { ProbeModel } from "./map/probe-model.js";
import type { PageState, PictureRequest } from "./page-state.js";
import { Playback } from "./playback.js";
import { CoordinateLoader, chosenVariable, isOnSameGrid, mapPlaneOf, resolveView } from "./resolve-view.js";
import { failureOf, type WorkerClient } from "./worker-client.js";

/** What the page is about, by the attributes of its root element. */
interface PageSource {
  /** Absolute URLs of the stores, with a slash at their ends; of the overviews undefined if there are none. */
  readonly store: string;
  readonly overviews: string | undefined;
  /** Absolute URL of selections; undefined if the server answers none. */
  readonly select: string | undefined;
  readonly maxSelectionBytes: number;
  /** Absolute URLs of map tiles and of the Web Map Service. */
  readonly maps: MapServices;
  readonly group: string;
  /** Id and title of the dataset. */
  readonly dataset: string;
  readonly title: string;
  /** Id of the dataset of which this is a version; the same as `dataset` if it is none. */
  readonly unversioned: string;
  /** Absolute URL of the list of versions; undefined if the dataset has none. */
  readonly versions: string | undefined;
  /** Absolute URL of the page without scripts. */
  readonly page: string;
  /** Absolute URLs of the coastlines. */
  readonly coasts: { readonly coarse: string; readonly fine: string };
  readonly token: string | undefined;
}

/** State and actions of the explorer. It knows neither the document nor the network: all reading is done by the worker. */
export class ExploreModel implements PageState {
  readonly source: PageSource;
  readonly client: WorkerClient;
  readonly view = signal<View>(EMPTY_VIEW);
  readonly dataset = signal<DatasetDescription | undefined>(undefined);
  /** Why something besides the picture could not be read. */
  readonly failure = signal<FailedAnswer | undefined>(undefined);
  /** Sentences about parts of the address that could not be read. */
  readonly addressProblems = signal<readonly string[]>([]);

  /** Bytes of the picture as it was painted last; none if it is painted in its own colours. */
  readonly contents = signal<ReadonlySet<number>>(new Set());
  readonly hasCoast = signal(true);

  readonly variable = computed(
    () => this.dataset.value && chosenVariable(this.dataset.value, this.view.value),
  );

  /** What is shown, with everything that the view leaves to rule; undefined until coordinates are read. */
  readonly resolved = computed(() => {
    const variable = this.variable.value;
    return variable && resolveView(this.view.value, variable, (axis) => this.coordinates.knownOf(axis));
  });

  readonly plane = computed<MapPlane | undefined>(() => {
    const resolved = this.resolved.value;
    const { asImage } = this.view.value;
    if (resolved?.axes === undefined) return undefined;
    const isCurved = isOnGrid(resolved.variable, resolved.axes, asImage);
    const extent = isCurved ? this.coordinates.extentOf(resolved.variable) : undefined;
    if (isCurved && extent === undefined) return undefined;
    return mapPlaneOf(resolved, resolved.axes, (path) => this.variableAt(path)?.attrs, extent);
  });

  readonly request = computed<PictureRequest | undefined>(() => {
    const resolved = this.resolved.value;
    const viewport = this.camera.viewport.value;
    const range = this.colours.range.value;
    if (resolved?.axes === undefined || viewport === undefined || range === undefined) return undefined;
    const { variable, axes, at, bands } = resolved;
    if (variable.problem !== undefined) return undefined;
    const isMoving = this.camera.isMoving.value || this.isPlaying.value;
    const selection = { variable: variable.path, at };
    return { kind: "show", selection, axes, viewport, range, bands, isMoving, isConfirmed: false };
  });

  /** Axis that keys step through: the one that was moved last, else time, else the first that is no axis of the picture. */
  readonly slidAxis = computed(() => {
    const resolved = this.resolved.value;
    if (resolved === undefined) return undefined;
    const { variable, axes } = resolved;
    const free = otherAxes(variable, axes).filter((axis) => variable.shape[axis]! > 1);
    const last = this.playback.cachedAxis.value;
    if (last !== undefined && free.includes(last)) return last;
    return free.find((axis) => variable.axes[axis]?.role === "T") ?? free[0];
  });

  readonly isPlaying = computed(() => this.playback.axis.value !== undefined);

  readonly #centre = signal<{ readonly box?: Box | undefined; readonly whole?: ReadingCost }>({});
  /** Cost of the whole picture while its centre is shown instead, since the view names no part; else undefined. */
  readonly wholeCost = computed(() => {
    const { box, whole } = this.#centre.value;
    return box === this.view.value.box ? whole : undefined;
  });

  readonly camera: Camera;
  readonly coordinates: CoordinateLoader;
  readonly colours: ColourModel;
  readonly picture: PictureLoader;
  readonly playback: Playback;
  readonly probes: ProbeModel;

  constructor(client: WorkerClient, source: PageSource) {
    this.client = client;
    this.source = source;
    this.camera = new Camera(this);
    this.coordinates = new CoordinateLoader(this);
    this.colours = new ColourModel(this);
    this.picture = new PictureLoader(this);
    this.playback = new Playback(this);
    this.probes = new ProbeModel(this);
    effect(() => {
      // Playing on would hide what is wrong.
      if (this.picture.failure.value !== undefined) untracked(() => this.playback.stop());
      const part = this.picture.part.value;
      if (part !== undefined && part.share < 1) untracked(() => this.#showCentreOf(part));
    });
  }

  /** Reads the metadata. */
  async open(): Promise<void> {
    const { store, overviews, group, token } = this.source;
    try {
      const { dataset } = await this.client.ask<"open">({ kind: "open", store, overviews, group, token });
      batch(() => {
        this.failure.value = undefined;
        this.dataset.value = dataset;
      });
    } catch (error) {
      this.fail(error);
    }
  }

  fail(error: unknown): void {
    this.failure.value = failureOf(error);
  }

  /** Asks again for everything that failed. */
  retry(): void {
    this.failure.value = undefined;
    if (this.dataset.peek() === undefined) {
      void this.open();
      return;
    }
    this.coordinates.read();
    this.colours.retry();
    this.picture.retry();
  }

  /** Reads all of the picture, however much it is: the whole one, if its centre was shown instead. */
  readAll(): void {
    // The colours of a chunk that is not read unasked wait for it, too.
    if (this.picture.tooMuch.peek() !== undefined) this.colours.retry(true);
    this.picture.confirm();
    if (this.wholeCost.peek() !== undefined) this.camera.show(undefined);
  }

  /** Returns a variable by its path; undefined if there is none. */
  variableAt(path: string): VariableDescription | undefined {
    return this.dataset.peek()?.variables.find((each) => each.path === path);
  }

  /** Shows another variable, with box, dates and probe as they are; colours stay if they are locked. */
  chooseVariable(path: string): void {
    const view = this.view.peek();
    if (path === this.variable.peek()?.path) return;
    this.playback.stop();
    const colour = view.colour.isLocked ? view.colour : EMPTY_VIEW.colour;
    const { x, y, box, probe } = isOnSameGrid(this.variable.peek(), this.variableAt(path))
      ? view
      : EMPTY_VIEW;
    this.view.value = { ...view, variable: path, x, y, box, probe, colour };
  }

  change(part: Partial<View>): void {
    this.view.value = { ...this.view.peek(), ...part };
  }

  /** Moves to a step of an axis. */
  setStep(axis: number, step: number): void {
    const resolved = this.resolved.peek();
    const description = resolved?.variable.axes[axis];
    const values = resolved?.values[axis];
    if (description === undefined || values === undefined) return;
    const index = Math.max(0, Math.min(description.length - 1, step));
    const at = { ...this.view.peek().at, [description.dim]: positionOf(values, description, index) };
    batch(() => {
      this.camera.noteMovement();
      this.playback.follow(axis);
      this.change({ at });
    });
  }

  /** Composes the bands of an image in colour, or shows one of them. */
  setColour(isColour: boolean): void {
    const variable = this.variable.peek();
    const dim = variable?.dims[variable.bands?.axis ?? -1];
    if (dim === undefined) return;
    const { [dim]: _, ...at } = this.view.peek().at;
    this.playback.stop();
    this.change({ at: isColour ? at : { ...at, [dim]: { index: 0 } } });
  }

  /** Chooses which dimensions run to the right and upwards; that of the other axis is swapped if it is the same. */
  setAxes(x: number, y: number): void {
    const variable = this.variable.peek();
    if (variable === undefined || x === y) return;
    this.playback.stop();
    this.change({ x: variable.dims[x], y: variable.dims[y], box: undefined, probe: undefined });
  }

  /** Puts the probe into the cell at a place, or takes it away. */
  setProbe(probe: Probe | undefined): void {
    const { box, canvas } = this.camera;
    const shown = box.peek();
    this.change({ probe: probe && shown ? { ...probe, ...shortPlace(probe, shown, canvas.peek()) } : probe });
  }

  /** Enlarges the centre of a picture of which no more is read, unless the view says which part of it is wanted. */
  #showCentreOf({ share, whole }: PicturePart): void {
    if (this.view.peek().box !== undefined) return;
    this.camera.showCentre(share);
    this.#centre.value = { box: this.view.peek().box, whole };
  }
}
