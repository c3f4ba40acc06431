import { effect, type ReadonlySignal, signal, untracked } from "@preact/signals-core";
import { cellAxis, createAxis } from "../axis.js";
import {
  type AxisAnswer,
  type AxisDescription,
  type GridExtent,
  INDEX_AXIS,
  type VariableDescription,
} from "../protocol.js";
import type { KnownAxis } from "./resolve-view.js";
import type { WorkerClient } from "./worker-client.js";

/** Reads coordinates of the variable that is shown, each once. */
export class CoordinateLoader {
  readonly #client: WorkerClient;
  readonly #variable: ReadonlySignal<VariableDescription | undefined>;
  readonly #fail: (error: unknown) => void;
  readonly #known = signal<ReadonlyMap<string, KnownAxis>>(new Map());
  readonly #extents = signal<ReadonlyMap<string, GridExtent>>(new Map());
  readonly #asked = new Set<string>();

  constructor(
    client: WorkerClient,
    variable: ReadonlySignal<VariableDescription | undefined>,
    fail: (error: unknown) => void,
  ) {
    this.#client = client;
    this.#variable = variable;
    this.#fail = fail;
    effect(() => {
      if (variable.value !== undefined) untracked(() => this.read());
    });
  }

  /** Returns what is read of an axis; undefined until it is. An axis whose coordinate cannot be read counts cells. */
  knownOf({ coordinate, length }: AxisDescription): KnownAxis | undefined {
    if (coordinate !== undefined) return this.#known.value.get(coordinate);
    return { values: INDEX_AXIS, places: cellAxis(length) };
  }

  /** Returns the extent of a curvilinear grid; undefined until it is known, or if the variable has none. */
  extentOf({ curvilinear }: VariableDescription): GridExtent | undefined {
    return curvilinear && this.#extents.value.get(curvilinear.latitude);
  }

  /** Reads what is not read yet. */
  read(): void {
    const variable = this.#variable.peek();
    variable?.axes.forEach((description, axis) => {
      const { coordinate, length } = description;
      void this.#ask(coordinate, variable.path, axis, (key, { values = INDEX_AXIS }) => {
        const known = { values, places: createAxis(length, values, description) };
        this.#known.value = new Map(this.#known.peek()).set(key, known);
      });
    });
    const { path = "", plane, curvilinear } = variable ?? {};
    void this.#ask(curvilinear?.latitude, path, plane?.x ?? 0, (key, { extent }) => {
      if (extent !== undefined) this.#extents.value = new Map(this.#extents.peek()).set(key, extent);
    });
  }

  /** Asks for an axis, unless that was done under this key. @param take Called with nothing after a failure. */
  async #ask(
    key: string | undefined,
    variable: string,
    axis: number,
    take: (key: string, answer: Partial<AxisAnswer>) => void,
  ): Promise<void> {
    if (key === undefined || this.#asked.has(key)) return;
    this.#asked.add(key);
    try {
      take(key, await this.#client.ask<"axis">({ kind: "axis", variable, axis }));
    } catch (error) {
      this.#asked.delete(key);
      this.#fail(error);
      take(key, {});
    }
  }
}
