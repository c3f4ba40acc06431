import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { BrowserContextOptions, Page } from "playwright-core";
import t from "tap";
import { clientMissing } from "../support/clients/require-client.js";
import { writeExploredData } from "../support/explore/explored-data.js";
import { openExplorer } from "../support/explore/explorer-browser.js";

t.setTimeout(600_000);

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** States of the page: the address, what is waited for, and what is opened. */
interface PageState {
  readonly name: string;
  readonly hash: string;
  readonly shown: string;
  /** The button that is tapped on a phone before. */
  readonly onPhone?: string;
  readonly open?: (page: Page) => Promise<void>;
}

const STATES: readonly PageState[] = [
  {
    name: "a map, and the variables",
    hash: "v=air",
    shown: ".map .data[data-done='1/1']",
    onPhone: "Variables",
  },
  {
    name: "a map with a series, and the code panel open",
    hash: "v=air&p=245,40",
    shown: ".plot .u-over",
    onPhone: "Export",
    async open(page) {
      const button = page.locator("#code-button");
      if (await button.isVisible()) await button.click();
      await page.locator(".code pre").waitFor();
    },
  },
  {
    name: "a histogram, and the choice of colours",
    hash: "v=air&p=245,40&plot=histogram",
    shown: ".plot .u-over",
    onPhone: "Colours",
    async open(page) {
      await page.locator(".picker summary").click();
    },
  },
  { name: "a plot of one axis", hash: "v=co2", shown: ".plot .u-over" },
  {
    name: "a list of texts, and the help",
    hash: "v=station",
    shown: ".text tbody",
    async open(page) {
      await page.getByRole("button", { name: "Help" }).click();
    },
  },
  {
    name: "an address that says what is not there",
    hash: "v=nothing&p=245,40",
    shown: ".status .note",
  },
];

const DEVICES: readonly (readonly [name: string, options: BrowserContextOptions])[] = [
  ["a light desk", { colorScheme: "light" }],
  [
    "a dark phone",
    { colorScheme: "dark", viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
  ],
];

t.test("axe finds nothing in six states", { skip: clientMissing("xarray", "chromium") }, async (t) => {
  // The dataset alone, so that the explorer is used at the root, too.
  const settings = { grid: { location: "grid.zarr" } };
  const explorer = await openExplorer(t, writeExploredData, settings, ["--single"]);
  for (const [device, options] of DEVICES) {
    const { page, problems } = await explorer.open(t, options);
    for (const { name, hash, shown, onPhone, open } of STATES) {
      await t.test(`${name}, on ${device}`, async (t) => {
        await page.goto("about:blank");
        await page.goto(explorer.addressOf("grid", hash));
        await page.locator(shown).first().waitFor();
        if (options.isMobile === true && onPhone !== undefined)
          await page.getByRole("button", { name: onPhone }).click();
        await open?.(page);
        await page.evaluate(AXE);
        const violations = await page.evaluate(VIOLATIONS);
        t.same(violations, []);
        t.equal(await page.evaluate(OVERFLOW), 0, "the page does not scroll sideways");
      });
    }
    t.same(problems, []);
  }
});

/** Pages around the explorer: the path, and what must be there. */
const PAGES: readonly (readonly [name: string, path: string, shown: string])[] = [
  ["the home page with folders", "", "summary:has-text('archive/2024')"],
  ["a folder", "?folder=archive", "h1:has-text('archive')"],
  ["an error page", "datasets/nothing/", "h1"],
  ["an error page about a variable", "datasets/grid/groups/nothing", "h1"],
];

t.test("axe finds nothing in pages around it", { skip: clientMissing("xarray", "chromium") }, async (t) => {
  const location = "grid.zarr";
  const settings = {
    grid: { location },
    "archive~2024~grid": { location },
    "archive~2025~grid": { location },
  };
  const explorer = await openExplorer(t, writeExploredData, settings);
  const home = explorer.addressOf("grid").replace(/datasets\/.*/, "");
  for (const [device, options] of DEVICES) {
    const { page } = await explorer.open(t, options);
    for (const [name, path, shown] of PAGES) {
      await t.test(`${name}, on ${device}`, async (t) => {
        const response = await page.goto(home + path);
        t.match(response?.headers()["content-type"], "text/html");
        t.equal(response?.status(), path.includes("nothing") ? 404 : 200);
        await page.locator(shown).first().waitFor();
        await page.evaluate(AXE);
        t.same(await page.evaluate(VIOLATIONS), []);
        t.equal(await page.evaluate(OVERFLOW), 0, "the page does not scroll sideways");
      });
    }
  }
});

/** Rules that are violated, and the elements that do. Runs in the page. */
const VIOLATIONS = `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
  violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html, failureSummary }) => html.slice(0, 160) + " " + failureSummary).join(" | ")))`;

const OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
