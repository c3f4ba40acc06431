import type { DatasetSnapshot } from "../../dataset/dataset.js";
import { findGroup } from "../../dataset/find-group.js";
import { ZpublishError } from "../../errors.js";
import type { CooperativeTask } from "../../event-loop/cooperative-task.js";
import type { DocumentPieces } from "../../http/create-document.js";
import type { Reply, RouteRequest } from "../../http/reply.js";
import type { Route } from "../../http/routing/route.js";
import type { JsonObject } from "../../json/json-value.js";
import type { Group } from "../../model/data-tree.js";
import { normalNodePath } from "../../model/node-path.js";
import { packageVersion } from "../../observe/package-version.js";
import { listingPieces } from "../../pages/listing.js";
import { documentReply, jsonReply, largeJsonReply } from "../document-reply.js";
import type { Plugin, PluginContext } from "../plugin.js";
import { arrayListing, groupListing } from "./listing-entries.js";
import { consolidatedMetadata, GROUP_DOCUMENT } from "./store-documents.js";

const STORE = "/datasets/{dataset_id}/zarr";
const JSON_TYPE = "application/json";
const HTML_TYPE = "text/html; charset=utf-8";

/** The plugin that serves every dataset, and every group of it, as a Zarr v2 store. */
const zarrPlugin: Plugin = {
  name: "zarr",
  version: packageVersion,
  path: "zpublish/plugins/zarr",
  routes: createRoutes,
};
export default zarrPlugin;

function createRoutes(context: PluginContext): readonly Route[] {
  const { datasets, chunks } = context;

  function reply(snapshot: DatasetSnapshot, name: string, path: string, content: () => JsonObject) {
    return jsonReply(context, snapshot, name, path, content);
  }

  function groupDocument(
    name: string,
    summary: string,
    answer: (snapshot: DatasetSnapshot, group: Group) => Reply | Promise<Reply>,
  ): Route[] {
    return withRoot({
      path: `${STORE}/{group_path:path}/${name}`,
      priority: "page",
      operation: {
        summary,
        contentType: JSON_TYPE,
        schema: { type: "object" },
        parameters: GROUP,
        ranged: true,
      },
      handler: handler((snapshot, params) => answer(snapshot, findGroup(snapshot, params.group_path ?? ""))),
    });
  }

  /**
   * Creates a handler that answers from the dataset's snapshot. Before a 404 it refreshes the dataset: a client may know of a
   * chunk from another instance, and takes a 404 for fill values.
   * @param mayBeNew Whether the path could exist in a newer snapshot.
   */
  function handler(
    answer: (snapshot: DatasetSnapshot, params: RouteRequest["params"]) => Reply | Promise<Reply>,
    mayBeNew: (snapshot: DatasetSnapshot, params: RouteRequest["params"]) => boolean = isUnknownNode,
  ): Route["handler"] {
    return ({ params }) => {
      const snapshot = datasets.get(params.dataset_id as string);
      try {
        return answer(snapshot, params);
      } catch (error) {
        const isAbsent = error instanceof ZpublishError && error.code === "not-found";
        if (!isAbsent || !mayBeNew(snapshot, params)) throw error;
        return datasets.refreshBeforeNotFound(snapshot).then((newer) => {
          if (newer === snapshot) throw error;
          return answer(newer, params);
        });
      }
    };
  }

  /** Answers `.zattrs` of a group or an array; an empty path is the root. */
  function attributes(snapshot: DatasetSnapshot, params: RouteRequest["params"]): Reply | Promise<Reply> {
    const path = normalNodePath(params.group_path ?? "");
    const array = snapshot.arrays.get(path);
    if (array !== undefined) return reply(snapshot, "zarr .zattrs", path, () => array.zattrs);
    const group = findNode(snapshot, path);
    return reply(snapshot, "zarr .zattrs", group.path, () => group.attrs);
  }

  function arrayDocument(snapshot: DatasetSnapshot, params: RouteRequest["params"]): Reply | Promise<Reply> {
    const array = findArray(snapshot, normalNodePath(params.var ?? ""));
    return reply(snapshot, "zarr .zarray", array.plan.path, () => ({ ...array.document }));
  }

  function listing(snapshot: DatasetSnapshot, params: RouteRequest["params"]): Reply | Promise<Reply> {
    const path = normalNodePath(params.group_path ?? "");
    const array = snapshot.arrays.get(path);
    const entries = array === undefined ? groupListing(findNode(snapshot, path)) : arrayListing(array);
    if (entries === undefined) {
      const message = `Variable '${path}' of dataset '${snapshot.id}' has too many chunks to list`;
      throw new ZpublishError("not-found", message);
    }
    const title = `/datasets/${snapshot.id}/zarr/${path}`;
    return documentReply(context, snapshot, "zarr listing", path, HTML_TYPE, () =>
      listingDocument(title, entries),
    );
  }

  /** Answers a chunk, or redirects if the path names a group or an array without its slash. */
  function chunk(snapshot: DatasetSnapshot, params: RouteRequest["params"]): Reply | Promise<Reply> {
    const variablePath = normalNodePath(params.var ?? "");
    const chunkKey = params.chunk as string;
    const array = snapshot.arrays.get(variablePath);
    if (array !== undefined) return chunks.serve(snapshot, array, chunkKey);
    const path = variablePath === "" ? chunkKey : `${variablePath}/${chunkKey}`;
    if (snapshot.tree.groups.has(`/${path}`) || snapshot.arrays.has(path)) {
      return { kind: "redirect", to: "with-slash" };
    }
    refuseLostChunk(snapshot, variablePath, chunkKey);
    throw notFound(snapshot, variablePath === "" ? path : variablePath);
  }

  return [
    ...groupDocument(
      ".zmetadata",
      "Consolidated metadata of a group and everything below it",
      (snapshot, group) =>
        largeJsonReply(context, snapshot, "zarr .zmetadata", group.path, () =>
          consolidatedMetadata(snapshot.tree, group, snapshot.arrays),
        ),
    ),
    ...groupDocument(".zgroup", "Zarr v2 group document", (snapshot, group) =>
      reply(snapshot, "zarr .zgroup", group.path, () => GROUP_DOCUMENT),
    ),
    ...withRoot({
      path: `${STORE}/{group_path:path}/.zattrs`,
      priority: "page",
      operation: {
        summary: "Attributes of a group or an array, _ARRAY_DIMENSIONS included",
        contentType: JSON_TYPE,
        schema: { type: "object" },
        parameters: NODE,
        ranged: true,
      },
      handler: handler(attributes),
    }),
    {
      path: `${STORE}/{var:path}/.zarray`,
      priority: "page",
      operation: {
        summary: "Zarr v2 array document",
        contentType: JSON_TYPE,
        schema: { type: "object" },
        parameters: VARIABLE,
        ranged: true,
      },
      handler: handler(arrayDocument),
    },
    {
      path: STORE,
      priority: "page",
      operation: { summary: "Redirects to the store's listing", contentType: HTML_TYPE },
      handler({ params }) {
        datasets.get(params.dataset_id as string);
        return { kind: "redirect", to: "with-slash" };
      },
    },
    ...withRoot({
      path: `${STORE}/{group_path:path}/`,
      priority: "page",
      operation: {
        summary: "Listing of a group or an array, with relative links",
        contentType: HTML_TYPE,
        parameters: NODE,
      },
      handler: handler(listing),
    }),
    {
      path: `${STORE}/{var:path}/{chunk}`,
      priority: "chunk",
      operation: {
        summary: "One encoded chunk",
        description: "A path that names a group or an array instead redirects to it with a slash.",
        contentType: "application/octet-stream",
        parameters: { ...VARIABLE, chunk: "Chunk indices joined by dots, `0.12.3`; `0` for a scalar" },
        ranged: true,
      },
      handler: handler(chunk, (_snapshot, { chunk: key = "" }) => CANONICAL_KEY.test(key)),
    },
  ];
}

