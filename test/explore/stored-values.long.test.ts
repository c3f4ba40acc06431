import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import type { VariableDescription } from "../../src/explore/protocol.js";
import { DatasetSession } from "../../src/explore/worker/dataset-session.js";
import { readStoredValues } from "../../src/explore/worker/read-axis.js";
import {
  type FixtureArray,
  type FixtureStore,
  type Fixtures,
  makeTemporaryDirectory,
  openFixtures,
  serveDatasets,
} from "../support/clients/fixtures.js";
import { clientMissing } from "../support/clients/require-client.js";
import { datasetId, datasetsOf, VARIANTS, waysOf } from "../support/clients/served-variants.js";
import { readTrueItems } from "../support/clients/true-values.js";

t.setTimeout(600_000);

const LIMITS = { maxInFlight: 6, maxBytes: 2 ** 26 };
t.test(
  "stored values of all types, codecs and orders are read as they are, or a sentence says why not",
  { skip: clientMissing("zarr", "xarray") },
  async (t) => {
    const fixtures = await openFixtures();
    const directory = await makeTemporaryDirectory();
    t.teardown(() => rm(directory, { recursive: true, force: true }));
    const variants = VARIANTS.filter(({ name }) => ["stored", "rechunked-packed"].includes(name));
    const stores = Object.keys(fixtures.stores).filter((store) =>
      /^(?:types|codecs|filters|objects|shapes|names|forecast)/.test(store),
    );
    const server = await serveDatasets(t, { datasets: datasetsOf(fixtures, stores, variants), directory });
    let compared = 0;
    const differences: string[] = [];
    const problems = new Set<string>();
    for (const [index, store] of stores.entries()) {
      for (const variant of waysOf(index, variants)) {
        const facts = fixtures.stores[store] as FixtureStore;
        const id = datasetId(store, variant);
        const session = await DatasetSession.open(
          {
            kind: "open",
            store: `${server.storeUrl(id)}/`,
            overviews: undefined,
            group: "",
            token: undefined,
          },
          LIMITS,
        );
        for (const variable of session.description.variables) {
          const array = facts.arrays[variable.path] as FixtureArray;
          if (variable.problem !== undefined) {
            problems.add(variable.problem);
            continue;
          }
          const expected = await trueItems(fixtures, array);
          // Bytes of any length are in the fixtures as Python writes them.
          if (expected === undefined || array.filters?.some(({ id: filter }) => filter === "vlen-bytes"))
            continue;
          compared++;
          const received = await readItems(session, variable).catch((error: unknown) => String(error));
          const problem = typeof received === "string" ? received : differenceOf(expected, received);
          if (problem !== undefined) differences.push(`${id} ${variable.path}: ${problem}`);
        }
      }
    }
    await server.stop();
    t.same(differences.slice(0, 20), [], `${differences.length} differences`);
    t.ok(compared > 150, `${compared} arrays compared`);
    for (const problem of problems) t.match(problem, /cannot be (?:decoded|shown) in a browser/);
    t.match(
      [...problems].join(" "),
      /bz2 cannot be decoded in a browser; serve the dataset with another compressor/,
    );
  },
);

async function trueItems(fixtures: Fixtures, array: FixtureArray): Promise<readonly unknown[] | undefined> {
  const { dtype, expected } = array;
  const time = typeof dtype === "string" ? /^([<>])[Mm]8/.exec(dtype) : null;
  if (time === null) return readTrueItems(fixtures, array);
  const file = await readFile(join(fixtures.directory, expected));
  const isLittle = /'descr': '</.test(file.toString("latin1", 10, 128));
  const start = 10 + file.readUInt16LE(8);
  return Array.from({ length: (file.length - start) / 8 }, (_, index) =>
    isLittle ? file.readBigInt64LE(start + 8 * index) : file.readBigInt64BE(start + 8 * index),
  );
}

async function readItems(
  session: DatasetSession,
  variable: VariableDescription,
): Promise<readonly unknown[]> {
  const values = Array.from<unknown>((await readStoredValues(session, variable)) ?? []);
  return variable.dataType.kind === "b" ? values.map((item) => item !== 0) : values;
}

function differenceOf(expected: readonly unknown[], received: readonly unknown[]): string | undefined {
  if (expected.length !== received.length)
    return `expected ${expected.length} items, received ${received.length}`;
  const wrong = expected.findIndex((item, index) => !isSame(item, received[index]));
  return wrong < 0 ? undefined : `item ${wrong}: expected ${expected[wrong]}, received ${received[wrong]}`;
}

/** Unpacking loses the sign of zero; the fill values of 64-bit integers are rounded. */
function isSame(item: unknown, received: unknown): boolean {
  if (item === 0) return received === 0;
  if (item === null) return received === "";
  if (typeof received === "string" && typeof item !== "string") return JSON.stringify(item) === received;
  return Object.is(item, received) || (typeof item === "bigint" && Number(item) === received);
}
