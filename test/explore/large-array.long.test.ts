import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import type { Page } from "playwright-core";
import t from "tap";
import { clientMissing } from "../support/clients/require-client.js";
import { openExplorer, shows } from "../support/explore/explorer-browser.js";

const STEPS = 16;
/** Chunks along both axes of the plane, and cells along both axes of a chunk. */
const GRID = 16;
const LENGTH = 800;
const CELLS = GRID * LENGTH;

/** Writes references to an array of 10.5 GB, whose chunks are one file. */
async function writeReferences(directory: string): Promise<void> {
  const plane = Float32Array.from({ length: LENGTH * LENGTH }, (_, index) => index % LENGTH);
  await writeFile(join(directory, "chunk.bin"), deflateSync(new Uint8Array(plane.buffer)));
  const coordinate = (first: number, last: number) =>
    Float64Array.from({ length: CELLS }, (_, index) => first + ((last - first) * (index + 0.5)) / CELLS);
  const refs: Record<string, unknown> = { ".zgroup": '{"zarr_format":2}' };
  const common = { zarr_format: 2, filters: null, order: "C", fill_value: null };
  for (const [name, first, last, units] of [
    ["lat", 90, -90, "degrees_north"],
    ["lon", -180, 180, "degrees_east"],
  ] as const) {
    const array = { ...common, shape: [CELLS], chunks: [CELLS], dtype: "<f8", compressor: null };
    refs[`${name}/.zarray`] = JSON.stringify(array);
    refs[`${name}/.zattrs`] = JSON.stringify({ _ARRAY_DIMENSIONS: [name], units });
    refs[`${name}/0`] = `base64:${Buffer.from(coordinate(first, last).buffer).toString("base64")}`;
  }
  refs["v/.zarray"] = JSON.stringify({
    ...common,
    shape: [STEPS, CELLS, CELLS],
    chunks: [1, LENGTH, LENGTH],
    dtype: "<f4",
    compressor: { id: "zlib", level: 1 },
  });
  refs["v/.zattrs"] = JSON.stringify({ _ARRAY_DIMENSIONS: ["step", "lat", "lon"], units: "m" });
  for (let index = 0; index < STEPS * GRID * GRID; index++) {
    const key = [Math.floor(index / GRID / GRID), Math.floor(index / GRID) % GRID, index % GRID].join(".");
    refs[`v/${key}`] = ["chunk.bin"];
  }
  await writeFile(join(directory, "large.json"), JSON.stringify({ version: 1, refs }));
}

/** Opens the explorer, and counts chunks of the variable that are asked for. */
async function openAndCount(page: Page, url: string): Promise<() => readonly string[]> {
  const asked: string[] = [];
  page.on("request", (request) => {
    if (/\/v\/\d+\.\d+\.\d+$/.test(request.url())) asked.push(request.url());
  });
  await page.goto(url);
  return () => asked;
}

t.test("an array of 10 GB in a browser", { skip: clientMissing("chromium") }, async (t) => {
  const { open, addressOf } = await openExplorer(t, writeReferences, {
    plain: { location: "large.json" },
    levels: { location: "large.json", overviews: true },
  });

  await t.test("with overviews, is opened with fewer than 20 chunks", async (t) => {
    const { page } = await open(t);
    const asked = await openAndCount(page, addressOf("levels"));
    await shows(page);
    t.ok(asked().length > 0 && asked().length < 20, `${asked().length} chunks`);
    t.ok(asked().every((url) => url.includes("/overviews/zarr/")));
    t.ok(Number(await page.locator("canvas.data").getAttribute("data-level")) > 0);
  });

  await t.test("without them, is shown by its centre, with a sentence", async (t) => {
    const { page } = await open(t);
    const asked = await openAndCount(page, addressOf("plain"));
    await shows(page);
    // Some for the range, and those of 128 MiB.
    t.ok(asked().length > 0 && asked().length <= 96, `${asked().length} chunks`);
    const [left = 0, bottom = 0, right = 0, top = 0] = (
      (await page.locator("canvas.data").getAttribute("data-box")) ?? ""
    )
      .split(",")
      .map(Number);
    t.ok(Math.abs(left + right) < 1 && Math.abs(bottom + top) < 1, "the centre");
    t.ok(right - left < 180, `${left} to ${right}`);
    const sentence = page.getByText(/Only the centre.* 2\d\d chunks, 6\d\d MB.* no overviews/);
    await sentence.waitFor();
    await page.getByRole("button", { name: "Read all" }).waitFor();
  });
});
