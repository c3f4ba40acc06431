import { type DatasetSnapshot, findGroup, type ServedArray } from "../dataset/dataset.js";
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

/** The document `.zgroup` of every group (Zarr v2 specification, "Groups"). */
export const GROUP_DOCUMENT: JsonObject = Object.freeze({ zarr_format: 2 });

/**
 * Writes consolidated metadata of a group and everything below it, with keys relative to the group (the de facto standard of
 * zarr-python's `consolidate_metadata`).
 * @param attrs Attributes of the group as the store shows them.
 */
export function* consolidatedMetadata(
  { tree, arrays }: DatasetSnapshot,
  group: Group,
  attrs: JsonObject,
): CooperativeTask<JsonObject> {
  const metadata: Record<string, JsonValue> = {};
  yield* visitBelow(
    tree,
    group,
    (member, prefix) => {
      metadata[`${prefix}.zattrs`] = member === group ? attrs : member.attrs;
      metadata[`${prefix}.zgroup`] = GROUP_DOCUMENT;
    },
    (variable, path) => {
      const { document, zattrs } = arrays.get(variable.path) as ServedArray;
      metadata[`${path}/.zarray`] = { ...document };
      metadata[`${path}/.zattrs`] = zattrs;
    },
  );
  return { zarr_consolidated_format: 1, metadata };
}

const JSON_TYPE = "application/json";
const HTML_TYPE = "text/html; charset=utf-8";

/** The plugin that serves every dataset and its overviews, and every group of them, as Zarr v2 stores. */
const zarrPlugin = {
  name: "zarr",
  version: packageVersion,
  path: "zpublish/plugins/zarr",
  routes: (context) => routesAtPlaces("zarr", (place) => createRoutes(context, place)),
} satisfies Plugin;
export default zarrPlugin;

