import { cp } from "node:fs/promises";
import { join } from "node:path";
import type { Test } from "tap";
import { readWithZarrita } from "../clients/zarrita-reader.js";
import { startFaultyOrigin } from "../origins/faulty-origin.js";
import { startServer } from "../servers/start-server.js";
import { makeDirectory } from "../write-store.js";
import { type Icechunk, icechunkMissing, openIcechunk } from "./open-icechunk.js";
import { compareWithIcechunk, dataset } from "./sample-repository.js";

/*
 * The repositories that Icechunk keeps for its own `icechunk-python/tests/test_can_read_old.py`, which says what they hold: written by
 * several versions of it, in both formats, migrated, with manifests that are split, and after expiry and garbage collection.
 */

type Items = readonly unknown[];

/** Branch or tag of a repository, and values of some of its arrays. */
interface OldState {
  readonly at: { readonly branch: string } | { readonly tag: string };
  readonly values: Readonly<Record<string, Items>>;
}

const filled = (count: number, value: unknown): Items => Array.from({ length: count }, () => value);
/** Rows of four values. */
const rows = (values: readonly number[]): Items => values.flatMap((value) => filled(4, value));

const STATES: Readonly<Record<string, readonly OldState[]>> = {
  test: [
    {
      at: { branch: "main" },
      values: { "group1/big_chunks": filled(100, 42), "group1/small_chunks": filled(5, 84) },
    },
    {
      at: { tag: "it works!" },
      values: { "group1/big_chunks": filled(100, 42), "group1/small_chunks": [84, 84, 84, 84, 8] },
    },
    {
      at: { tag: "it also works!" },
      values: {
        "group1/big_chunks": filled(100, 42),
        "group1/small_chunks": [84, 84, 84, 84, 8],
        "group2/group3/group4/group5/inner": filled(100, Number.NaN),
      },
    },
    {
      at: { branch: "my-branch" },
      values: { "group2/group3/group4/group5/inner": filled(100, Number.NaN) },
    },
  ],
  split: [
    {
      at: { branch: "main" },
      values: { "group1/split": filled(100, 14), "group1/small_chunks": filled(5, 3) },
    },
  ],
  expire: [
    {
      at: { branch: "main" },
      values: {
        "group1/data": rows([99, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0]),
        "group1/small": filled(4, 0),
      },
    },
    { at: { branch: "feature" }, values: { "group1/data": rows([0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0]) } },
    { at: { tag: "protect-b" }, values: { "group1/data": rows([0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0]) } },
  ],
};

/** Serves a copy of an old repository, and compares all values that are known, and all chunks with what Icechunk itself reads. */
export async function checkOldRepository(t: Test, folder: string, name: string): Promise<void> {
  const path = join(await makeDirectory(t), name);
  await cp(join(folder, name), path, { recursive: true });
  const bucket = await startFaultyOrigin(t, { s3: { bucket: "testbucket" } });
  const stores = [{ url: "s3://testbucket/", endpoint: bucket.url, region: "us-east-1", anonymous: true }];
  const states = STATES[name.split("-")[0] as string] as readonly OldState[];
  const datasets = states.map(({ at }, index) => {
    const query = Object.entries(at).map(([kind, name]) => `?${kind}=${name}`);
    return dataset(`d${index}`, `icechunk:${path}${query}`, {
      stores,
      references: { allow: ["s3://testbucket/"] },
    });
  });
  const deleted = dataset("deleted", `icechunk:${path}?tag=deleted`);
  const server = await startServer(t, { datasets, refreshSeconds: 3_600 });
  if (name.startsWith("test")) {
    // The virtual chunk is what its neighbour is.
    const other = await server.get("/datasets/d0/zarr3/group1/big_chunks/c/0/1");
    bucket.put("can_read_old/chunk-1", new Uint8Array(await other.arrayBuffer()));
  }
  for (const [index, { values }] of states.entries()) {
    const read = await readWithZarrita(`${server.url}/datasets/d${index}/zarr`, Object.keys(values));
    for (const { path, items, problem } of read) {
      t.equal(problem, undefined, `${name} ${path}`);
      t.same(items, values[path], `${name} ${path}`);
    }
  }
  await t.rejects(startServer(t, { datasets: [deleted] }), { message: /expected a tag/ });
  if (icechunkMissing() !== false || name.startsWith("test")) return;
  const icechunk: Icechunk = await openIcechunk(t);
  for (const [index, { at }] of states.entries()) {
    const { differences, chunks } = await compareWithIcechunk(server, `d${index}`, icechunk.at(path), at);
    t.same(differences, [], `${name} ${JSON.stringify(at)}`);
    t.ok(chunks > 0);
  }
}
