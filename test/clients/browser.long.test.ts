import { rm } from "node:fs/promises";
import t from "tap";
import { openBrowser, startPageServer } from "../support/clients/browser-page.js";
import {
  type FixtureArray,
  type FixtureStore,
  makeTemporaryDirectory,
  openFixtures,
  serveDatasets,
} from "../support/clients/fixtures.js";
import { checkCleanLog } from "../support/clients/refusals.js";
import { clientMissing } from "../support/clients/require-client.js";
import { datasetId, datasetsOf, PORTABLE, VARIANTS } from "../support/clients/served-variants.js";
import { readTrueItems, zarritaDifference } from "../support/clients/true-values.js";
import type { ZarritaValues } from "../support/clients/zarrita-reader.js";
import {
  fetchArrayDocuments,
  fetchArrays,
  isForZarrita,
  zarritaCanRead,
} from "../support/clients/zarrita-support.js";

/** What the page offers. */
interface Page {
  readWithZarrita(url: string, paths: readonly string[], version: string): Promise<ZarritaValues[]>;
}

t.setTimeout(600_000);

t.test(
  "a page of another origin in Chromium",
  { skip: clientMissing("chromium", "zarr", "xarray", "gdal") },
  async (t) => {
    const fixtures = await openFixtures();
    const stores = ["types.zarr", "air.zarr", "tree.zarr", "shapes.zarr", "names.zarr", "v3-tree.zarr"];
    const variants = VARIANTS.filter(({ name }) => ["stored", "rechunked-packed"].includes(name));
    const directory = await makeTemporaryDirectory();
    const portable = datasetsOf(fixtures, ["types.zarr"], [PORTABLE]);
    const datasets = { ...datasetsOf(fixtures, stores, variants), ...portable };
    const server = await serveDatasets(t, { datasets, directory });
    const pageServer = await startPageServer();
    t.teardown(async () => {
      await pageServer.close();
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    });
    const browser = await openBrowser(t);
    const page = await browser.newPage();
    const complaints: string[] = [];
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("console", (message) => {
      // Absent chunks are 404, which Chromium writes down as an error of the page.
      if (message.type() === "error" && !message.text().includes("404")) complaints.push(message.text());
    });
    await page.goto(pageServer.url);
    await page.waitForFunction(`document.title === "ready"`);

    await t.test("reads flat and nested stores with zarrita, every value right", async (t) => {
      const differences: string[] = [];
      let compared = 0;
      for (const variant of variants) {
        for (const store of stores) {
          const facts = fixtures.stores[store] as FixtureStore;
          const url = server.storeUrl(datasetId(store, variant));
          const documents = await fetchArrayDocuments(url);
          const paths = Object.keys(facts.arrays).filter((path) => {
            const document = documents.get(path);
            return (
              document !== undefined && zarritaCanRead(document, facts.arrays[path] as FixtureArray, true)
            );
          });
          const version = variant === variants[0] ? "v2" : "consolidated";
          const results = await page.evaluate(
            ([url, paths, version]) => (globalThis as unknown as Page).readWithZarrita(url, paths, version),
            [url, paths, version] as const,
          );
          for (const values of results) {
            const array = facts.arrays[values.path] as FixtureArray;
            const expected = await readTrueItems(fixtures, array);
            if (expected === undefined) continue;
            compared++;
            const problem = zarritaDifference(values, array, expected);
            if (problem !== undefined) differences.push(`${url} ${values.path}: ${problem}`);
          }
        }
      }
      t.same(differences.slice(0, 20), [], `${differences.length} differences`);
      t.ok(compared > 150, `${compared} arrays compared`);
    });

    await t.test("reads a portable store of Zarr v3 with zarrita", async (t) => {
      const url = server.storeUrl(datasetId("types.zarr", PORTABLE), "zarr3");
      const paths = [...(await fetchArrays(url))].flatMap(([path, array]) =>
        isForZarrita(array) ? [path] : [],
      );
      const results = await page.evaluate(
        ([url, paths]) => (globalThis as unknown as Page).readWithZarrita(url, paths, "v3"),
        [url, paths] as const,
      );
      const arrays = fixtures.stores["types.zarr"]!.arrays;
      for (const values of results) {
        const array = arrays[values.path]!;
        const expected = (await readTrueItems(fixtures, array)) ?? [];
        t.equal(zarritaDifference(values, array, expected), undefined, values.path);
      }
      t.ok(results.length > 15, `${results.length} arrays compared`);
    });

    await t.test("reads part of a chunk, with everything CORS exposes", async (t) => {
      const url = `${server.storeUrl("shapes-stored")}/fortran_raw/0.0.0`;
      const whole = new Uint8Array(await (await fetch(url)).arrayBuffer());
      const part = await page.evaluate(async (url) => {
        const response = await fetch(url, { headers: { Range: "bytes=4-11" } });
        const names = ["content-range", "content-length", "etag", "accept-ranges", "server-timing"];
        return {
          status: response.status,
          headers: Object.fromEntries(names.map((name) => [name, response.headers.get(name)])),
          bytes: [...new Uint8Array(await response.arrayBuffer())],
        };
      }, url);
      t.equal(part.status, 206);
      t.same(part.bytes, [...whole.subarray(4, 12)]);
      t.match(part.headers, {
        "content-range": `bytes 4-11/${whole.byteLength}`,
        "content-length": "8",
        "accept-ranges": "bytes",
      });
      t.match(part.headers.etag, /^"[^"]+"$/);
    });

    await t.test("reads the end of a chunk, which needs a preflight", async (t) => {
      const url = `${server.storeUrl("shapes-stored")}/fortran_raw/0.0.0`;
      const whole = new Uint8Array(await (await fetch(url)).arrayBuffer());
      const bytes = await page.evaluate(async (url) => {
        const response = await fetch(url, { headers: { Range: "bytes=-8" } });
        return [...new Uint8Array(await response.arrayBuffer())];
      }, url);
      t.same(bytes, [...whole.subarray(-8)]);
    });

    await t.test("revalidates with If-None-Match", async (t) => {
      const url = `${server.storeUrl("shapes-stored")}/.zmetadata`;
      const statuses = await page.evaluate(async (url) => {
        const first = await fetch(url);
        await first.arrayBuffer();
        const etag = first.headers.get("etag") ?? "";
        const second = await fetch(url, { headers: { "If-None-Match": etag } });
        return [first.status, second.status];
      }, url);
      t.same(statuses, [200, 304]);
    });

    await t.test("can read error answers", async (t) => {
      const answers = await page.evaluate(async (base) => {
        const results: [number, unknown][] = [];
        for (const path of ["/datasets/unknown/zarr/.zgroup", "/datasets/air-stored/zarr/air/99.99.99"]) {
          const response = await fetch(base + path);
          results.push([response.status, await response.json()]);
        }
        const refused = await fetch(`${base}/datasets/air-stored/zarr/.zgroup`, { method: "HEAD" });
        results.push([refused.status, refused.headers.get("content-length") !== null]);
        return results;
      }, server.url);
      t.match(answers, [
        [404, { detail: "Dataset 'unknown' not found" }],
        [404, { detail: String }],
        [200, true],
      ]);
    });

    t.same(complaints, [], "the page has nothing to complain of");
    checkCleanLog(t, server);
  },
);
