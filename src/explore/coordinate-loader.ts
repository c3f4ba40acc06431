import { effect, type ReadonlySignal, signal, untracked } from "@preact/signals-core";
import { cellAxis, createAxis } from "./axis.js";
import { INDEX_AXIS } from "./axis-cells.js";
import type { AxisDescription, VariableDescription } from "./dataset-description.js";
import type { RangeAnswer } from "./protocol.js";
import type { CurvilinearExtent, KnownAxis } from "./resolve-view.js";
import type { WorkerClient } from "./worker-client.js";

/** Reads coordinates of the variable that is shown, each once. */
export class CoordinateLoader {
  readonly #client: WorkerClient;
  readonly #variable: ReadonlySignal<VariableDescription | undefined>;
  readonly #fail: (error: unknown) => void;
  readonly #known = signal<ReadonlyMap<string, KnownAxis>>(new Map());
  readonly #extents = signal<ReadonlyMap<string, CurvilinearExtent>>(new Map());
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
  extentOf({ curvilinear }: VariableDescription): CurvilinearExtent | undefined {
    return curvilinear && this.#extents.value.get(curvilinear.latitude);
  }

  /** Reads what is not read yet. */
  read(): void {
    const variable = this.#variable.peek();
    variable?.axes.forEach((axis, index) => {
      void this.#readAxis(variable.path, axis, index);
    });
    if (variable?.curvilinear !== undefined) void this.#readExtent(variable.curvilinear);
  }

  async #readAxis(variable: string, description: AxisDescription, axis: number): Promise<void> {
    const { coordinate, length } = description;
    if (coordinate === undefined || this.#asked.has(coordinate)) return;
    this.#asked.add(coordinate);
    let values = INDEX_AXIS;
    try {
      ({ values } = await this.#client.ask<"axis">({ kind: "axis", variable, axis }));
    } catch (error) {
      this.#asked.delete(coordinate);
      this.#fail(error);
    }
    const known = { values, places: createAxis(length, values, description) };
    this.#known.value = new Map(this.#known.peek()).set(coordinate, known);
  }

  async #readExtent(grid: { readonly latitude: string; readonly longitude: string }): Promise<void> {
    if (this.#asked.has(grid.latitude)) return;
    this.#asked.add(grid.latitude);
    try {
      const [y, x] = await Promise.all([this.#rangeOf(grid.latitude), this.#rangeOf(grid.longitude)]);
      const extent = { west: x.least, east: x.greatest, south: y.least, north: y.greatest };
      this.#extents.value = new Map(this.#extents.peek()).set(grid.latitude, extent);
    } catch (error) {
      this.#asked.delete(grid.latitude);
      this.#fail(error);
    }
  }

  /** Asks for the extent of a two-dimensional coordinate, which is its range. */
  #rangeOf(variable: string): Promise<RangeAnswer> {
    const selection = { variable, at: [0, 0] };
    return this.#client.ask<"range">({
      kind: "range",
      selection,
      axes: { y: 0, x: 1 },
      percentiles: [0, 100],
    });
  }
}
