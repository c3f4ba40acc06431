import { execFile } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import t from "tap";
import { renderListing } from "../../src/pages/home-page.js";
import { clientMissing, PYTHON } from "../support/clients/require-client.js";

const run = promisify(execFile);
const ENTRIES = [".zattrs", ".zgroup", ".zmetadata", "air/", "http_status/", 'it\'s "odd" & <so>/', "日本/"];

t.test("there is one relative link per line, and no other but the parent's", async (t) => {
  const html = renderListing({ title: "/datasets/x/zarr/", entries: ENTRIES });
  const links = html.split("\n").flatMap((line) => {
    const found = [...line.matchAll(/href="([^"]*)"/g)];
    t.ok(found.length <= 1, "at most one link per line");
    return found.map((match) => match[1] as string);
  });
  t.equal(links.shift(), "../");
  t.strictSame(
    links.map((link) => decodeURIComponent(link)),
    ENTRIES,
  );
  t.notOk(html.includes("http://"), "no text that clients take for an address");
  t.ok(html.endsWith("\n"));
});

t.test("names are escaped", async (t) => {
  const html = renderListing({ title: "/datasets/<b>/zarr/", entries: ["<script>/"] });
  t.notMatch(html, /<script>|<b>/);
});

t.test("Python and GDAL list it, also behind a path prefix", async (t) => {
  const server = createServer((request, response) => {
    const path = request.url?.replace(/^\/prefix/, "") ?? "";
    if (!path.endsWith("/zarr/")) {
      response.writeHead(404).end();
      return;
    }
    const body = renderListing({ title: "/datasets/x/zarr/", entries: ENTRIES });
    response.writeHead(200, { "Content-Type": "text/html; charset=utf-8" }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.teardown(() => server.close());
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  for (const prefix of ["", "/prefix"]) {
    const url = `${origin}${prefix}/datasets/x/zarr/`;
    await t.test(`fsspec ${prefix}`, { skip: clientMissing("fsspec") }, async (t) => {
      const listed = await python(
        "import fsspec, json, sys\nprint(json.dumps(fsspec.filesystem('http').ls(sys.argv[1], detail=False)))",
        url,
      );
      const names = listed.map((entry) => decodeURIComponent(entry.slice(url.length)));
      t.strictSame(names.sort(), [...ENTRIES].sort());
    });
    await t.test(`GDAL ${prefix}`, { skip: clientMissing("gdal") }, async (t) => {
      const listed = await python(
        "import json, sys\nfrom osgeo import gdal\nprint(json.dumps(gdal.ReadDir('/vsicurl/' + sys.argv[1]) or []))",
        url.slice(0, -1),
      );
      const names = listed.map((entry) => decodeURIComponent(entry));
      t.strictSame(names.sort(), ENTRIES.map((entry) => entry.replace(/\/$/, "")).sort());
    });
  }
});

/** Returns the JSON list that a program prints. */
async function python(program: string, url: string): Promise<string[]> {
  const { stdout } = await run(PYTHON, ["-c", program, url]);
  return JSON.parse(stdout) as string[];
}
