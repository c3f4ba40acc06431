import { useEffect, useRef } from "preact/hooks";
import { useValue, watchLook } from "../hooks.js";
import type { ExploreModel } from "../model.js";
import { type Categories, categoryColour } from "./categories.js";

const LINE = 22;
const SWATCH = 14;
const GAP = 16;

/** The legend in place of the colour bar: the colour and the name of each category. A canvas, since saved pictures have it too. */
export function CategoryLegend(props: { readonly model: ExploreModel; readonly categories: Categories }) {
  const { model, categories } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const { hasAbove, bytes } = useValue(model.contents);
  const names = shownNames(categories, bytes);
  useEffect(() => {
    const element = canvas.current;
    if (element === null) return undefined;
    const draw = (): void => drawLegend(element, categories, names, hasAbove);
    draw();
    return watchLook(element, draw);
  }, [categories, names.join(" "), hasAbove]);
  return (
    <div class="bar">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys */}
      <section class="bar-scale categories" tabIndex={0} aria-label="Categories">
        <canvas
          ref={canvas}
          role="img"
          aria-label={`Categories: ${names.map((index) => categories.names[index]).join(", ")}`}
        />
      </section>
      <Legend model={model} />
    </div>
  );
}

/** What the colours count, and what missing cells look like. */
export function Legend({
  model,
  text,
}: {
  readonly model: ExploreModel;
  readonly text?: string | undefined;
}) {
  const { hasMissing } = useValue(model.contents);
  return (
    <p class="legend">
      {text !== undefined && <span class="units">{text}</span>}
      {hasMissing && (
        <span>
          <span class="hatch" aria-hidden="true" /> missing
        </span>
      )}
    </p>
  );
}

/** Categories up to which all are in the legend; of more only those in the picture. */
const MAX_ALWAYS = 24;

/** Returns the indices of the categories that the legend has. */
function shownNames({ bytes }: Categories, inPicture: ReadonlySet<number>): number[] {
  const all = [...bytes.keys()];
  return all.length <= MAX_ALWAYS ? all : all.filter((index) => inPicture.has(bytes[index]!));
}

function drawLegend(
  canvas: HTMLCanvasElement,
  categories: Categories,
  shown: readonly number[],
  hasOther: boolean,
): void {
  const context = canvas.getContext("2d");
  const { clientWidth: width } = canvas;
  if (context === null || width === 0) return;
  const style = getComputedStyle(canvas);
  const font = `12px ${style.fontFamily}`;
  context.font = font;
  const items = shown.map((index) => ({
    name: categories.names[index]!,
    colour: categoryColour(categories, categories.bytes[index]),
  }));
  if (hasOther) items.push({ name: "other", colour: categoryColour(categories, undefined) });
  let [x, y] = [0, 0];
  const placed = items.map(({ name, colour }) => {
    const wide = SWATCH + 6 + context.measureText(name).width + GAP;
    if (x > 0 && x + wide - GAP > width) [x, y] = [0, y + LINE];
    const item = { name, colour, x, y };
    x += wide;
    return item;
  });
  const height = y + LINE;
  canvas.style.height = `${height}px`;
  const ratio = devicePixelRatio;
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  context.scale(ratio, ratio);
  context.font = font;
  context.textBaseline = "middle";
  for (const item of placed) {
    const middle = item.y + LINE / 2;
    context.fillStyle = item.colour;
    context.fillRect(item.x, middle - SWATCH / 2, SWATCH, SWATCH);
    context.fillStyle = style.color;
    context.fillText(item.name, item.x + SWATCH + 6, middle);
  }
}
