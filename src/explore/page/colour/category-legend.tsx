import { ABOVE, MISSING } from "../../protocol.js";
import { DrawnCanvas } from "../controls.js";
import { clearedContext, useValue } from "../hooks.js";
import type { ExploreModel } from "../model.js";
import { type Categories, categoryColour } from "./categories.js";

const LINE = 22;
const SWATCH = 14;
const GAP = 16;

/** The legend in place of the colour bar: the colour and the name of each category. A canvas, since saved pictures have it too. */
export function CategoryLegend(props: { readonly model: ExploreModel; readonly categories: Categories }) {
  const { model, categories } = props;
  const bytes = useValue(model.contents);
  const names = shownNames(categories, bytes);
  const hasOther = bytes.has(ABOVE);
  return (
    <div class="bar">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys */}
      <section class="bar-scale categories" tabIndex={0} aria-label="Categories">
        <DrawnCanvas
          inputs={[categories, names.join(" "), hasOther]}
          draw={(context) => drawLegend(context, categories, names, hasOther)}
          role="img"
          aria-label={`Categories: ${names.map((index) => categories.names[index]).join(", ")}`}
        />
      </section>
      <Legend model={model} />
    </div>
  );
}

/** What the colours count, and what missing cells look like. */
export function Legend(props: { readonly model: ExploreModel; readonly text?: string | undefined }) {
  const { model, text } = props;
  return (
    <p class="legend">
      {text !== undefined && <span>{text}</span>}
      {useValue(model.contents).has(MISSING) && (
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
  measured: CanvasRenderingContext2D,
  categories: Categories,
  shown: readonly number[],
  hasOther: boolean,
): void {
  const { canvas } = measured;
  const items = shown.map((index) => ({
    name: categories.names[index]!,
    colour: categoryColour(categories, categories.bytes[index]),
  }));
  if (hasOther) items.push({ name: "other", colour: categoryColour(categories, undefined) });
  let [x, y] = [0, 0];
  const placed = items.map(({ name, colour }) => {
    const wide = SWATCH + 6 + measured.measureText(name).width + GAP;
    if (x > 0 && x + wide - GAP > canvas.clientWidth) [x, y] = [0, y + LINE];
    const item = { name, colour, x, y };
    x += wide;
    return item;
  });
  canvas.style.height = `${y + LINE}px`;
  const context = clearedContext(canvas)!;
  const text = context.fillStyle;
  context.textBaseline = "middle";
  for (const item of placed) {
    const middle = item.y + LINE / 2;
    context.fillStyle = item.colour;
    context.fillRect(item.x, middle - SWATCH / 2, SWATCH, SWATCH);
    context.fillStyle = text;
    context.fillText(item.name, item.x + SWATCH + 6, middle);
  }
}
