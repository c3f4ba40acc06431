import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";
import { readHdf5 } from "../../../src/formats/hdf5/groups.js";
import { askPython } from "../../support/clients/ask-python.js";
import { clientMissing } from "../../support/clients/require-client.js";
import { memoryBlocks } from "../memory-blocks.js";
import { viewOf } from "./model-view.js";

const WRITER = fileURLToPath(new URL("../../../../test/fixtures/write_hdf5.py", import.meta.url));

t.test(
  "files of every version of the format are read as h5py reads them",
  { skip: clientMissing("h5py", "netcdf4") },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "zpublish-hdf5-"));
    t.teardown(() => rmSync(folder, { recursive: true }));
    const views = JSON.parse(askPython(readFileSync(WRITER, "utf8"), null, [folder]));
    for (const [name, expected] of Object.entries<Record<string, unknown>>(views)) {
      const bytes = readFileSync(join(folder, name));
      for (const isSlow of [false, true]) {
        const file = await readHdf5(memoryBlocks(bytes, isSlow));
        if (name.startsWith("shared-")) {
          const reasons = [...file.refused.map(({ reason }) => reason), ...file.warnings];
          t.ok(
            reasons.length > 0 && reasons.every((reason) => reason.includes("heap of shared messages")),
            name,
          );
          continue;
        }
        const found = viewOf(file);
        t.same(Object.keys(found).sort(), Object.keys(expected).sort(), `${name}: the same objects`);
        for (const [path, view] of Object.entries(expected))
          t.strictSame(found[path], view, `${name} ${path}`);
        t.same(file.refused, [], `${name}: nothing is refused`);
        t.same(file.warnings, [], `${name}: nothing to warn of`);
      }
    }
  },
);
