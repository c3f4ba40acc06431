import { spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import type { ServedArray } from "../../../src/dataset/dataset.js";
import { stringifyJson } from "../../../src/json/stringify-json.js";
import { openSource } from "../../../src/open/open-source.js";
import type { CoarsenMethod } from "../../../src/zarr/plan/encoding-plan.js";
import { clientMissing, PYTHON } from "../../support/clients/require-client.js";
import { openPyramid, type Pyramid } from "../../support/datasets/pyramid.js";
import { effort } from "../../support/effort.js";
import { makeDirectory, writeFiles, zgroup } from "../../support/write-store.js";

const PROGRAM = join(import.meta.dirname, "../../../../test/fixtures/overview_chain.py");
const CASES = effort(60);

t.setTimeout(600_000);

function python(...args: string[]): string {
  const run = spawnSync(PYTHON, ["-W", "ignore", PROGRAM, ...args], { encoding: "utf8", timeout: 120_000 });
  if (run.status !== 0) throw new Error(`Python ended with ${run.status}: ${run.stderr.slice(-3_000)}`);
  return run.stdout.trim();
}

/** What `case.json` says. */
interface Case {
  readonly base: string;
  readonly dims: readonly string[];
  readonly method: CoarsenMethod | "rounded";
  readonly levels: number;
}

/** Writes a level as clients get it. */
async function writeLevel(directory: string, pyramid: Pyramid, level: number): Promise<void> {
  const { document, zattrs } = pyramid.levels[level - 1] as ServedArray;
  const files: Record<string, string | Uint8Array | object> = {
    ".zgroup": zgroup,
    "a/.zarray": stringifyJson({ ...document }),
    "a/.zattrs": stringifyJson(zattrs),
  };
  let keys = [""];
  for (const [axis, length] of document.shape.entries()) {
    const count = Math.ceil(length / (document.chunks[axis] as number));
    keys = keys.flatMap((key) =>
      Array.from({ length: count }, (_, at) => (axis === 0 ? `${at}` : `${key}.${at}`)),
    );
  }
  for (const key of keys) {
    const { bytes } = await pyramid.fetch(level, key);
    if (bytes !== undefined) files[`a/${key}`] = bytes;
  }
  await writeFiles(directory, files);
}

t.test(
  "levels have the values of xarray's coarsen, one after the other",
  { skip: clientMissing("xarray") },
  async (t) => {
    const directory = await makeDirectory(t);
    const seed = Math.floor(Math.random() * 1e6);
    t.comment(`seed ${seed}`);
    python("write", directory, String(seed), String(CASES));
    for (let index = 0; index < CASES; index++) {
      const folder = join(directory, String(index));
      const { base, dims, method, levels } = JSON.parse(
        await readFile(join(folder, "case.json"), "utf8"),
      ) as Case;
      const source = await openSource(join(folder, base));
      const pyramid = await openPyramid(source, "a", {
        levels,
        request: {
          method: method === "rounded" ? "mean" : method,
          keepsType: method === "rounded",
          factors: dims.map((dim) => (dim === "x" || dim === "y" ? 2 : 1)),
        },
      });
      for (let level = 1; level <= levels; level++)
        await writeLevel(join(folder, `${level}.zarr`), pyramid, level);
      await source.close();
    }
    t.equal(python("compare", directory), String(3 * CASES));
  },
);
