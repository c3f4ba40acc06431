import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Blosc from "numcodecs/blosc";
import type { Browser } from "playwright-core";
import { makeDemoData } from "../../scripts/demo/demo-data.js";
import { DATA_DIRECTORY, FIELD_COMPRESSOR } from "../data/bench-data.js";
import { FIELD_SIDE, fieldValues, tileField } from "../data/field.js";
import {
  type BenchContext,
  type BenchTable,
  type Build,
  type Figures,
  perBuild,
} from "../harness/harness.js";
import {
  type DrawnPicture,
  type ExplorerPage,
  openExplorer,
  type SeenPicture,
  startBrowser,
} from "../load/explorer-page.js";
import { runWarm, withZpublish } from "../start-zpublish.js";
import { correlate } from "../statistics.js";
import { openMibStore } from "./rows.js";

const SIZES = {
  full: { fieldSteps: 64, steps: 16, tiles: 4, played: 60 },
  small: { fieldSteps: 4, steps: 4, tiles: 2, played: 30 },
  tiny: { fieldSteps: 1, steps: 1, tiles: 2, played: 6 },
} as const;
/** Grid of the steps that are played, one chunk each. */
const PLAYED_SHAPE = [500, 1_000] as const;
/** Least correlation between what is seen and what is stored: colours get brighter with the value, but not evenly. */
const LEAST_CORRELATION = 0.8;
const DEMO = "the demo's air temperature";
const WARM = "a large array, its overviews warm";
const COLD = "a large array, its overviews not made";
const PLAYING = "steps in turn";

interface Shown {
  readonly title: string;
  readonly dataset: unknown;
  /** Directories of caches that have its overviews, by build; undefined for an empty cache. */
  readonly caches?: ReadonlyMap<Build, string>;
  /** Cells along each side of the field, repeated; undefined if the picture is not compared with it. */
  readonly side?: number;
}

/** Speed of the explorer's page in a browser. */
export const explore: BenchTable = {
  title:
    "the explorer in Chromium: first picture of the demo and of an array of 4 GiB with overviews, and playing",
  async *contests(context) {
    const shown = await openShown(context);
    const played = await writePlayed(context);
    const browser = await startBrowser();
    const { steps, tiles } = SIZES[context.size];
    const side = FIELD_SIDE * tiles;
    try {
      yield {
        title: "Milliseconds until a picture",
        contestants: shown.flatMap((each) =>
          perBuild(context, each.title, (build) => measureFirst(each, build, browser, context)),
        ),
        compared: "whole ms",
        aims: [
          { of: DEMO, most: 1_000 },
          { of: WARM, most: 2_000 },
          { of: COLD, figure: "first ms", most: 4_000 },
        ],
        notes: [
          `The large array has ${steps} × ${side} × ${side} cells of float32 in chunks of 1 MiB (Blosc-LZ4), ${((steps * side ** 2 * 4) / 2 ** 30).toFixed(2)} GiB; its files are links to those of a smaller field, repeated. "Warm" is the cache after \`zpublish warm\`; both have a fresh server.`,
          "Times begin with the navigation of a new browser context, whose cache is empty: page, scripts, metadata, coordinates and range are in them. Chromium runs on the same processors as the server, and draws without a GPU.",
          `The colours on a grid of points were compared with the field: the correlation of brightness and values is at least ${LEAST_CORRELATION}.`,
        ],
      };
      yield {
        title: "Playing",
        contestants: perBuild(context, PLAYING, (build) => measurePlaying(played, build, browser, context)),
        compared: "steps/s",
        aims: [{ of: PLAYING, least: 29 }],
        notes: [
          `Steps of ${PLAYED_SHAPE.join(" × ")} cells at 30 per second, after all of them were shown once. Counted are steps that were shown, not repaints.`,
        ],
      };
    } finally {
      await browser.close();
    }
  },
};

async function openShown(context: BenchContext): Promise<Shown[]> {
  const { fieldSteps, steps, tiles } = SIZES[context.size];
  const field = await openMibStore(context, fieldSteps);
  const demo = await makeDemoData(join(context.parent ?? DATA_DIRECTORY, "demo"));
  const location = tileField(field, context.freshFolder("large"), steps, tiles);
  const dataset = { location, overviews: true };
  const caches = new Map<Build, string>();
  for (const build of context.builds) {
    context.onProgress(0, "warming overviews");
    const scratch = context.freshFolder(`warm-${build.name}`);
    await runWarm({ build, datasets: { shown: dataset }, scratch });
    caches.set(build, join(scratch, "cache"));
  }
  const side = FIELD_SIDE * tiles;
  return [
    { title: DEMO, dataset: demo.air },
    { title: WARM, dataset, caches, side },
    { title: COLD, dataset, side },
  ];
}

