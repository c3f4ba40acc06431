import type { ReadonlySignal, Signal } from "@preact/signals-core";
import type { ColourBands } from "../../cf/image-data.js";
import type { Axis } from "../axis.js";
import type {
  AxisValues,
  FrameAnswer,
  PictureAxes,
  VariableDescription,
  View,
  Viewport,
} from "../protocol.js";
import type { MapPlane } from "./map/plane-box.js";
import type { RequestOf, WorkerClient } from "./worker-client.js";

/** A view with everything that was left to rule: which variable, axes, and steps it shows. */
export interface ResolvedView {
  readonly variable: VariableDescription;
  /** Undefined if the variable is no picture. */
  readonly axes: PictureAxes | undefined;
  /** Bands that are shown in colour; undefined if the variable has none, or one of them is chosen. */
  readonly bands: ColourBands | undefined;
  /** Index per axis. */
  readonly at: readonly number[];
  /** Values and places of the cells per axis; places are rows and columns if the view asks for these. */
  readonly values: readonly AxisValues[];
  readonly places: readonly Axis[];
  /** A sentence for each part of the view that this dataset does not have. */
  readonly problems: readonly string[];
}

/** Request of a picture. */
export type PictureRequest = RequestOf<"show">;

/** A picture that is on the screen, and what was asked for. */
export interface ShownFrame extends FrameAnswer {
  readonly request: PictureRequest;
  /** Whether no pixel waits for data. */
  readonly isWhole: boolean;
  /** An older whole picture of the same cells, seen through the pixels that wait; undefined if there is none. */
  readonly under: ShownFrame | undefined;
}

/** What the parts of the page's model know of each other. */
export interface PageState {
  readonly client: WorkerClient;
  readonly view: Signal<View>;
  readonly variable: ReadonlySignal<VariableDescription | undefined>;
  readonly resolved: ReadonlySignal<ResolvedView | undefined>;
  /** The plane of the picture; undefined until it is known, or if there is no picture. */
  readonly plane: ReadonlySignal<MapPlane | undefined>;
  readonly request: ReadonlySignal<PictureRequest | undefined>;
  readonly isPlaying: ReadonlySignal<boolean>;
  readonly camera: { readonly viewport: ReadonlySignal<Viewport | undefined> };
  readonly picture: { readonly frame: ReadonlySignal<ShownFrame | undefined> };
  readonly playback: { readonly isCached: (request: PictureRequest) => boolean };
  readonly change: (part: Partial<View>) => void;
  readonly setStep: (axis: number, step: number) => void;
  /** Says that something besides the picture could not be read. */
  readonly fail: (error: unknown) => void;
}
