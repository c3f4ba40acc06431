import { utimes } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import t from "tap";
import { clientMissing } from "../support/clients/require-client.js";
import { startApacheOrigin } from "../support/origins/apache-origin.js";
import { startNginxOrigin } from "../support/origins/nginx-origin.js";
import { makeDirectory, writeFiles } from "../support/write-store.js";

const SERVERS = { nginx: startNginxOrigin, apache: startApacheOrigin };

for (const [name, start] of Object.entries(SERVERS)) {
  const skip = clientMissing(name as keyof typeof SERVERS);
  t.test(`${name} serves a directory with validators and ranges`, { skip }, async (t) => {
    const directory = await makeDirectory(t);
    await writeFiles(directory, { "x/a b+é": "0123456789" });
    // Apache calls an ETag weak if the file is younger than a second.
    await utimes(join(directory, "x/a b+é"), 1_700_000_000, 1_700_000_000);
    const origin = await start(t, directory);
    const url = `${origin.url}/x/a%20b%2B%C3%A9`;
    const whole = await fetch(url);
    t.same([whole.status, await whole.text()], [200, "0123456789"]);
    const etag = whole.headers.get("etag") ?? "";
    t.match(etag, /^"[^"]+"$/);
    t.ok(whole.headers.get("last-modified"));
    const part = await fetch(url, { headers: { range: "bytes=-3", "if-match": etag } });
    t.same([part.status, part.headers.get("content-range"), await part.text()], [206, "bytes 7-9/10", "789"]);
    t.equal((await fetch(url, { headers: { "if-match": '"other"' } })).status, 412);
    t.equal((await fetch(url, { headers: { "if-none-match": etag } })).status, 304);
    t.equal((await fetch(`${origin.url}/absent`)).status, 404);
    const path = "GET /x/a%20b%2B%C3%A9";
    const expected = [`${path} 200`, `${path} 206 bytes=-3`, `${path} 412`, `${path} 304`, "GET /absent 404"];
    let accesses: string[] = [];
    // Servers write their log after they have answered.
    for (; accesses.length < expected.length; accesses = await origin.accesses()) await delay(10);
    t.same(accesses, expected);
    await origin.stop();
    await t.rejects(fetch(url));
  });
}

t.test("web servers take more directives", { skip: clientMissing("nginx", "apache") }, async (t) => {
  const directory = await makeDirectory(t);
  await writeFiles(directory, { a: "x" });
  const nginx = await startNginxOrigin(t, directory, "etag off; add_header X-Test yes;");
  const apache = await startApacheOrigin(t, directory, "FileETag None\nHeader set X-Test yes");
  for (const { url } of [nginx, apache]) {
    const { headers } = await fetch(`${url}/a`);
    t.same([headers.get("etag"), headers.get("x-test")], [null, "yes"]);
  }
});
