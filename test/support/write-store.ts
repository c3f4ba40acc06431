import { mkdir, mkdtemp, realpath, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Test } from "tap";

/** What ends with a test, or with a benchmark. */
export type Teardown = Pick<Test, "teardown">;

/** Creates an empty directory, which is removed after the test. @returns Its real path. */
export async function makeDirectory(t: Teardown): Promise<string> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "zpublish-source-")));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** Writes files by path below `directory`; objects as JSON. Their times are a minute ago, so that no read waits for them. */
export async function writeFiles(
  directory: string,
  files: Readonly<Record<string, string | Uint8Array | object>>,
): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    const path = join(directory, name);
    await mkdir(dirname(path), { recursive: true });
    const isBytes = typeof content === "string" || content instanceof Uint8Array;
    await writeFile(path, isBytes ? content : JSON.stringify(content));
    await makeOld(path);
  }
}

/** Sets a file's times to a minute ago. */
export async function makeOld(path: string): Promise<void> {
  const old = Date.now() / 1000 - 60;
  await utimes(path, old, old);
}

export const zgroup = { zarr_format: 2 };

/** A `.zarray` of two bytes in one chunk. */
export const zarray = {
  zarr_format: 2,
  shape: [2],
  chunks: [2],
  dtype: "|u1",
  compressor: null,
  fill_value: 0,
  order: "C",
  filters: null,
};

/** The same as a `zarr.json`. */
export const v3Array = {
  zarr_format: 3,
  node_type: "array",
  shape: [2],
  data_type: "uint8",
  chunk_grid: { name: "regular", configuration: { chunk_shape: [2] } },
  chunk_key_encoding: { name: "default" },
  fill_value: 0,
  codecs: [{ name: "bytes" }],
};

export const v3Group = { zarr_format: 3, node_type: "group" };
