import { setTimeout as sleep } from "node:timers/promises";
import { type Browser, chromium, type Page } from "playwright-core";
import { CHROMIUM, CHROMIUM_ARGS } from "../../test/support/clients/browser-page.js";

/** A picture that the explorer has drawn. */
export interface DrawnPicture {
  /** Milliseconds from the begin of the navigation. */
  readonly ms: number;
  /** Index along each axis, joined with commas. */
  readonly at: string;
  /** Level of the overviews; 0 for the array itself. */
  readonly level: number;
  /** Chunks that are read, and that the picture has. */
  readonly done: number;
  readonly total: number;
}

/** A page with the explorer of a dataset. */
export interface ExplorerPage {
  /** Pictures so far, in order. */
  pictures(): Promise<DrawnPicture[]>;
  /** Waits for the first picture that is complete. @returns All until then. @throws Error after a minute without. */
  firstWhole(): Promise<DrawnPicture[]>;
  /** Returns what is seen: pixels of the picture on a grid, and where they lie. */
  look(): Promise<SeenPicture>;
  /** Plays the dimension that slides at 30 steps per second. */
  play(): Promise<void>;
  close(): Promise<void>;
}

/** Brightness of a grid of points of a picture, from the top left. */
export interface SeenPicture {
  /** 0 to 255. */
  readonly brightness: readonly number[];
  /** Points along each side. */
  readonly side: number;
  /** Left, bottom, right and top of the picture, in the coordinates of its axes. */
  readonly box: readonly number[];
}

const LONGEST_MS = 60_000;
const VIEWPORT = { width: 1_280, height: 800 };

/** Runs in the page before anything else: notes each picture that the canvas says it shows. */
const NOTE_PICTURES = `
  globalThis.drawn = [];
  let last = "";
  new MutationObserver(() => {
    const { at, done, level } = document.querySelector("canvas.data")?.dataset ?? {};
    if (done === undefined || last === at + " " + done + " " + level) return;
    last = at + " " + done + " " + level;
    const [read, total] = done.split("/").map(Number);
    globalThis.drawn.push({ ms: performance.now(), at, level: Number(level), done: read, total });
  }).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-at", "data-done", "data-level"] });
`;

const LOOK = `(() => {
  const canvas = document.querySelector("canvas.data");
  const side = 24;
  const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const brightness = [];
  for (let row = 0; row < side; row++)
    for (let column = 0; column < side; column++) {
      const y = Math.floor(((row + 0.5) / side) * canvas.height);
      const x = Math.floor(((column + 0.5) / side) * canvas.width);
      const at = (y * width + x) * 4;
      brightness.push(0.2126 * data[at] + 0.7152 * data[at + 1] + 0.0722 * data[at + 2]);
    }
  return { brightness, side, box: canvas.dataset.box.split(",").map(Number) };
})()`;

/** Starts Chromium. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: [...CHROMIUM_ARGS] });
}

/** Opens the explorer with an empty cache of the browser. The page has been asked for when this resolves. */
export async function openExplorer(browser: Browser, url: string): Promise<ExplorerPage> {
  const context = await browser.newContext({ viewport: VIEWPORT });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.addInitScript(NOTE_PICTURES);
  await page.goto(url, { waitUntil: "commit" });
  const pictures = () => page.evaluate("globalThis.drawn ?? []") as Promise<DrawnPicture[]>;
  return {
    pictures,
    async firstWhole() {
      // The page's policy forbids the evaluation that Playwright's own waiting needs.
      const end = performance.now() + LONGEST_MS;
      while (!(await pictures()).some(({ done, total }) => done === total)) {
        if (performance.now() > end) {
          const text = (await page.evaluate("document.body.innerText")) as string;
          const said = [...complaints, text.slice(0, 1_000)].join("; ");
          throw new Error(`${url}: expected a whole picture within a minute, received ${said}`);
        }
        await sleep(50);
      }
      const all = await pictures();
      return all.slice(0, all.findIndex(({ done, total }) => done === total) + 1);
    },
    look: () => page.evaluate(LOOK) as Promise<SeenPicture>,
    play: () => play(page),
    close: () => context.close(),
  };
}

async function play(page: Page): Promise<void> {
  await page.focus(".map .touch");
  await page.keyboard.press("Space");
  await page.getByLabel("Steps per second").selectOption("30");
}
