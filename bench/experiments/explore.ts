import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import Blosc from "numcodecs/blosc";
import type { Browser } from "playwright-core";
import { makeDemoData } from "../../scripts/demo-data.js";
import { runChild } from "../children.js";
import { DATA_DIRECTORY, FIELD_COMPRESSOR } from "../data/bench-data.js";
import { FIELD_SIDE, fieldValues } from "../data/field.js";
import { tileField } from "../data/tiled-field.js";
import {
  type DrawnPicture,
  type ExplorerPage,
  openExplorer,
  type SeenPicture,
  startBrowser,
} from "../load/explorer-page.js";
import {
  COLD,
  DEMO,
  exploreReport,
  type FirstPictureRecord,
  type PlayRecord,
  WARM,
} from "../report/explore-report.js";
import { startZpublish } from "../start-zpublish.js";
import { correlate } from "../statistics.js";
import type { Experiment, ExperimentContext } from "./experiment.js";
import { openMibStore } from "./open-mib-store.js";

const MAIN = fileURLToPath(new URL("../../src/zpublish.cjs", import.meta.url));
const SIZES = {
  full: { fieldSteps: 64, steps: 16, tiles: 4, played: 60 },
  small: { fieldSteps: 4, steps: 4, tiles: 2, played: 30 },
  tiny: { fieldSteps: 1, steps: 1, tiles: 2, played: 6 },
} as const;
/** Grid of the steps that are played, one chunk each. */
const PLAYED_SHAPE = [500, 1_000] as const;
/** Least correlation between what is seen and what is stored: colours get brighter with the value, but not evenly. */
const LEAST_CORRELATION = 0.8;

interface Subject {
  readonly title: string;
  readonly dataset: unknown;
  /** Directory of a cache that is filled already; undefined for an empty one. */
  readonly cache?: string;
  /** Cells along each side of the field, repeated; undefined if the picture is not compared with it. */
  readonly side?: number;
}

/** Speed of the explorer's page in a browser. */
export const explore: Experiment = {
  title:
    "the explorer in Chromium: first picture of the demo and of an array of 4 GiB with overviews, and playing",
  async run(context) {
    const { rounds, size, onProgress } = context;
    const subjects = await openSubjects(context);
    const played = await writePlayed(context);
    const browser = await startBrowser();
    const records: (FirstPictureRecord | PlayRecord)[] = [];
    try {
      for (let round = 0; round < rounds; round++) {
        const order = round % 2 === 0 ? subjects : [...subjects].reverse();
        for (const [i, subject] of order.entries()) {
          onProgress((round + i / (order.length + 1)) / rounds, subject.title);
          records.push(await measureFirst(subject, round, browser, context));
        }
        onProgress((round + 0.8) / rounds, "playing");
        records.push(await measurePlaying(played, round, browser, context));
      }
    } finally {
      await browser.close();
    }
    const { steps, tiles } = SIZES[size];
    const side = FIELD_SIDE * tiles;
    return {
      records,
      ...exploreReport(records),
      notes: [
        `The large array has ${steps} × ${side} × ${side} cells of float32 in chunks of 1 MiB (Blosc-LZ4), ${((steps * side ** 2 * 4) / 2 ** 30).toFixed(2)} GiB; its files are links to those of a smaller field, repeated. "Warm" is the cache after \`zpublish warm\`; both have a fresh server, and files in the system's page cache.`,
        "Times begin with the navigation of a new browser context, whose cache is empty: page, scripts, metadata, coordinates and range are in them. Chromium runs on the same processors as the server, and draws without a GPU.",
        `The colours on a grid of points were compared with the field: the correlation of brightness and values is at least ${LEAST_CORRELATION}.`,
        `Played are ${SIZES[size].played} steps of ${PLAYED_SHAPE.join(" × ")} cells at 30 per second, after all of them were shown once. Frames are steps that were shown, not repaints.`,
      ],
    };
  },
};

