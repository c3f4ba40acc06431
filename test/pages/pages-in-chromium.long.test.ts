import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import t from "tap";
import { severalDatasets } from "../../src/dataset/dataset.js";
import type { Route } from "../../src/http/router.js";
import { coreRoutes } from "../../src/openapi/core-routes.js";
import datasetInfo from "../../src/plugins/dataset-info/dataset-info-plugin.js";
import moduleVersion from "../../src/plugins/service-info/module-version.js";
import { createErrorPage } from "../../src/server/error-page.js";
import { openBrowser } from "../support/clients/browser-page.js";
import { clientMissing } from "../support/clients/require-client.js";
import { fakeContext } from "../support/datasets/fake-context.js";
import { fakeSnapshot } from "../support/datasets/fake-snapshot.js";
import { airTemperature, climateTree, samplePreviews } from "../support/datasets/sample-datasets.js";
import { watchPage } from "../support/explore/explorer-browser.js";
import { serveRoutes } from "../support/servers/serve-routes.js";

const PAGES = [
  "/",
  "/datasets/air/",
  "/datasets/climate/tree",
  "/datasets/climate/groups//model-a/fine",
  "/datasets/odd/",
  // Pages about errors.
  "/datasets/lost/",
  "/datasets/air/groups/lost",
];

const LOWEST_CONTRAST = 4.5;

const LONG_NAME = "a_name_without_any_place_to_break_".repeat(8);

t.test("pages in a browser", { skip: clientMissing("chromium") }, async (t) => {
  const routes: Route[] = [];
  const odd = fakeSnapshot("odd", {
    attrs: { [LONG_NAME]: LONG_NAME, matrix: Array.from({ length: 60 }, (_, index) => index * 1000) },
    variables: {
      [LONG_NAME]: {
        dims: [LONG_NAME, "x"],
        shape: [100_000, 3],
        chunks: [7, 1],
        attrs: { units: LONG_NAME },
      },
    },
  });
  const snapshots = [airTemperature(), climateTree(), odd];
  const context = fakeContext({ snapshots, previews: samplePreviews, routes });
  routes.push(...coreRoutes(context));
  for (const plugin of [datasetInfo, moduleVersion]) routes.push(...(await plugin.routes(context)));
  const errorPage = createErrorPage("zpublish", severalDatasets, (id) => id === "air");
  const { url } = await serveRoutes(t, routes, { rootPath: "/some/prefix", errorPage });

  const browser = await openBrowser(t);
  async function open(width: number, colorScheme: "light" | "dark" = "light") {
    const context = await browser.newContext({ colorScheme, viewport: { width, height: 800 } });
    const page = await context.newPage();
    return { page, problems: watchPage(page, url) };
  }

  for (const [width, colours] of [
    [360, "light"],
    [1200, "dark"],
  ] as const) {
    await t.test(`${width} pixels wide, ${colours}`, async (t) => {
      const { page, problems } = await open(width, colours);
      for (const path of PAGES) {
        await page.goto(url + path);
        await page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true");
        t.equal(await page.evaluate(OVERFLOW), 0, `${path} does not scroll sideways`);
        t.strictSame(await page.evaluate(FAINT_TEXTS), [], `${path} has contrast`);
        await page.evaluate(AXE);
        t.same(await page.evaluate(VIOLATIONS), [], `${path} is accessible`);
      }
      const others = problems.filter((problem) => !problem.includes("status of 404"));
      t.strictSame(others, [], "nothing is refused by the policy");
    });
  }

  await t.test("each piece of code has a button that copies it, and is there without scripts", async (t) => {
    const { page } = await open(1200);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.goto(`${url}/datasets/air/`);
    const button = page.getByRole("button", { name: "Copy: Code for xarray" }).first();
    await button.click();
    await page.getByRole("status").filter({ hasText: "Copied" }).waitFor();
    const copied = await page.evaluate("navigator.clipboard.readText()");
    t.equal(copied, await page.locator("pre[aria-label='Code for xarray']").first().textContent());
    t.match(copied, `ds = xr.open_zarr("${url}/datasets/air.zarr")`);
    const plain = await browser.newContext({ javaScriptEnabled: false });
    const still = await plain.newPage();
    await still.goto(`${url}/datasets/air/`);
    t.equal(await still.getByRole("button").count(), 0, "no button without a use");
    t.ok(await still.getByText("import xarray as xr").first().isVisible());
  });

  await t.test("the first screen of a dataset has what it is and how it is opened", async (t) => {
    const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
    await page.goto(`${url}/datasets/air/`);
    for (const text of ["4x daily NMC reanalysis (1948)", "ds = xr.open_zarr", "root = zarr.open_group"]) {
      const box = await page.getByText(text).first().boundingBox();
      t.ok(box !== null && box.y + box.height < 800, `${text} ends at ${box && box.y + box.height}`);
    }
    t.notOk(await page.getByRole("link", { name: "keys" }).isVisible(), "addresses are folded away");
  });

  await t.test("the API can be tried at /docs, behind a path prefix too", async (t) => {
    const { page, problems } = await open(1200);
    await page.goto(`${url}/docs`);
    await page.locator("#operations-datasets-get_datasets").getByRole("button").first().click();
    await page.getByRole("button", { name: "Try it out" }).click();
    const [response] = await Promise.all([
      page.waitForResponse((answer) => answer.url().endsWith("/datasets")),
      page.getByRole("button", { name: "Execute" }).click(),
    ]);
    t.equal(response.url(), `${url}/datasets`);
    t.strictSame(await response.json(), ["air", "climate", "odd"]);
    t.strictSame(problems, []);
  });
});

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Rules that are violated, and the elements that do. Runs in the page. */
const VIOLATIONS = `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
  violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html, failureSummary }) => html.slice(0, 160) + " " + failureSummary).slice(0, 3).join(" | ")))`;

const OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth";

/** Returns texts whose contrast to their background is too low by WCAG's formula. Runs in the page. */
const FAINT_TEXTS = `(() => {
  const rgb = (color) => (color.match(/[\\d.]+/g) ?? []).map(Number);
  const luminance = ([r, g, b]) => {
    const [R, G, B] = [r, g, b].map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * R + 0.7152 * G + 0.0722 * B;
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = rgb(getComputedStyle(e).backgroundColor);
      if (color.length === 3 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const faint = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    if (text === "") continue;
    const element = walker.currentNode.parentElement;
    const style = getComputedStyle(element);
    const front = luminance(rgb(element instanceof SVGElement ? style.fill : style.color));
    const back = luminance(behind(element));
    const contrast = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    if (contrast < ${LOWEST_CONTRAST}) faint.add(text + " " + contrast.toFixed(2));
  }
  return [...faint];
})()`;
