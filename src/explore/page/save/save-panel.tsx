import { labelWithUnits } from "../../../cf/unit-text.js";
import { useValue } from "../hooks.js";
import type { ExploreModel } from "../model.js";
import { shownSteps } from "../status-text.js";

/** Lets a person save a file. */
export function saveFile(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  // The browser reads the content after the click.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Returns a file name of words: `air-series-40N-245E.csv` of `air series`, `40°N`, `245°E`. */
export function fileName(words: readonly string[], extension: string): string {
  const name = words
    .join("-")
    .replace(/[^\p{L}\p{N}.+-]+/gu, "-")
    .replace(/-{2,}/g, "-")
    .replace(/^[-.]+|-+$/g, "");
  return `${name.slice(0, 100) || "data"}.${extension}`;
}

/** What is saved as a picture. */
interface PngParts {
  readonly title: string;
  /** Units, date, place: one line; empty for none. */
  readonly subtitle: string;
  /** Element whose canvases are drawn one above the other, as on the screen. */
  readonly figure: HTMLElement;
  /** Canvas below the figure: the colour bar. */
  readonly bar: HTMLCanvasElement | undefined;
}

const MARGIN = 16;
const TITLE_SIZE = 18;
const TEXT_SIZE = 13;
const LINK_SIZE = 11;
const LINE = 1.4;
/** Lines of a link that are drawn at most. */
const MAX_LINK_LINES = 4;

/** Saves a figure with title, colour bar and link, in the colours and the resolution of the screen. */
export function savePng(words: readonly string[], { title, subtitle, figure, bar }: PngParts): void {
  const ratio = devicePixelRatio;
  const outer = figure.getBoundingClientRect();
  const barBox = bar?.getBoundingClientRect();
  const width = Math.max(outer.width, barBox?.width ?? 0) + 2 * MARGIN;
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d") as CanvasRenderingContext2D;
  const style = getComputedStyle(document.body);
  const font = (size: number, weight = 400): string => `${weight} ${size}px ${style.fontFamily}`;
  context.font = font(TITLE_SIZE, 600);
  const titles = wrapped(context, title, width - 2 * MARGIN, 2);
  context.font = font(TEXT_SIZE);
  const subtitles = subtitle === "" ? [] : wrapped(context, subtitle, width - 2 * MARGIN, 3);
  context.font = font(LINK_SIZE);
  const links = wrapped(context, publicLink(location.href), width - 2 * MARGIN, MAX_LINK_LINES);
  const head = (titles.length * TITLE_SIZE + subtitles.length * TEXT_SIZE) * LINE;
  const barHeight = barBox === undefined ? 0 : barBox.height + MARGIN / 2;
  const height = 2.5 * MARGIN + head + outer.height + barHeight + links.length * LINK_SIZE * LINE;

  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  context.scale(ratio, ratio);
  context.fillStyle = style.backgroundColor;
  context.fillRect(0, 0, width, height);
  context.fillStyle = style.color;
  context.textBaseline = "top";
  let top = MARGIN;
  const write = (lines: readonly string[], size: number, weight?: number): void => {
    context.font = font(size, weight);
    for (const line of lines) {
      context.fillText(line, MARGIN, top);
      top += size * LINE;
    }
  };
  write(titles, TITLE_SIZE, 600);
  write(subtitles, TEXT_SIZE);
  top += MARGIN / 4;
  // Cells are never smoothed.
  context.imageSmoothingEnabled = false;
  for (const each of figure.querySelectorAll("canvas")) {
    const { x, y, width, height } = each.getBoundingClientRect();
    const [left, down] = [MARGIN + x - outer.x, top + y - outer.y];
    if (each.width > 0 && each.height > 0) context.drawImage(each, left, down, width, height);
  }
  context.imageSmoothingEnabled = true;
  top += outer.height + MARGIN / 4;
  if (bar !== undefined && barBox !== undefined) {
    context.drawImage(bar, MARGIN, top, barBox.width, barBox.height);
    top += barHeight;
  }
  write(links, LINK_SIZE);
  canvas.toBlob((blob) => saveFile(fileName(words, "png"), blob as Blob), "image/png");
}

/** Returns the address of this page without token and ticket, which are no part of a picture that is passed on. */
function publicLink(href: string): string {
  const url = new URL(href);
  url.searchParams.delete("token");
  url.pathname = url.pathname.replace(/\/s\/[\w-]+\.[\w-]{43}(?=\/)/, "");
  return url.href;
}

/** Breaks a text into lines of a width, at any character; what is too much ends with an ellipsis. */
function wrapped(context: CanvasRenderingContext2D, text: string, width: number, maxLines: number): string[] {
  const lines = [""];
  for (const character of text) {
    const line = lines.at(-1)! + character;
    if (context.measureText(line).width <= width) lines[lines.length - 1] = line;
    else lines.push(character.trim());
  }
  if (lines.length <= maxLines) return lines;
  return [...lines.slice(0, maxLines - 1), `${lines[maxLines - 1]!.slice(0, -1)}…`];
}

/** Saves the picture. Plots have buttons of their own. */
export function SavePanel({ model }: { readonly model: ExploreModel }) {
  const resolved = useValue(model.resolved);
  const frame = useValue(model.picture.frame);
  if (resolved?.axes === undefined) return null;
  const { variable } = resolved;
  const save = (): void => {
    const steps = shownSteps(model, resolved);
    savePng([variable.name, ...steps], {
      title: labelWithUnits(variable.title, variable.units),
      subtitle: [model.source.title, ...steps].join(" · "),
      figure: document.querySelector<HTMLElement>(".map")!,
      bar: document.querySelector<HTMLCanvasElement>(".bar canvas") ?? undefined,
    });
  };
  return (
    <section class="save" aria-label="Save">
      <button type="button" disabled={frame === undefined} onClick={save}>
        Save picture as PNG
      </button>
    </section>
  );
}
