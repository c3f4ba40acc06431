import { join } from "node:path";
import t from "tap";
import { createMemorySource } from "../../../src/open/memory-source.js";
import { openBrowser } from "../../support/clients/browser-page.js";
import { clientMissing } from "../../support/clients/require-client.js";
import { datasetOf } from "../../support/datasets/sample-tree.js";
import { version } from "../../support/datasets/versioned-source.js";
import { shows, watchPage } from "../../support/explore/explorer-browser.js";
import { accessOf, startServer } from "../../support/servers/start-server.js";
import { makeDirectory, writeFiles } from "../../support/write-store.js";

const TOKEN = "a-token+of/a-client==";

/** A year of months over the northern hemisphere. */
function sampleSource() {
  const axis = (name: string, values: number[], attrs: Record<string, string>) => ({
    name,
    data: Float64Array.from(values),
    shape: [values.length],
    dims: [name],
    compressor: null,
    attrs,
  });
  const [steps, rows, columns] = [12, 10, 36];
  const range = (length: number, first: number, step: number) =>
    Array.from({ length }, (_, index) => first + index * step);
  return createMemorySource({
    location: "air",
    groups: [
      {
        path: "/",
        attrs: { title: "Air temperature" },
        arrays: [
          axis("time", range(steps, 15, 30), { units: "days since 2020-01-01", standard_name: "time" }),
          axis("lat", range(rows, 90, -10), { units: "degrees_north" }),
          axis("lon", range(columns, 0, 10), { units: "degrees_east" }),
          {
            name: "air",
            data: Float32Array.from({ length: steps * rows * columns }, (_, index) => 280 + (index % 37)),
            shape: [steps, rows, columns],
            dims: ["time", "lat", "lon"],
            chunks: [1, rows, columns],
            compressor: { id: "zlib", level: 1 },
            attrs: { long_name: "Air temperature", units: "K" },
          },
        ],
      },
    ],
  });
}

t.test("the explorer in a browser", { skip: clientMissing("chromium") }, async (t) => {
  const browser = await openBrowser(t);
  const datasets = [datasetOf("air", sampleSource())];

  await t.test(
    "a picture on a dataset's page leads to the explorer, which keeps to its policy",
    async (t) => {
      const { url } = await startServer(t, { datasets, rootPath: "/some/prefix" });
      const page = await browser.newPage();
      t.teardown(() => page.close());
      const problems = watchPage(page, url);
      await page.goto(`${url}/datasets/air/`);
      // The first one leads the page, the last one stands beside the variable.
      const picture = page.getByRole("link", { name: /^Explore air at time 6 of 12/ }).last();
      await picture.scrollIntoViewIfNeeded();
      const size = await page.evaluate(`(async () => {
      const image = document.querySelector(".picture img");
      await image.decode();
      return [image.naturalWidth, image.naturalHeight];
    })()`);
      t.same(size, [320, 89]);
      await picture.click();
      await page.getByText(/^Read [\d,]+ chunks? in /).waitFor();
      t.match(page.url(), /\/some\/prefix\/datasets\/air\/explore#v=air/);
      t.match(await page.title(), "air · Explore");
      t.match(await page.locator("main").textContent(), "Air temperature");
      const refused = await page.evaluate(`(async () => {
      const policies = [];
      document.addEventListener("securitypolicyviolation", (event) => policies.push(event.effectiveDirective));
      const violation = new Promise((resolve) => document.addEventListener("securitypolicyviolation", resolve, { once: true }));
      const style = document.createElement("style");
      style.textContent = "main{display:none}";
      document.head.append(style);
      await violation;
      return policies;
    })()`);
      t.same(refused, ["style-src-elem"], "the policy is in force");
      t.match(problems.splice(0), [/style/i], "and says so");
    },
  );

  await t.test(
    "a token in the address, a prefix or a cookie is enough for all that the page reads",
    async (t) => {
      const directory = await makeDirectory(t);
      await writeFiles(directory, { tokens: `${TOKEN}\n` });
      const access = accessOf({ tokenFile: join(directory, "tokens") });
      const { url } = await startServer(t, { datasets, access });
      const page = await browser.newPage();
      t.teardown(() => page.close());
      const problems = watchPage(page, url);
      await page.goto(`${url}/datasets/air/explore?token=${encodeURIComponent(TOKEN)}`);
      await page.getByText(/^Read [\d,]+ chunks? in /).waitFor();
      const headers = { authorization: `Bearer ${TOKEN}` };
      const session = await fetch(`${url}/session`, { method: "POST", headers });
      const { prefix } = (await session.json()) as { readonly prefix: string };
      await page.goto(`${prefix}datasets/air/explore`);
      await page.getByText(/^Read [\d,]+ chunks? in /).waitFor();
      const [, name = "", value = ""] = /^(\w+)=([^;]*)/.exec(session.headers.get("set-cookie") ?? "") ?? [];
      await page.context().addCookies([{ name, value, url }]);
      await page.goto(`${url}/datasets/air/explore`);
      await page.getByText(/^Read [\d,]+ chunks? in /).waitFor();
      t.same(problems, []);
    },
  );

  await t.test("another version is chosen, and variable and view stay", async (t) => {
    const listed = [version("tag", "v1", "S1", "first"), version("snapshot", "S1", "S1", "first")];
    const source = {
      ...sampleSource(),
      versions: {
        list: async () => listed,
        open: async (name: string) => (name === "v1" ? sampleSource() : undefined),
      },
    };
    const directory = await makeDirectory(t);
    await writeFiles(directory, { tokens: `${TOKEN}\n` });
    const access = accessOf({ tokenFile: join(directory, "tokens") });
    const { url } = await startServer(t, {
      datasets: [datasetOf("air", source)],
      rootPath: "/prefix",
      access,
    });
    const page = await browser.newPage();
    t.teardown(() => page.close());
    const problems = watchPage(page, url);
    const query = `?token=${encodeURIComponent(TOKEN)}`;
    await page.goto(`${url}/datasets/air/explore${query}#v=air&d.time=i3`);
    await shows(page, "air", "3,0,0");
    const choice = page.getByLabel("Version");
    t.equal(await choice.inputValue(), "air");
    t.same(await choice.locator("option").allTextContents(), [
      "as it is now",
      "v1 · 2026-11-05 · first",
      "S1 · 2026-11-05 · first",
    ]);
    await choice.selectOption("air@v1");
    await page.waitForURL(/prefix\/datasets\/air(?:@|%40)v1\/explore/);
    await shows(page, "air", "3,0,0");
    const { search, hash } = new URL(page.url());
    t.equal(search, query);
    t.match(hash, /^#v=air&d\.time=/);
    t.match(await page.title(), "air@v1 · Explore");
    t.equal(await choice.inputValue(), "air@v1");
    await choice.selectOption("air");
    await page.waitForURL(/prefix\/datasets\/air\/explore/);
    await shows(page, "air", "3,0,0");
    t.same(problems, []);
  });
});