async function openSubjects(context: ExperimentContext): Promise<Subject[]> {
  const { fieldSteps, steps, tiles } = SIZES[context.size];
  const field = await openMibStore(context, fieldSteps);
  const demo = await makeDemoData(join(context.parent ?? DATA_DIRECTORY, "demo"));
  const location = tileField(field, context.freshFolder("large"), steps, tiles);
  const dataset = { location, overviews: true };
  const scratch = context.freshFolder("warm");
  const [file, cache] = [join(scratch, "zpublish.json"), join(scratch, "cache")];
  writeFileSync(file, JSON.stringify({ datasets: { shown: dataset } }));
  context.onProgress(0, "warming overviews");
  await runChild(process.execPath, [
    MAIN,
    "warm",
    "--config",
    file,
    "--cache-dir",
    cache,
    "--log-level",
    "warn",
  ]);
  const side = FIELD_SIDE * tiles;
  return [
    { title: DEMO, dataset: demo.air },
    { title: WARM, dataset, cache, side },
    { title: COLD, dataset, side },
  ];
}

/** Writes steps of a part of the field, one chunk each. */
async function writePlayed({ size, freshFolder }: ExperimentContext): Promise<string> {
  const directory = freshFolder("played");
  mkdirSync(join(directory, "field"));
  const shape = [SIZES[size].played, ...PLAYED_SHAPE];
  const codec = Blosc.fromConfig(FIELD_COMPRESSOR);
  for (let step = 0; step < SIZES[size].played; step++) {
    const values = fieldValues({ begin: [step, 0, 0], length: [1, ...PLAYED_SHAPE] });
    writeFileSync(join(directory, `field/${step}.0.0`), await codec.encode(new Uint8Array(values.buffer)));
  }
  const zarray = {
    ...{ zarr_format: 2, shape, chunks: [1, ...PLAYED_SHAPE], dtype: "<f4", fill_value: "NaN" },
    ...{ order: "C", filters: null, compressor: FIELD_COMPRESSOR },
  };
  writeFileSync(join(directory, ".zgroup"), JSON.stringify({ zarr_format: 2 }));
  writeFileSync(join(directory, "field/.zarray"), JSON.stringify(zarray));
  writeFileSync(
    join(directory, "field/.zattrs"),
    JSON.stringify({ _ARRAY_DIMENSIONS: ["time", "y", "x"], units: "K" }),
  );
  return directory;
}

async function withExplorer<T>(
  { dataset, cache }: Pick<Subject, "dataset" | "cache">,
  browser: Browser,
  { freshFolder }: ExperimentContext,
  work: (page: ExplorerPage) => Promise<T>,
): Promise<T> {
  const args = cache === undefined ? [] : ["--cache-dir", cache];
  const server = await startZpublish({ datasets: { shown: dataset }, scratch: freshFolder("server"), args });
  try {
    const page = await openExplorer(browser, `${server.baseUrl}/datasets/shown/explore`);
    try {
      return await work(page);
    } finally {
      await page.close();
    }
  } finally {
    await server.stop();
  }
}

function measureFirst(
  subject: Subject,
  round: number,
  browser: Browser,
  context: ExperimentContext,
): Promise<FirstPictureRecord> {
  return withExplorer(subject, browser, context, async (page) => {
    const pictures = await page.firstWhole();
    const [first, whole] = [pictures[0] as DrawnPicture, pictures.at(-1) as DrawnPicture];
    checkSeen(subject, await page.look(), Number(whole.at.split(",")[0]));
    return {
      ...{ kind: "first picture", round, subject: subject.title, firstMs: first.ms, wholeMs: whole.ms },
      ...{ level: whole.level, chunks: whole.total },
    };
  });
}

function measurePlaying(
  dataset: string,
  round: number,
  browser: Browser,
  context: ExperimentContext,
): Promise<PlayRecord> {
  return withExplorer({ dataset }, browser, context, async (page) => {
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
    return {
      ...{ kind: "play", round, framesPerSecond: (gaps.length / span) * 1_000 },
      longestMs: Math.max(...gaps),
    };
  });
}

/** The picture gets brighter where the values are greater. @throws Error */
function checkSeen({ title, side }: Subject, seen: SeenPicture, step: number): void {
  const { brightness, box } = seen;
  if (new Set(brightness).size < 4)
    throw new Error(`explore: ${title}: expected a picture, received one of few colours`);
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
    throw new Error(`explore: ${title}: expected the field, received a correlation of ${correlation}`);
}
