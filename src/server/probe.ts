import type { DatasetRegistry } from "../dataset/dataset-registry.js";
import { errorFromData } from "../errors.js";
import type { Route } from "../http/routing/route.js";
import type { EncodePool } from "../pool/encode-pool.js";
import { createMemorySource } from "../source/memory/memory-source.js";
import { createEncodingPlan } from "../zarr/plan/create-encoding-plan.js";
import type { StoredArray } from "../zarr/stored-array.js";

/** Templates of routes that answer with the metadata of a dataset, the one to try first. */
const METADATA_ROUTES = ["/datasets/{dataset_id}/zarr/.zmetadata", "/datasets/{dataset_id}/info"];
/** Datasets to try until the metadata of one can be made. */
const MAX_TRIED = 3;

/**
 * Makes the metadata of an open dataset as a request for them would.
 * @returns `ok`, or what there is none of.
 * @throws What the route's handler throws, if it does so for several datasets.
 */
export async function probeMetadata(
  routes: readonly Route[],
  datasets: Pick<DatasetRegistry, "someOpen">,
): Promise<string> {
  const path = METADATA_ROUTES.find((wanted) => routes.some((route) => route.path === wanted));
  const route = routes.find((candidate) => candidate.path === path);
  if (route === undefined) return "none";
  let failure: unknown;
  for (const id of datasets.someOpen(MAX_TRIED)) {
    try {
      await route.handler({
        method: "GET",
        params: { dataset_id: id },
        rawPath: route.path.replace("{dataset_id}", encodeURIComponent(id)),
        query: "",
        serviceUrl: "http://localhost",
        signal: new AbortController().signal,
        reserve: () => undefined,
        header: () => undefined,
      });
      return "ok";
    } catch (error) {
      failure = error;
    }
  }
  if (failure !== undefined) throw failure;
  return "none open";
}

const ITEMS = 4_096;

/**
 * Has a worker encode a small chunk that belongs to no dataset.
 * @returns `ok`; `none` if there is no pool.
 * @throws ZpublishError if the chunk cannot be encoded.
 */
export async function probePool(pool: EncodePool | undefined): Promise<string> {
  if (pool === undefined) return "none";
  const arrays = [{ name: "probe", data: new Int16Array(ITEMS), shape: [ITEMS] }];
  const tree = await createMemorySource({ groups: [{ path: "/", arrays }] }).readTree();
  const { plan } = createEncodingPlan(tree.groups[0]?.arrays[0] as StoredArray, {});
  const outcome = await pool.makeChunk({ plan, chunkCoords: [0] });
  if (outcome.status === "failed") throw errorFromData(outcome.error);
  return "ok";
}
