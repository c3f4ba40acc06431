import type { Browser } from "playwright-core";
import type * as zarrita from "zarrita";
import { openBrowser, startPageServer } from "../support/clients/browser-page.js";
import type { Teardown } from "../support/write-store.js";

/** What a page took to read an array, and what it was given. */
export interface PageRead {
  readonly milliseconds: number;
  /** SHA-256 of the array's bytes, in hexadecimal digits. */
  readonly digest: string;
  /** The protocols of all answers but the page's own, as `h2`. */
  readonly protocols: readonly string[];
}

/** Reads whole arrays in pages of Chromium. */
export interface ChromiumReader {
  /** Reads with zarrita, by connections of its own and with an empty cache. */
  read(storeUrl: string, array: string): Promise<PageRead>;
}

/**
 * Starts Chromium. It is ended with the test, and believes every certificate.
 * @param protocol The best one that it offers to servers.
 */
export async function startChromiumReader(t: Teardown, protocol: "h2" | "http/1.1"): Promise<ChromiumReader> {
  const pageServer = await startPageServer();
  t.teardown(() => pageServer.close());
  const browser = await openBrowser(t, ...(protocol === "h2" ? [] : ["--disable-http2"]));
  return { read: (storeUrl, array) => readInPage(browser, pageServer.url, storeUrl, array) };
}

async function readInPage(
  browser: Browser,
  pageUrl: string,
  storeUrl: string,
  array: string,
): Promise<PageRead> {
  // Connections and cache are those of a context.
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  try {
    const page = await context.newPage();
    await page.goto(pageUrl);
    await page.waitForFunction(`document.title === "ready"`);
    const protocols = new Set<string>();
    const session = await context.newCDPSession(page);
    session.on("Network.responseReceived", ({ response }) => protocols.add(response.protocol ?? "none"));
    await session.send("Network.enable");
    const read = await page.evaluate(
      async ([storeUrl, path]) => {
        const { zarrita: zarr } = globalThis as unknown as { zarrita: typeof zarrita };
        const began = performance.now();
        const root = zarr.root(new zarr.FetchStore(storeUrl));
        const array = await zarr.open.v2(root.resolve(path), { kind: "array" });
        const { data } = await zarr.get(array as zarrita.Array<"uint8", zarrita.Readable>);
        const milliseconds = performance.now() - began;
        const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", data as Uint8Array<ArrayBuffer>));
        return { milliseconds, digest: Array.from(digest, (n) => n.toString(16).padStart(2, "0")).join("") };
      },
      [storeUrl, array] as const,
    );
    return { ...read, protocols: [...protocols] };
  } finally {
    await context.close();
  }
}
