import { computed, effect, type ReadonlySignal, signal } from "@preact/signals-core";
import { type ColourScaleName, colourTable } from "../../../colour/colour-scales.js";
import type { ColourChoice, RangeAnswer, ShownRange, Viewport } from "../../protocol.js";
import type { PageState, ResolvedView } from "../page-state.js";
import { type Categories, categoriesOf } from "./categories.js";

/** How far below its greatest value a logarithmic range begins if its least value is not positive. */
const LOG_DECADES = 3;

/** Returns the range of the colours: by hand, else as it was found; symmetric or logarithmic if that was chosen. @returns Undefined as long as it is not found. */
export function shownRangeOf(choice: ColourChoice, found: RangeAnswer | undefined): ShownRange | undefined {
  const byHand = choice.range !== undefined && "low" in choice.range ? choice.range : undefined;
  if (byHand === undefined && found === undefined) return undefined;
  let { low, high } = byHand ?? found?.range ?? { low: 0, high: 1 };
  if (choice.isLog) {
    if (high <= 0) [low, high] = [0, 1];
    return { low: low > 0 ? low : high / 10 ** LOG_DECADES, high, isLog: true };
  }
  if (choice.isSymmetric) {
    high = Math.max(Math.abs(low), Math.abs(high));
    low = -high;
  }
  return { low, high, isLog: false };
}

/** Returns the chosen colour scale, else a diverging one if the range is symmetric about zero, else viridis. */
export function scaleOf(choice: ColourChoice, range: ShownRange | undefined): ColourScaleName {
  if (choice.scale !== undefined) return choice.scale;
  return range !== undefined && !range.isLog && range.low === -range.high ? "rdbu" : "viridis";
}

/** Returns where a value lies in a range: 0 at its low end, 1 at its high end, beyond that outside of it. */
export function positionInRange(range: ShownRange, value: number): number {
  if (!range.isLog) return (value - range.low) / (range.high - range.low);
  return Math.log(value / range.low) / Math.log(range.high / range.low);
}

/** Returns the value at a position of a range: the reverse of {@link positionInRange}. */
export function valueInRange(range: ShownRange, position: number): number {
  if (!range.isLog) return range.low + (range.high - range.low) * position;
  return range.low * (range.high / range.low) ** position;
}

/** Rounds a value to the digits that matter beside the length of a range. */
export function roundToRange(value: number, range: ShownRange): number {
  const length = range.isLog ? Math.abs(value) / 10 : range.high - range.low;
  const digits = 2 - Math.floor(Math.log10(length));
  return Number.isFinite(digits) ? Number(value.toFixed(Math.max(0, Math.min(20, digits)))) : value;
}

/** Characters of a number beyond which its exponent is shorter. */
const MAX_PLAIN = 8;

/** Writes an end of a range, with the digits that matter beside its length. */
export function rangeText(value: number, range: ShownRange): string {
  const rounded = roundToRange(value, range);
  const plain = String(rounded);
  if (plain.length <= MAX_PLAIN || rounded === 0) return plain;
  const length = range.isLog ? Math.abs(value) / 10 : range.high - range.low;
  const digits = 2 + Math.max(0, Math.ceil(Math.log10(Math.abs(rounded) / length)));
  const short = rounded.toExponential(Math.min(15, digits)).replace(/\.?0*e\+?/, "e");
  return short.length < plain.length ? short : plain;
}

/** Whether a picture is composed of bands whose values are channels of colours themselves. */
function isOfBytes(resolved: ResolvedView | undefined): boolean {
  return resolved?.bands !== undefined && resolved.variable.dataType.itemSize === 1;
}

const DEFAULT_PERCENTILES = [2, 98] as const;

/** Colours of the picture: range, histogram, and scale. The range is found once per variable, and stays while time moves. */
export class ColourModel {
  readonly #model: PageState;
  readonly #found = signal<ReadonlyMap<string, RangeAnswer>>(new Map());
  readonly #asked = new Set<string>();

