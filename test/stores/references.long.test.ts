import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { createFileStore } from "../../src/stores/file-store.js";
import { openReferences } from "../../src/stores/references.js";
import { askPython } from "../support/clients/ask-python.js";
import { clientMissing } from "../support/clients/require-client.js";
import { makeDirectory, makeOld } from "../support/write-store.js";

const READ = `
import sys, json, fsspec
names = json.load(sys.stdin)
files = fsspec.filesystem("reference", fo=sys.argv[1], remote_protocol="file", simple_templates=False)
print(json.dumps({name: files.cat_file(name).hex() for name in names}))
`;

t.test("reads the bytes that fsspec reads", { skip: clientMissing("fsspec") }, async (t) => {
  const root = await makeDirectory(t);
  const data = `file://${join(root, "a b é.bin")}`;
  await writeFile(
    join(root, "a b é.bin"),
    Uint8Array.from({ length: 5_000 }, (_, at) => at * 7),
  );
  const refs = {
    ".zgroup": '{"zarr_format": 2}',
    "t/.zattrs": '{"é": 1}',
    "t/0": [data, 17, 100],
    "t/1": [data],
    "t/2": "base64:AAECAwT/",
    "t/3": [data, 0, 1],
    "é x/0.0": [data, 4_999, 1],
  };
  const filled = { version: 1, templates: { u: data }, refs: { ...refs, "t/4": ["{{u}}", 3, 4] } };
  for (const document of [refs, { version: 1, refs }, filled]) {
    const path = join(root, "refs.json");
    await writeFile(path, JSON.stringify(document));
    await makeOld(path);
    await makeOld(join(root, "a b é.bin"));
    const container = createFileStore(root);
    const store = await openReferences(container, "refs.json", {
      folder: `file://${root}/`,
      isAllowed: (url) => url.startsWith(`file://${root}/`),
      openTarget: (url) => ({ store: container, key: url.slice(`file://${root}/`.length) }),
    });
    const names = [...(await namesBelow(store, ""))];
    t.ok(names.length >= Object.keys(refs).length);
    const expected = JSON.parse(askPython(READ, names, [path])) as Record<string, string>;
    for (const name of names) {
      t.equal(Buffer.from((await store.read(name))!.bytes).toString("hex"), expected[name], name);
    }
  }
});

async function namesBelow(
  store: Awaited<ReturnType<typeof openReferences>>,
  prefix: string,
): Promise<readonly string[]> {
  const { objects, prefixes } = await store.list!(prefix);
  const deeper = await Promise.all(prefixes.map((name) => namesBelow(store, `${prefix}${name}/`)));
  return [...objects.map((name) => prefix + name), ...deeper.flat()];
}
