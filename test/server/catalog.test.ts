import { utimesSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import t, { type Test } from "tap";
import { until } from "../support/folder-of-days.js";
import { gridFile } from "../support/grid-file.js";

import { startServer } from "../support/servers/start-server.js";
import { makeDirectory, writeFiles } from "../support/write-store.js";

const OPTIONS = { immutable: false, encoding: {}, variables: {} };
/** Files of a restart have the same times, so that nothing tells that their content is another one. */
const WRITTEN = 1_700_000_000;

function nameOf(day: number): string {
  return `${day < 15 ? 2023 : 2024}/t2m-${String(day).padStart(3, "0")}.nc`;
}

function write(root: string, name: string, bytes: Uint8Array, time = WRITTEN): void {
  writeFileSync(join(root, name), bytes);
  utimesSync(join(root, name), time, time);
}

/** Makes thirty files in two folders, two others, and one that is no NetCDF file. */
async function makeFolder(t: Test): Promise<string> {
  const root = join(await makeDirectory(t), "days");
  await writeFiles(root, { "2023/x": "", "2024/x": "" });
  for (let day = 0; day < 30; day++)
    write(root, nameOf(day), gridFile({ days: [day, day + 0.5], title: `Day ${day}` }));
  write(root, "mask.nc", gridFile({ latitudes: [-10, 10], longitudes: [170, 180, 190] }));
  write(root, "broken.nc", Buffer.from("no NetCDF at all"));
  return root;
}

async function serve(t: Test, root: string, cache: string) {
  const server = await startServer(t, {
    collections: [{ name: basename(root), root, ...OPTIONS }],
    cache: { directory: cache, maxBytes: 2 ** 24 },
  });
  const page = async (query = "") => (await server.get(`/${query}`)).text();
  /** Loads the page until all datasets are described. */
  const described = () => until(page, (html) => !html.includes("not described yet"));
  return { ...server, page, described };
}

/** Returns the list item of a dataset. */
function itemOf(html: string, id: string): string {
  const items = html
    .split("</li>\n")
    .filter((item) => item.includes(`href="datasets/${encodeURIComponent(id)}/"`));
  t.equal(items.length, 1, id);
  return items[0] ?? "";
}

t.test("a folder's page describes files that nothing has opened, also after a restart", async (t) => {
  const root = await makeFolder(t);
  const cache = await makeDirectory(t);
  const first = await serve(t, root, cache);
  const html = await first.described();
  t.match(html, "32 datasets to read");
  t.match(html, '<h3 class="head">2023 <span class="count">(15)</span></h3>');
  const item = itemOf(html, "days~2023~t2m-003.nc");
  t.match(item, "<bdi>t2m-003.nc</bdi>");
  t.match(item, "Day 3");
  t.match(item, "2000-01-04 00:00 to 2000-01-04 12:00 · 5°E to 12°E, 45°N to 53°N");
  t.match(item, '<img src="datasets/days~2023~t2m-003.nc/thumbnail/t2m.png"');
  t.match(item, 'loading="lazy"');
  t.match(item, 'href="datasets/days~2023~t2m-003.nc/explore"');
  t.match(item, "<b>time</b>: 2");
  t.match(itemOf(html, "days~mask.nc"), "170°E to 170°W, 10°S to 10°N");
  t.match(itemOf(html, "days~broken.nc"), 'class="problem"');
  t.notMatch(html, root, "the page names no place of the machine");
  await first.server.close();

  // Nobody can tell that these files have other bytes without opening them.
  for (let day = 0; day < 30; day++)
    write(root, nameOf(day), Buffer.alloc(gridFile({ days: [day, 0], title: `Day ${day}` }).length));
  write(root, nameOf(7), gridFile({ days: [7], title: "Another day" }), WRITTEN + 1);
  write(root, nameOf(8), Buffer.from("damaged"), WRITTEN + 1);
  const second = await serve(t, root, cache);
  const again = await second.described();
  for (const day of [0, 1, 29]) {
    const id = `days~${nameOf(day).replace("/", "~")}`;
    t.equal(itemOf(again, id), itemOf(html, id), "described as before");
  }
  t.match(itemOf(again, "days~2023~t2m-007.nc"), /Another day[\s\S]*2000-01-08 ·/);
  t.match(itemOf(again, "days~2023~t2m-008.nc"), 'class="problem"');
});

t.test("files that look like one dataset are named, on the page and once in the log", async (t) => {
  const root = await makeFolder(t);
  const { page, lines, server } = await serve(t, root, await makeDirectory(t));
  const html = await until(page, (text) => text.includes("look like one dataset"));
  t.match(html, "30 files look like one dataset");
  t.match(html, "zpublish serve &#39;t2m=…/days/*/t2m-*.nc&#39; --concat time");
  t.match(await page("?folder=days~2024"), "30 files look like one dataset");
  await server.close();
  const named = lines.filter(({ msg }) => String(msg).includes("look like one dataset"));
  t.match(named, [
    {
      msg: "30 files look like one dataset: serve them with --concat time",
      command: `zpublish serve 't2m=${root}/*/t2m-*.nc' --concat time`,
    },
  ]);
  t.equal(named.length, 1);
});

t.test("a folder with more datasets than a page has links to its folders", async (t) => {
  const root = join(await makeDirectory(t), "many");
  const names = Array.from({ length: 130 }, (_, index) => `${index % 2 === 0 ? "a/b" : "c"}/${index}.nc`);
  await writeFiles(root, Object.fromEntries([...names, "top.nc"].map((name) => [name, ""])));
  const { page } = await serve(t, root, await makeDirectory(t));
  const html = await page();
  t.match(html, '<a href="./?folder=many%7Ea"><bdi>a/</bdi></a> <span class="count">(65)</span>');
  t.match(html, '<a href="./?folder=many%7Ec"><bdi>c/</bdi></a> <span class="count">(65)</span>');
  t.match(html, "<bdi>top.nc</bdi>");
  t.notMatch(html, "<bdi>1.nc</bdi>");
  const inside = await page("?folder=many~a&token=x");
  t.match(inside, '<h1><bdi>test</bdi> <span class="path">many/a/b</span></h1>', "the only folder in it");
  t.match(inside, '<a href="./?folder=many&amp;token=x"><bdi>many</bdi></a>');
  t.match(inside, "<bdi>128.nc</bdi>");
  t.notMatch(inside, "<bdi>1.nc</bdi>");
  t.match(await page("?folder=many~c&q=12"), "(5 of 65)");
  t.match(await page("?folder=none"), "There are none yet");
});
