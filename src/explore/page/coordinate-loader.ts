import { effect, type ReadonlySignal, signal, untracked } from "@preact/signals-core";
import { cellAxis, createAxis } from "../axis.js";
import { type AxisDescription, INDEX_AXIS, type VariableDescription } from "../protocol.js";
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
    if (variable?.curvilinear !== undefined) void this.#readExtent(variable);
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

  async #readExtent({ path, plane, curvilinear }: VariableDescription): Promise<void> {
    const grid = curvilinear?.latitude;
    if (grid === undefined || plane === undefined || this.#asked.has(grid)) return;
    this.#asked.add(grid);
    try {
      const [x, y] = await Promise.all(
        [plane.x, plane.y].map((axis) => this.#client.ask<"axis">({ kind: "axis", variable: path, axis })),
      );
      const [longitudes, latitudes] = [x?.curvilinearExtent, y?.curvilinearExtent];
      if (longitudes === undefined || latitudes === undefined) return;
      const extent = { west: longitudes[0], east: longitudes[1], south: latitudes[0], north: latitudes[1] };
      this.#extents.value = new Map(this.#extents.peek()).set(grid, extent);
    } catch (error) {
      this.#asked.delete(grid);
      this.#fail(error);
    }
  }
}