/** Writes steps of a part of the field, one chunk each. */
async function writePlayed({ size, freshFolder }: BenchContext): Promise<string> {
  const directory = freshFolder("played");
  mkdirSync(join(directory, "field"));
  const shape = [SIZES[size].played, ...PLAYED_SHAPE];
  const codec = Blosc.fromConfig(FIELD_COMPRESSOR);
  for (let step = 0; step < SIZES[size].played; step++) {
    const values = fieldValues({ begin: [step, 0, 0], length: [1, ...PLAYED_SHAPE] });
    writeFileSync(join(directory, `field/${step}.0.0`), await codec.encode(new Uint8Array(values.buffer)));
  }
  const documents = {
    ".zgroup": { zarr_format: 2 },
    "field/.zarray": {
      ...{ zarr_format: 2, shape, chunks: [1, ...PLAYED_SHAPE], dtype: "<f4", fill_value: "NaN" },
      ...{ order: "C", filters: null, compressor: FIELD_COMPRESSOR },
    },
    "field/.zattrs": { _ARRAY_DIMENSIONS: ["time", "y", "x"], units: "K" },
  };
  for (const [name, document] of Object.entries(documents))
    writeFileSync(join(directory, name), JSON.stringify(document));
  return directory;
}

async function withExplorer(
  { dataset, caches }: Pick<Shown, "dataset" | "caches">,
  build: Build,
  browser: Browser,
  { freshFolder }: BenchContext,
  work: (page: ExplorerPage) => Promise<Figures>,
): Promise<Figures> {
  const scratch = freshFolder("server");
  const cache = caches?.get(build);
  const args = cache === undefined ? [] : ["--cache-dir", cache];
  return withZpublish({ build, datasets: { shown: dataset }, scratch, args }, async ({ baseUrl }) => {
    const page = await openExplorer(browser, `${baseUrl}/datasets/shown/explore`);
    try {
      return await work(page);
    } finally {
      await page.close();
    }
  });
}

function measureFirst(shown: Shown, build: Build, browser: Browser, context: BenchContext): Promise<Figures> {
  return withExplorer(shown, build, browser, context, async (page) => {
    const pictures = await page.firstWhole();
    const [first, whole] = [pictures[0]!, pictures.at(-1)!];
    checkSeen(shown, await page.look(), Number(whole.at.split(",")[0]));
    return { "first ms": first.ms, "whole ms": whole.ms, chunks: whole.total, level: whole.level };
  });
}

function measurePlaying(
  dataset: string,
  build: Build,
  browser: Browser,
  context: BenchContext,
): Promise<Figures> {
  return withExplorer({ dataset }, build, browser, context, async (page) => {
    await page.firstWhole();
    await page.play();
    const { played } = SIZES[context.size];
    const isWhole = ({ done, total }: DrawnPicture) => done === total;
    let pictures: DrawnPicture[] = [];
    do {
      await sleep(200);
      pictures = (await page.pictures()).filter(isWhole);
    } while (new Set(pictures.map(({ at }) => at)).size < played);
    const before = pictures.length;
    await sleep(context.seconds * 1_000);
    pictures = (await page.pictures()).filter(isWhole).slice(before - 1);
    const times = pictures.map(({ ms }) => ms);
    const gaps = times.slice(1).map((time, index) => time - times[index]!);
    const span = times.at(-1)! - times[0]!;
    return { "steps/s": (gaps.length / span) * 1_000, "longest gap, ms": Math.max(...gaps) };
  });
}

/** The picture gets brighter with the values. @throws Error */
function checkSeen({ title, side }: Shown, seen: SeenPicture, step: number): void {
  const { brightness, box } = seen;
  if (new Set(brightness).size < 4)
    throw new Error(`${title}: expected a picture, received one of few colours`);
  if (side === undefined) return;
  const [left, bottom, right, top] = box as [number, number, number, number];
  const points = brightness.flatMap((each, index) => {
    const x = Math.round(left + (((index % seen.side) + 0.5) / seen.side) * (right - left));
    const y = Math.round(top + ((Math.floor(index / seen.side) + 0.5) / seen.side) * (bottom - top));
    if (Math.min(x, y) < 0 || Math.max(x, y) >= side) return [];
    const begin = [step, y % FIELD_SIDE, x % FIELD_SIDE] as const;
    return [[each, fieldValues({ begin, length: [1, 1, 1] })[0]!] as const];
  });
  const correlation = correlate(
    points.map(([each]) => each),
    points.map(([, value]) => value),
  );
  if (!(correlation >= LEAST_CORRELATION))
    throw new Error(`${title}: expected the field, received a correlation of ${correlation}`);
}
