import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import { ownerOf } from "../dataset/overviews/overviews.js";
import { ZpublishError } from "../errors.js";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import type { Reply } from "../http/reply.js";
import type { Route } from "../http/router.js";
import type { JsonObject, JsonValue } from "../json/json-value.js";
import { type Group, normalNodePath } from "../model/data-tree.js";
import { packageVersion } from "../observe/versions.js";
import { documentReply, jsonReply, largeJsonReply, withGroupAttributes } from "./documents.js";
import type { Plugin, PluginContext } from "./plugin.js";
import {
  assertListable,
  findNode,
  groupListing,
  isUnknownNode,
  listingDocument,
  nodeNotFound,
  type Params,
  refuseLostChunk,
  routesAtPlaces,
  type StorePlace,
  storeHandler,
  storeRedirect,
  visitBelow,
  withRoot,
} from "./store-handler.js";

/**
 * Writes the `zarr.json` of a group, with the consolidated metadata of everything below it (kind `inline`, as zarr-python writes it;
 * the Zarr v3 specification does not have it yet). Arrays that v3 cannot describe are left out.
 * @param attrs Attributes of the group as the store shows them.
 */
export function* v3GroupDocument(
  { tree, arrays }: DatasetSnapshot,
  group: Group,
  attrs: JsonObject,
): CooperativeTask<JsonObject> {
  const metadata: Record<string, JsonValue> = {};
  yield* visitBelow(
    tree,
    group,
    (member, prefix) => {
      // zarr-python takes members without metadata of their own for not consolidated.
      if (member !== group) metadata[prefix.slice(0, -1)] = groupDocument(member.attrs, {});
    },
    (variable, path) => {
      const array = arrays.get(variable.path) as ServedArray;
      if (array.v3Problem === undefined) metadata[path] = array.describeV3().document;
    },
  );
  return groupDocument(attrs, metadata);
}

function groupDocument(attrs: JsonObject, metadata: JsonObject): JsonObject {
  return {
    zarr_format: 3,
    node_type: "group",
    attributes: attrs,
    consolidated_metadata: { kind: "inline", must_understand: false, metadata },
  };
}

const HTML_TYPE = "text/html; charset=utf-8";
const DOCUMENT = "zarr.json";

/** The plugin that serves every dataset and its overviews, and every group of them, as Zarr v3 stores. */
const zarr3Plugin = {
  name: "zarr3",
  version: packageVersion,
  path: "zpublish/plugins/zarr3",
  routes: (context) => routesAtPlaces("zarr3", (place) => createRoutes(context, place)),
} satisfies Plugin;
export default zarr3Plugin;

/** An array as this plugin serves it: its chunks are those of v2, unless v3 serves the stored files. */
const v3Arrays = new WeakMap<ServedArray, ServedArray>();

function createRoutes(context: PluginContext, place: StorePlace): readonly Route[] {
  const { datasets, chunks } = context;
  const store = place.path;

  function document(snapshot: DatasetSnapshot, params: Params): Reply | Promise<Reply> {
    const path = normalNodePath(params.group_path ?? "");
    const array = snapshot.arrays.get(path);
    if (array === undefined) {
      const group = findNode(snapshot, path);
      return withGroupAttributes(context, snapshot, group, 3, (attrs) =>
        largeJsonReply(context, snapshot, "zarr3 group", group.path, () =>
          v3GroupDocument(snapshot, group, attrs),
        ),
      );
    }
    const { v3Problem } = array;
    if (v3Problem === undefined)
      return jsonReply(context, snapshot, "zarr3 array", path, () => array.describeV3().document);
    throw new ZpublishError(
      "not-found",
      `Variable '${path}' of dataset '${snapshot.id}' is served as Zarr v2 only: ${v3Problem}`,
    );
  }

  function listing(snapshot: DatasetSnapshot, params: Params): Reply | Promise<Reply> {
    const name = chunkNameOf(params);
    const { path } = name;
    const entries = listEntries(snapshot, name);
    const title = `${context.datasetPath(snapshot.id)}${place.name}/${path}`;
    return documentReply(context, snapshot, "zarr3 listing", path, HTML_TYPE, () =>
      listingDocument(title, entries),
    );
  }

  /** Answers a chunk, or redirects if the path names a group or an array without its slash. */
  function chunk(snapshot: DatasetSnapshot, params: Params): Reply | Promise<Reply> {
    const name = chunkNameOf(params);
    const { path, variablePath, key } = name;
    const array = arrayOf(snapshot, name);
    // v2 calls the one chunk of a scalar 0, v3 does not.
    const isScalar = array?.variable.shape.length === 0;
    if (array !== undefined && (key === "") === isScalar)
      return chunks.serve(ownerOf(snapshot, array), asV3(array), key || "0");
    if (snapshot.tree.groups.has(`/${path}`) || snapshot.arrays.has(path))
      return { kind: "redirect", to: "with-slash" };
    refuseLostChunk(snapshot, variablePath ?? "", key || "0");
    throw nodeNotFound(snapshot, path);
  }

  return [
    ...withRoot({
      path: `${store}/{group_path:path}/${DOCUMENT}`,
      priority: "page",
      operation: {
        summary: "Zarr v3 document of a group or an array; of a group with consolidated metadata",
        contentType: "application/json",
        schema: { type: "object" },
        parameters: NODE,
        ranged: true,
      },
      handler: storeHandler(datasets, place, document, isUnknown),
    }),
    storeRedirect(datasets, place),
    ...withRoot({
      path: `${store}/{group_path:path}/`,
      priority: "page",
      operation: {
        summary: "Listing of a group, an array or its chunks, with relative links",
        contentType: HTML_TYPE,
        parameters: NODE,
      },
      handler: storeHandler(datasets, place, listing, isUnknown),
    }),
    {
      path: `${store}/{chunk_path:path}`,
      priority: "chunk",
      operation: {
        summary: "One encoded chunk, or a shard",
        description: "A path that names a group or an array instead redirects to it with a slash.",
        contentType: "application/octet-stream",
        parameters: {
          dataset_id: NODE.dataset_id,
          chunk_path:
            "Path of the variable and indices of the chunk: `a/b/t2m/c/0/12/3`; `t2m/c` for a scalar",
        },
        ranged: true,
      },
      handler: storeHandler(
        datasets,
        place,
        chunk,
        (_snapshot, params) => chunkNameOf(params).variablePath !== undefined,
      ),
    },
  ];
}