  readonly choice: ReadonlySignal<ColourChoice>;
  /** Range and histogram as they were found; undefined until then. */
  readonly found: ReadonlySignal<RangeAnswer | undefined>;
  /** Categories of the variable; undefined if it has none, so that it has a range and a scale. */
  readonly categories: ReadonlySignal<Categories | undefined>;
  readonly range: ReadonlySignal<ShownRange | undefined>;
  readonly scale: ReadonlySignal<ColourScaleName>;
  /** 256 × 3 bytes. */
  readonly table: ReadonlySignal<Uint8Array>;

  constructor(model: PageState) {
    this.#model = model;
    const { view, resolved } = model;
    this.choice = computed(() => view.value.colour);
    this.found = computed(() => {
      const key = this.#keyOf(resolved.value);
      return key === undefined ? undefined : this.#found.value.get(key);
    });
    this.categories = computed(() => model.variable.value && categoriesOf(model.variable.value));
    this.range = computed(() => {
      if (isOfBytes(resolved.value)) return { low: 0, high: 255, isLog: false };
      return this.categories.value?.range ?? shownRangeOf(this.choice.value, this.found.value);
    });
    this.scale = computed(() => scaleOf(this.choice.value, this.range.value));
    this.table = computed(
      () => this.categories.value?.table ?? colourTable(this.scale.value, this.choice.value.isReversed),
    );
    effect(() => this.#find(resolved.value));
  }

  choose(part: Partial<ColourChoice>): void {
    this.#model.change({ colour: { ...this.choice.peek(), ...part } });
  }

  /** Sets the range by hand; its ends may come in any order. */
  setRange(first: number, second: number): void {
    if (!Number.isFinite(first) || !Number.isFinite(second) || first === second) return;
    const [low, high] = [Math.min(first, second), Math.max(first, second)];
    this.choose({ range: { low, high }, isSymmetric: false });
  }

  /** Keeps scale and range as they are for other variables too, or no longer. */
  toggleLock(): void {
    const range = this.range.peek();
    if (this.categories.peek() !== undefined) return;
    if (this.choice.peek().isLocked || range === undefined) this.choose({ isLocked: false });
    else {
      const { low, high } = range;
      this.choose({ isLocked: true, scale: this.scale.peek(), range: { low, high } });
    }
  }

  /** Fits the range to what is visible. */
  async fitHere(): Promise<void> {
    const { resolved, camera } = this.#model;
    const shown = resolved.peek();
    if (shown?.axes === undefined || this.categories.peek() !== undefined) return;
    try {
      const { range } = await this.#ask(shown, camera.viewport.peek());
      if (range !== undefined && resolved.peek()?.variable === shown.variable)
        this.setRange(range.low, range.high);
    } catch (error) {
      this.#model.fail(error);
    }
  }

  /** Asks again. @param isConfirmed Whether a person agreed to read much. */
  retry(isConfirmed = false): void {
    this.#asked.clear();
    this.#find(this.#model.resolved.peek(), isConfirmed);
  }

  #find(shown: ResolvedView | undefined, isConfirmed = false): void {
    const key = this.#keyOf(shown);
    if (shown === undefined || key === undefined || this.#asked.has(key)) return;
    this.#asked.add(key);
    this.#ask(shown, undefined, isConfirmed)
      .then((answer) => {
        this.#found.value = new Map(this.#found.peek()).set(key, answer);
      })
      .catch((error: unknown) => this.#model.fail(error));
  }

  #ask({ variable, at, axes }: ResolvedView, viewport?: Viewport, isConfirmed = false): Promise<RangeAnswer> {
    const selection = { variable: variable.path, at };
    const percentiles = this.#percentiles();
    const request = { kind: "range", selection, axes, percentiles, viewport, isConfirmed } as const;
    return this.#model.client.ask<"range">(request);
  }

  #keyOf(shown: ResolvedView | undefined): string | undefined {
    if (shown?.axes === undefined || shown.variable.problem !== undefined) return undefined;
    if (this.categories.value !== undefined || isOfBytes(shown)) return undefined;
    return `${this.#percentiles().join("-")} ${shown.variable.path}`;
  }

  #percentiles(): readonly [number, number] {
    const { range } = this.choice.value;
    return range !== undefined && "percentiles" in range ? range.percentiles : DEFAULT_PERCENTILES;
  }
}
