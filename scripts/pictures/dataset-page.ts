import { chromium } from "playwright-core";
import { createServer } from "../../src/library/create-server.js";
import { makeDemoData } from "../demo-data.js";

/*
 * Takes the README's picture: the demonstration's page of a dataset, in Debian's Chromium.
 * `npm run build && node dist/scripts/pictures/dataset-page.js`
 */
const file = process.argv[2] ?? "scripts/pictures/dataset-page.png";

const { air } = await makeDemoData();
const server = await createServer({ datasets: { air } });
const { url } = await server.listen();
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
});
const page = await browser.newPage({ viewport: { width: 1000, height: 1020 } });
await page.goto(`${url}/datasets/air/`);
for (const text of ["Coordinates", "(time, lat, lon)"]) {
  await page.locator("summary", { hasText: text }).click();
}
await page.screenshot({ path: file });
await browser.close();
await server.close();