const NODE = {
  dataset_id: "Id of the dataset",
  group_path: "Path of a group or variable; empty for the root",
};

/** Path of an array, then `c` and the indices of a chunk (key encoding `default` of the Zarr v3 specification). */
const CHUNK_PATH = /^(?:(.*)\/)?c((?:\/(?:0|[1-9]\d*))*)$/;

/** A path that may name a chunk, taken apart. */
interface ChunkName {
  /** Without doubled slashes. */
  readonly path: string;
  /** Path of the array; undefined if the path names no chunk. */
  readonly variablePath: string | undefined;
  readonly indices: readonly string[];
  /** Indices as v2 joins them; empty if there are none. */
  readonly key: string;
}

/** Names of recent paths, whose parameters the router remembers. */
const chunkNames = new WeakMap<Params, ChunkName>();

function chunkNameOf(params: Params): ChunkName {
  let name = chunkNames.get(params);
  if (name === undefined) {
    const path = normalNodePath(params.chunk_path ?? params.group_path ?? "");
    const match = CHUNK_PATH.exec(path);
    const indices = (match?.[2] ?? "").split("/").slice(1);
    const variablePath = match === null ? undefined : (match[1] ?? "");
    name = { path, variablePath, indices, key: indices.join(".") };
    chunkNames.set(params, name);
  }
  return name;
}

/** Finds the array of a chunk's name; undefined if there is none, or v3 leaves it out. */
function arrayOf({ arrays }: DatasetSnapshot, { variablePath }: ChunkName): ServedArray | undefined {
  const array = variablePath === undefined ? undefined : arrays.get(variablePath);
  return array?.v3Problem === undefined ? array : undefined;
}

function asV3(array: ServedArray): ServedArray {
  let served = v3Arrays.get(array);
  if (served === undefined) {
    const { plan } = array.describeV3();
    served = plan === array.plan ? array : Object.freeze({ ...array, plan });
    v3Arrays.set(array, served);
  }
  return served;
}

/** @throws ZpublishError `not-found` if there is no such node, or too many chunks to list. */
function listEntries(snapshot: DatasetSnapshot, name: ChunkName): CooperativeTask<readonly string[]> {
  const { path, indices } = name;
  const node = snapshot.arrays.get(path);
  const isArray = node !== undefined && node.v3Problem === undefined;
  const array = isArray ? node : arrayOf(snapshot, name);
  if (array === undefined) return listGroup(snapshot, findNode(snapshot, path));
  const served = asV3(array);
  assertListable(snapshot, served);
  const { gridShape } = served.plan.served;
  if (isArray) return listOf([DOCUMENT, gridShape.length === 0 ? "c" : "c/"]);
  const count = gridShape[indices.length];
  const isInGrid = indices.every((index, axis) => Number(index) < (gridShape[axis] as number));
  if (count === undefined || !isInGrid) throw nodeNotFound(snapshot, path);
  const slash = indices.length === gridShape.length - 1 ? "" : "/";
  return listOf(Array.from({ length: count }, (_, index) => `${index}${slash}`));
}

function listGroup({ arrays }: DatasetSnapshot, group: Group): CooperativeTask<readonly string[]> {
  const variables = [...group.variables.values()].filter(
    ({ path }) => arrays.get(path)?.v3Problem === undefined,
  );
  return groupListing(
    [DOCUMENT],
    group,
    variables.map(({ name }) => name),
  );
}

// biome-ignore lint/correctness/useYield: short lists need no pause
function* listOf(entries: readonly string[]): CooperativeTask<readonly string[]> {
  return entries;
}

/** Tells if a path names neither a group, an array nor chunks. */
function isUnknown(snapshot: DatasetSnapshot, params: Params): boolean {
  return isUnknownNode(snapshot, params) && arrayOf(snapshot, chunkNameOf(params)) === undefined;
}
