import type { Test } from "tap";
import type { Generation } from "./client-generation.js";
import {
  CLIENT_LIMITS,
  canOpenInPlace,
  decodingsOf,
  formatOf,
  missingBelow,
  type Prefix,
  prefixesOf,
  storesFor,
} from "./client-limits.js";
import {
  type FixtureArray,
  type FixtureStore,
  type Fixtures,
  type ReadBackJob,
  readBack,
} from "./fixtures.js";
import { clientMissing, clientMissingIn } from "./require-client.js";
import { VARIANTS } from "./served-variants.js";
import { readTrueItems, zarritaDifference } from "./true-values.js";
import { readWithZarrita, type ZarritaValues } from "./zarrita-reader.js";
import { fetchArrayDocuments, zarritaCanRead } from "./zarrita-support.js";

/** A client that tests read remote data with. */
export type Client = ReadBackJob["client"];

/** A fixture store as a server serves it. */
export interface ServedStore {
  /** Name of the fixture. */
  readonly store: string;
  /** Returns its URL, without slash at the end. */
  urlOf(prefix: Prefix): string;
}

/** Clients of Python and GDAL. */
export const CLIENTS: readonly Client[] = ["xarray", "zarr", "gdal"];

/** Returns why tests of a generation's clients are skipped; false if all of them are there. */
export function clientsMissing(generation: Generation): string | false {
  return (
    clientMissing("zarr", "xarray", "gdal") ||
    clientMissingIn(generation, "zarr", "xarray", "fsspec", "dask", "gdal")
  );
}

/**
 * Lets clients of a generation read stores whole, in one process, and compares all values with those on disk.
 * @param isKnown Whether a difference is expected. Default: none is.
 */
export async function compareStores(
  t: Test,
  clients: readonly Client[],
  generation: Generation,
  fixtures: Fixtures,
  served: readonly ServedStore[],
  isKnown: (difference: string) => boolean = () => false,
): Promise<void> {
  const prefixes = prefixesOf(generation);
  const jobs = prefixes.flatMap((prefix) => {
    const known = storesFor(generation, prefix, fixtures);
    // Other tests read below both prefixes, and these are about the way of the bytes.
    const readers = clients.filter((client) => prefix === (client === "gdal" ? "zarr" : prefixes.at(-1)));
    return served
      .filter(({ store }) => known.includes(store))
      .flatMap((each) => readers.flatMap((client) => jobsOf(client, generation, fixtures, each, prefix)));
  });
  const { compared, differences: found } = await readBack(fixtures, jobs, generation);
  const differences = found.filter((each) => !isKnown(each));
  if (compared < jobs.length && differences.length === 0)
    throw new Error(`${clients} compared ${compared} arrays in ${jobs.length} jobs`);
  t.same(differences.slice(0, 20), [], `${differences.length} differences, ${generation}`);
}

function jobsOf(
  client: Client,
  generation: Generation,
  fixtures: Fixtures,
  { store, urlOf }: ServedStore,
  prefix: Prefix,
): ReadBackJob[] {
  const facts = fixtures.stores[store] as FixtureStore;
  const refused = missingBelow(prefix, VARIANTS[0]!, facts);
  const job = { client, store, url: urlOf(prefix), refused, consolidated: true };
  if (client === "gdal") return [job];
  const { notForXarray, unreadable } = CLIENT_LIMITS[generation];
  const format = formatOf(prefix);
  if (client === "zarr") return [{ ...job, format, unreadable: unreadable[store] ?? [] }];
  const inPlace = canOpenInPlace(generation, facts);
  const drop = notForXarray[store] ?? [];
  const common = { ...job, ...(generation === "trixie" ? { format } : {}), inPlace, drop };
  // What xarray makes of values does not depend on where they are from: decoded, if it can, is enough.
  const decode = decodingsOf(facts, inPlace, prefix).includes(true);
  return facts.groups.map((group) => ({ ...common, group, decode }));
}

/** Reads all arrays of a store that zarrita can read, and compares all values with those on disk. */
export async function compareWithZarrita(
  t: Test,
  fixtures: Fixtures,
  { store, urlOf }: ServedStore,
  read: (url: string, paths: readonly string[]) => Promise<readonly ZarritaValues[]> = readWithZarrita,
): Promise<void> {
  const { arrays } = fixtures.stores[store] as FixtureStore;
  const url = urlOf("zarr");
  const documents = await fetchArrayDocuments(url);
  const paths = Object.entries(arrays)
    .filter(([path, array]) => {
      const document = documents.get(path);
      return document !== undefined && zarritaCanRead(document, array, false);
    })
    .map(([path]) => path);
  const differences: string[] = [];
  for (const values of await read(url, paths)) {
    const array = arrays[values.path] as FixtureArray;
    const expected = await readTrueItems(fixtures, array);
    const problem = expected === undefined ? undefined : zarritaDifference(values, array, expected);
    if (problem !== undefined) differences.push(`${values.path}: ${problem}`);
  }
  t.ok(paths.length > 0);
  t.same(differences, [], `${store} by zarrita`);
}
