import type { BrowserContextOptions, Page } from "playwright-core";
import type { Test } from "tap";
import { openBrowser } from "../clients/browser-page.js";
import { serveDatasets } from "../clients/fixtures.js";
import { makeDirectory } from "../write-store.js";

/** A page of the explorer, and what it should not have done. */
export interface WatchedPage {
  readonly page: Page;
  /** Messages on the console, errors, and requests to other hosts. */
  readonly problems: string[];
}

/**
 * Serves datasets from a directory, and starts Chromium, until the test ends.
 * @param write Writes the datasets.
 * @param settings Settings of each dataset, with the name of its file.
 * @param args Further arguments of the server.
 */
export async function openExplorer<T>(
  t: Test,
  write: (directory: string) => T,
  settings: Readonly<Record<string, { readonly location: string; readonly overviews?: boolean }>>,
  args: readonly string[] = [],
) {
  const directory = await makeDirectory(t);
  const written = await write(directory);
  const datasets = Object.entries(settings).map(([id, dataset]) => [
    id,
    { ...dataset, location: `${directory}/${dataset.location}` },
  ]);
  const server = await serveDatasets(t, { datasets: Object.fromEntries(datasets), directory, args });
  t.teardown(() => server.stop());
  const browser = await openBrowser(t);
  return {
    written,
    addressOf: (dataset: string, hash = "") => `${server.storeUrl(dataset, "explore")}${hash && `#${hash}`}`,
    async open(t: Test, options?: BrowserContextOptions): Promise<WatchedPage> {
      const context = await browser.newContext({ viewport: { width: 1200, height: 850 }, ...options });
      t.teardown(() => context.close());
      const page = await context.newPage();
      return { page, problems: watchPage(page, server.url) };
    },
  };
}

/** Collects what a page should not do: write to the console, fail, and ask other hosts. */
export function watchPage(page: Page, serverUrl: string): string[] {
  const problems: string[] = [];
  page.on("console", (message) => {
    // The test reads the canvas, the page does not.
    if (!message.text().includes("readback")) problems.push(message.text());
  });
  page.on("pageerror", (error) => problems.push(String(error.stack)));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${serverUrl}/`) && !/^(?:data|blob):/.test(url)) problems.push(url);
  });
  return problems;
}

/** Waits until a picture is drawn completely and at its best: of any variable and step, unless they are named. */
export async function shows(page: Page, variable = "", at = ""): Promise<void> {
  await page.waitForFunction(
    ([name, step]) => {
      // biome-ignore lint/suspicious/noExplicitAny: this runs in the page
      const { dataset } = (globalThis as any).document.querySelector("canvas.data") ?? { dataset: {} };
      const [done, total] = (dataset.done ?? "0/1").split("/");
      return (
        (name === "" || dataset.variable === name) &&
        done === total &&
        (step === "" || dataset.at === step) &&
        dataset.rests === "true"
      );
    },
    [variable, at] as const,
  );
}
