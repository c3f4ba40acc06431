import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import type { Test } from "tap";
import { CHROMIUM, CHROMIUM_ARGS } from "../clients/browser-page.js";

/** Opens Chromium until the test ends. */
export async function openBrowser(t: Test): Promise<Browser> {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: [...CHROMIUM_ARGS] });
  t.teardown(() => browser.close());
  return browser;
}

/** A page of the explorer, and what it should not have done. */
export interface WatchedPage {
  readonly page: Page;
  /** Messages on the console, errors, and requests to other hosts. */
  readonly problems: readonly string[];
}

/** Opens a page that is watched. */
export async function openPage(
  browser: Browser,
  serverUrl: string,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width: 1200, height: 850 }, ...options });
  const page = await context.newPage();
  const problems: string[] = [];
  page.on("console", (message) => problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(String(error.stack)));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(serverUrl) && !/^(?:data|blob):/.test(url)) problems.push(url);
  });
  return { page, problems };
}
