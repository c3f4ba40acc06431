import type { Test } from "tap";
import type { DatasetConfig } from "../../../src/config/config.js";
import { readWithZarrita } from "./zarrita-reader.js";

/** Returns the configuration of a dataset `d`. */
export function datasetAt(location: string, more: Partial<DatasetConfig> = {}): DatasetConfig {
  return { id: "d", location, immutable: false, encoding: {}, variables: {}, ...more };
}

/**
 * Compares the items of arrays, which are in C order by path, with what zarrita reads of the dataset `d` below both prefixes.
 * @param url That of the server.
 */
export async function compareItems(
  t: Test,
  url: string,
  expected: ReadonlyMap<string, readonly number[]>,
  note = "",
) {
  for (const [prefix, version] of [
    ["zarr", "v2"],
    ["zarr3", "any"],
  ] as const) {
    const read = await readWithZarrita(`${url}/datasets/d/${prefix}`, [...expected.keys()], version);
    for (const { path, items, problem } of read)
      t.strictSame([problem, items], [undefined, expected.get(path)], `${note} ${prefix} ${path}`);
  }
}
