import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, chromium, type Page } from "playwright-core";
import type { Test } from "tap";
import { PACKAGE_ROOT } from "./client-generation.js";

/** Bare names of the modules a page needs, and where they are. */
const IMPORTS: Readonly<Record<string, string>> = {
  zarrita: "/modules/zarrita/dist/src/index.js",
  "@zarrita/storage": "/modules/@zarrita/storage/dist/src/index.js",
  "@zarrita/storage/fetch": "/modules/@zarrita/storage/dist/src/fetch.js",
  numcodecs: "/modules/numcodecs/dist/index.js",
  "numcodecs/blosc": "/modules/numcodecs/dist/blosc.js",
  "numcodecs/lz4": "/modules/numcodecs/dist/lz4.js",
  "numcodecs/zstd": "/modules/numcodecs/dist/zstd.js",
};

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>zarrita</title>
<link rel="icon" href="data:,">
<script type="importmap">${JSON.stringify({ imports: IMPORTS })}</script>
<script type="module">
import * as zarrita from "zarrita";
import { readWithZarrita } from "/zarrita-reader.js";
Object.assign(globalThis, { readWithZarrita, zarrita });
document.title = "ready";
</script>
</head>
<body></body>
</html>`;

/** Serves a page that offers `zarrita` and `readWithZarrita`, from an origin of its own: as a web application reads a store. */
export async function startPageServer() {
  const reader = fileURLToPath(new URL("./zarrita-reader.js", import.meta.url));
  const server: Server = createServer(async (request, response) => {
    const path = new URL(request.url ?? "/", "http://page").pathname;
    if (path === "/") {
      response.writeHead(200, { "content-type": "text/html" }).end(PAGE);
      return;
    }
    const file = path === "/zarrita-reader.js" ? reader : moduleFile(path);
    try {
      const body = await readFile(file);
      response.writeHead(200, { "content-type": "text/javascript" }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function moduleFile(path: string): string {
  return join(PACKAGE_ROOT, "node_modules", path.replace(/^\/modules\//, ""));
}

/** Where Debian puts Chromium. */
export const CHROMIUM = "/usr/bin/chromium";

/** Keeps Chromium from looking for anything but the page. */
export const CHROMIUM_ARGS: readonly string[] = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** How long a page may take for what is waited for, on a busy machine: Playwright's default is half a minute. */
const PATIENCE_MS = 240_000;

/** Starts Chromium until the test ends. */
export async function openBrowser(t: Pick<Test, "teardown">, ...args: readonly string[]): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: [...CHROMIUM_ARGS, ...args],
    timeout: PATIENCE_MS,
  });
  t.teardown(() => browser.close());
  const { newContext } = browser;
  browser.newContext = async (options) => {
    const context = await newContext.call(browser, options);
    context.setDefaultTimeout(PATIENCE_MS);
    return context;
  };
  return browser;
}

/** Opens the page in Chromium until the test ends. */
export async function openReaderPage(t: Test): Promise<Page> {
  const pageServer = await startPageServer();
  t.teardown(() => pageServer.close());
  const browser = await openBrowser(t);
  const page = await browser.newPage();
  await page.goto(pageServer.url);
  await page.waitForFunction(`document.title === "ready"`);
  return page;
}