const DATASET = { dataset_id: "Id of the dataset" };
const GROUP = { ...DATASET, group_path: "Path of the group; empty for the root" };
const VARIABLE = { ...DATASET, var: "Path of the variable: `t2m`, `a/b/t2m`" };
const NODE = { ...DATASET, group_path: "Path of a group or variable; empty for the root" };

/**
 * Returns a route for every group and one for the root. The former matches an empty path too (`zarr//.zmetadata`), which OpenAPI
 * cannot express.
 */
function withRoot(route: Route): Route[] {
  const { path, operation } = route;
  const ofRoot = { ...operation, description: "Of the root group.", parameters: DATASET };
  return [{ ...route, path: path.replace(/\/\{\w+:path\}/, ""), operation: ofRoot }, route];
}

function* listingDocument(title: string, entries: CooperativeTask<readonly string[]>): DocumentPieces {
  yield* listingPieces({ title, entries: yield* entries });
}

/** Finds a group by a path that may also name an array. */
function findNode(snapshot: DatasetSnapshot, path: string): Group {
  const group = snapshot.tree.groups.get(`/${path}`);
  if (group === undefined) throw notFound(snapshot, path);
  return group;
}

function findArray({ id, arrays }: DatasetSnapshot, path: string) {
  const array = arrays.get(path);
  if (array !== undefined) return array;
  throw new ZpublishError("not-found", `Variable '${path}' not found in dataset '${id}'`);
}

/** Tells whether a path names neither a group nor an array. Clients request documents of both to find out which it is. */
function isUnknownNode(snapshot: DatasetSnapshot, params: RouteRequest["params"]): boolean {
  const path = normalNodePath(params.group_path ?? params.var ?? "");
  return !snapshot.arrays.has(path) && !snapshot.tree.groups.has(`/${path}`);
}

const CHUNK_KEY = /^\d+(?:\.\d+)*$/;
/** A chunk key that an array may have. */
const CANONICAL_KEY = /^(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*))*$/;

/**
 * Throws for a chunk of an array that was served and is now refused. A client that knows the array would take 404 for fill values.
 * @throws ZpublishError `source-unreadable`
 */
function refuseLostChunk(snapshot: DatasetSnapshot, variablePath: string, chunkKey: string): void {
  if (!snapshot.withdrawn.has(variablePath) || !CHUNK_KEY.test(chunkKey)) return;
  const reason = snapshot.refused.find(({ path }) => path === variablePath)?.reason;
  throw new ZpublishError(
    "source-unreadable",
    `chunk '${chunkKey}' of '${variablePath}' in dataset '${snapshot.id}', which is refused: ${reason}`,
  );
}

function notFound(snapshot: DatasetSnapshot, path: string): ZpublishError {
  return new ZpublishError("not-found", `Group or variable '${path}' not found in dataset '${snapshot.id}'`);
}
