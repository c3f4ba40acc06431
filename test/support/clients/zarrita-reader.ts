import * as zarr from "zarrita";

/** Runs in Node and, as it is, in a page: imports nothing but zarrita. */

export type Item = number | bigint | boolean | string | null;

/** What zarrita made of one array. */
export interface ZarritaValues {
  readonly path: string;
  readonly shape: readonly number[];
  /** In C order. */
  readonly items: readonly Item[];
  readonly dims: readonly unknown[] | null;
  /** Set where it could not be read. */
  readonly problem?: string;
}

/**
 * Reads whole arrays of a store with zarrita.
 * @param version Which format is looked for; "consolidated": version 2 through `.zmetadata`.
 */
export async function readWithZarrita(
  url: string,
  paths: readonly string[],
  version: "v2" | "v3" | "consolidated" | "any" = "v2",
): Promise<ZarritaValues[]> {
  const fetched = new zarr.FetchStore(url);
  const store = version === "consolidated" ? await zarr.withConsolidatedMetadata(fetched) : fetched;
  const root = zarr.root(store);
  const results: ZarritaValues[] = [];
  for (const path of paths) {
    try {
      const location = root.resolve(path.split("/").map(encodeURIComponent).join("/"));
      const array =
        version === "any"
          ? await zarr.open(location, { kind: "array" })
          : await (version === "v3" ? zarr.open.v3 : zarr.open.v2)(location, { kind: "array" });
      results.push({
        path,
        shape: array.shape,
        items: await readItems(array),
        dims: (array.attrs._ARRAY_DIMENSIONS as unknown[] | undefined) ?? null,
      });
    } catch (error) {
      results.push({ path, shape: [], items: [], dims: null, problem: String(error) });
    }
  }
  return results;
}

async function readItems(array: zarr.Array<zarr.DataType, zarr.Readable>): Promise<Item[]> {
  const whole: unknown = await zarr.get(
    array,
    array.shape.length === 0 ? undefined : array.shape.map(() => null),
  );
  if (typeof whole !== "object" || whole === null || !("stride" in whole)) return [whole as Item];
  const { data, shape, stride } = whole as { data: ArrayLike<Item>; shape: number[]; stride: number[] };
  const get = itemGetter(data);
  const items: Item[] = [];
  const count = shape.reduce((product, length) => product * length, 1);
  for (let index = 0; index < count; index++) {
    let rest = index;
    let offset = 0;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const length = shape[axis] as number;
      offset += (rest % length) * (stride[axis] as number);
      rest = Math.floor(rest / length);
    }
    items.push(get(offset));
  }
  return items;
}

function itemGetter(data: unknown): (index: number) => Item {
  if (typeof data === "object" && data !== null && "get" in data && typeof data.get === "function") {
    const strings = data as { get(index: number): Item };
    return (index) => strings.get(index);
  }
  return (index) => (data as ArrayLike<Item>)[index] ?? null;
}
