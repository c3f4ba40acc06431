import { pathToFileURL } from "node:url";
import t from "tap";
import { openSource } from "../../src/source/open-source.js";
import { makeDirectory, writeFiles, zgroup } from "./write-store.js";

t.test("opens directories, by path or file URL", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { ".zgroup": zgroup });
  for (const location of [root, pathToFileURL(root).href]) {
    const source = await openSource(location);
    t.same((await source.readTree()).groups, [{ path: "/", attrs: {}, arrays: [] }]);
    await source.close();
  }
});

t.test("refuses other locations", async (t) => {
  await t.rejects(openSource("s3://bucket/a.zarr"), {
    code: "unsupported",
    message: "expected the path of a local directory, received s3://bucket/a.zarr",
  });
  await t.rejects(openSource("file://elsewhere/a.zarr"), { code: "invalid-metadata" });
  // Node.js refuses this path before it asks the system.
  await t.rejects((await openSource("/a\0b")).readTree(), { code: "source-unreadable" });
});
