import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import t from "tap";
import { createDocument } from "../../../src/http/create-document.js";
import { openExploreAssets } from "../../../src/plugins/explore-plugin.js";

const ASSETS = new URL("../../../src/explore/assets/", import.meta.url);

t.test("the explorer is sent in less than a quarter of a megabyte", async (t) => {
  const files = (await readdir(ASSETS)).filter((file) => file.endsWith(".br"));
  const sizes = await Promise.all(
    files.map(async (file) => (await readFile(new URL(file, ASSETS))).byteLength),
  );
  const sum = sizes.reduce((all, size) => all + size, 0);
  t.ok(sum > 10_000 && sum <= 250_000, `${sum} bytes`);
});

t.test("each file has a hash in its name, a type, and compressed forms that pay", async (t) => {
  const assets = await openExploreAssets(createDocument);
  const types: Record<string, string> = {
    js: "text/javascript; charset=utf-8",
    css: "text/css; charset=utf-8",
    bin: "application/octet-stream",
    txt: "text/plain; charset=utf-8",
  };
  for (const [name, file] of Object.entries(assets.names)) {
    const [, stem, ending = ""] = /^(.*)\.(\w+)$/.exec(name) ?? [];
    t.match(file, new RegExp(`^${stem}-[0-9a-f]{12}\\.${ending}$`));
    const document = await assets.read(file);
    t.equal(document?.contentType, types[ending], name);
    for (const coding of ["br", "gzip"] as const) {
      const encoded = document?.encodedNow(coding);
      t.ok((encoded?.byteLength ?? 0) < (document?.bytes.byteLength ?? 0), `${name} as ${coding}`);
      t.equal(await document?.encoded(coding), encoded);
    }
  }
  t.equal(assets.read("page.js"), undefined);
  t.equal(assets.read("assets.json"), undefined);
});

t.test("the licences of what the browser gets are among the files", async (t) => {
  const assets = await openExploreAssets(createDocument);
  const document = await assets.read(assets.names["licences.txt"] as string);
  const text = Buffer.from(document?.bytes ?? []).toString();
  for (const name of ["preact", "zarrita", "fzstd", "d3-scale-chromatic", "world-atlas"]) {
    t.match(text, new RegExp(`\n-+\n${name} \\d+\\.\\d+\\.\\d+\n\n.*(?:Copyright|MIT)`), name);
  }
  t.notMatch(text, /numcodecs|axe-core/);
});

t.test("a build without the files is a clear error", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "zpublish-"));
  t.teardown(() => rm(folder, { recursive: true }));
  await t.rejects(openExploreAssets(createDocument, pathToFileURL(`${folder}/`)), {
    message: /expected the explorer's files in this build, received none; .*npm run build:explore/,
  });
});