function createRoutes(context: PluginContext, place: StorePlace): readonly Route[] {
  const { datasets, chunks } = context;
  const store = place.path;

  function reply(snapshot: DatasetSnapshot, name: string, path: string, content: () => JsonObject) {
    return jsonReply(context, snapshot, name, path, content);
  }

  function groupDocument(
    name: string,
    summary: string,
    answer: (snapshot: DatasetSnapshot, group: Group) => Reply | Promise<Reply>,
  ): Route[] {
    return withRoot({
      path: `${store}/{group_path:path}/${name}`,
      priority: "page",
      operation: {
        summary,
        contentType: JSON_TYPE,
        schema: { type: "object" },
        parameters: GROUP,
        ranged: true,
      },
      handler: storeHandler(
        datasets,
        place,
        (snapshot, params) => answer(snapshot, findGroup(snapshot, params.group_path ?? "")),
        isUnknownNode,
      ),
    });
  }

  /** Answers `.zattrs` of a group or an array; an empty path is the root. */
  function attributes(snapshot: DatasetSnapshot, params: Params): Reply | Promise<Reply> {
    const path = normalNodePath(params.group_path ?? "");
    const array = snapshot.arrays.get(path);
    if (array !== undefined) return reply(snapshot, "zarr .zattrs", path, () => array.zattrs);
    const group = findNode(snapshot, path);
    return withGroupAttributes(context, snapshot, group, 2, (attrs) =>
      reply(snapshot, "zarr .zattrs", group.path, () => attrs),
    );
  }

  function arrayDocument(snapshot: DatasetSnapshot, params: Params): Reply | Promise<Reply> {
    const array = findArray(snapshot, normalNodePath(params.var ?? ""));
    return reply(snapshot, "zarr .zarray", array.plan.path, () => ({ ...array.document }));
  }

  function listing(snapshot: DatasetSnapshot, params: Params): Reply | Promise<Reply> {
    const path = normalNodePath(params.group_path ?? "");
    const array = snapshot.arrays.get(path);
    if (array !== undefined) assertListable(snapshot, array);
    const entries =
      array === undefined ? listGroup(findNode(snapshot, path)) : listArray(array.plan.served.gridShape);
    const title = `${context.datasetPath(snapshot.id)}${place.name}/${path}`;
    return documentReply(context, snapshot, "zarr listing", path, HTML_TYPE, () =>
      listingDocument(title, entries),
    );
  }

  /** Answers a chunk, or redirects if the path names a group or an array without its slash. */
  function chunk(snapshot: DatasetSnapshot, params: Params): Reply | Promise<Reply> {
    const variablePath = normalNodePath(params.var ?? "");
    const chunkKey = params.chunk as string;
    const array = snapshot.arrays.get(variablePath);
    if (array !== undefined) return chunks.serve(ownerOf(snapshot, array), array, chunkKey);
    const path = variablePath === "" ? chunkKey : `${variablePath}/${chunkKey}`;
    if (snapshot.tree.groups.has(`/${path}`) || snapshot.arrays.has(path)) {
      return { kind: "redirect", to: "with-slash" };
    }
    refuseLostChunk(snapshot, variablePath, chunkKey);
    throw nodeNotFound(snapshot, variablePath === "" ? path : variablePath);
  }

  return [
    ...groupDocument(
      ".zmetadata",
      "Consolidated metadata of a group and everything below it",
      (snapshot, group) =>
        withGroupAttributes(context, snapshot, group, 2, (attrs) =>
          largeJsonReply(context, snapshot, "zarr .zmetadata", group.path, () =>
            consolidatedMetadata(snapshot, group, attrs),
          ),
        ),
    ),
    ...groupDocument(".zgroup", "Zarr v2 group document", (snapshot, group) =>
      reply(snapshot, "zarr .zgroup", group.path, () => GROUP_DOCUMENT),
    ),
    ...withRoot({
      path: `${store}/{group_path:path}/.zattrs`,
      priority: "page",
      operation: {
        summary: "Attributes of a group or an array, _ARRAY_DIMENSIONS included",
        contentType: JSON_TYPE,
        schema: { type: "object" },
        parameters: NODE,
        ranged: true,
      },
      handler: storeHandler(datasets, place, attributes, isUnknownNode),
    }),
    {
      path: `${store}/{var:path}/.zarray`,
      priority: "page",
      operation: {
        summary: "Zarr v2 array document",
        contentType: JSON_TYPE,
        schema: { type: "object" },
        parameters: VARIABLE,
        ranged: true,
      },
      handler: storeHandler(datasets, place, arrayDocument, isUnknownNode),
    },
    storeRedirect(datasets, place),
    ...withRoot({
      path: `${store}/{group_path:path}/`,
      priority: "page",
      operation: {
        summary: "Listing of a group or an array, with relative links",
        contentType: HTML_TYPE,
        parameters: NODE,
      },
      handler: storeHandler(datasets, place, listing, isUnknownNode),
    }),
    {
      path: `${store}/{var:path}/{chunk}`,
      priority: "chunk",
      operation: {
        summary: "One encoded chunk",
        description: "A path that names a group or an array instead redirects to it with a slash.",
        contentType: "application/octet-stream",
        parameters: { ...VARIABLE, chunk: "Chunk indices joined by dots, `0.12.3`; `0` for a scalar" },
        ranged: true,
      },
      handler: storeHandler(datasets, place, chunk, (_snapshot, { chunk: key = "" }) =>
        CANONICAL_KEY.test(key),
      ),
    },
  ];
}

const DATASET = { dataset_id: "Id of the dataset" };
const GROUP = { ...DATASET, group_path: "Path of the group; empty for the root" };
const VARIABLE = { ...DATASET, var: "Path of the variable: `t2m`, `a/b/t2m`" };
const NODE = { ...DATASET, group_path: "Path of a group or variable; empty for the root" };

function listGroup(group: Group) {
  return groupListing([".zattrs", ".zgroup", ".zmetadata"], group, group.variables.keys());
}

/** Lists an array: documents and the key of every chunk of its grid, including absent ones, which are answered 404. */
function* listArray(gridShape: readonly number[]): CooperativeTask<readonly string[]> {
  let keys: string[] = [""];
  for (const count of gridShape) {
    yield;
    keys = keys.flatMap((key) =>
      Array.from({ length: count }, (_, index) => (key === "" ? `${index}` : `${key}.${index}`)),
    );
  }
  const chunkKeys = gridShape.length === 0 ? ["0"] : keys;
  return [".zarray", ".zattrs", ...chunkKeys];
}

function findArray({ id, arrays }: DatasetSnapshot, path: string) {
  const array = arrays.get(path);
  if (array !== undefined) return array;
  throw new ZpublishError("not-found", `Variable '${path}' not found in dataset '${id}'`);
}

/** A chunk key that an array may have. */
const CANONICAL_KEY = /^(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*))*$/;
