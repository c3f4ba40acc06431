import { type BoundedMap, createBoundedMap } from "../collections/bounded-map.js";
import { type DatasetSnapshot, findGroup } from "../dataset/dataset.js";
import { type IdSelection, selectIds } from "../dataset/id-page.js";
import { type CooperativeTask, runNow } from "../event-loop/cooperative-task.js";
import { queryToken } from "../http/handle-request.js";
import type { Document } from "../http/headers.js";
import type { DocumentReply, RouteRequest } from "../http/reply.js";
import type { QueryParameter, Route, RouteOperation } from "../http/router.js";
import { type JsonObject, type JsonValue, objectSteps } from "../json/json-value.js";
import { stringifyJsonPieces } from "../json/stringify-json.js";
import type { Group, Variable } from "../model/data-tree.js";
import { packageVersion } from "../observe/versions.js";
import { listingPieces } from "../pages/home-page.js";
import { documentReply, largeJsonReply } from "./documents.js";
import { createPageReplies, storesOf } from "./page-replies.js";
import { type Plugin, type PluginContext, readInteger, readQuery } from "./plugin.js";
import { overviewsOf } from "./store-handler.js";

/** JSON Schemas of the plugin's documents, for OpenAPI. */

const NAMES = { type: "array", items: { type: "string" } };
const DIMENSIONS = { type: "object", additionalProperties: { type: "integer", minimum: 0 } };

const VARIABLE_DICT = {
  type: "object",
  required: ["dims", "attrs", "dtype", "shape"],
  properties: {
    dims: NAMES,
    attrs: { type: "object" },
    dtype: { type: "string", description: "numpy's `str(dtype)`: `float32`, `>f4`, `<U4`, `|S5`" },
    shape: { type: "array", items: { type: "integer", minimum: 0 } },
  },
};

/** A list of names. */
export const NAMES_SCHEMA = NAMES;

/** Schema of `/dict`. */
export const DICT_SCHEMA = {
  type: "object",
  required: ["coords", "attrs", "dims", "data_vars"],
  properties: {
    coords: { type: "object", additionalProperties: VARIABLE_DICT },
    attrs: { type: "object" },
    dims: DIMENSIONS,
    data_vars: { type: "object", additionalProperties: VARIABLE_DICT },
  },
};

/** Schema of `/info`. */
export const INFO_SCHEMA = {
  type: "object",
  required: ["dimensions", "variables", "global_attributes"],
  properties: {
    dimensions: DIMENSIONS,
    variables: {
      type: "object",
      additionalProperties: {
        type: "object",
        required: ["type", "dimensions", "attributes"],
        properties: {
          type: { type: "string", description: "numpy's name of the type: `float32`, `bytes40`, `str128`" },
          dimensions: NAMES,
          attributes: { type: "object" },
        },
      },
    },
    global_attributes: { type: "object" },
  },
};

const MAX_LIMIT = 10_000;
/** Bytes of pages that are kept while the list is the same, and their number. */
const KEPT_PAGES = { maxBytes: 8 * 1024 * 1024, maxEntries: 1_000 };

const PARAMETERS: Readonly<Record<string, QueryParameter>> = {
  prefix: { description: "Beginning of the ids that are listed", schema: { type: "string" } },
  limit: {
    description:
      "Ids of one page. If there are more, the answer has the header `Link` with the URL of the next page, relation `next`. Default: all",
    schema: { type: "integer", minimum: 1, maximum: MAX_LIMIT },
  },
  after: {
    description: "Id behind which the page begins; it need not exist any more",
    schema: { type: "string" },
  },
};

/** Creates the route that lists datasets, whole or in pages. */
export function createDatasetList(context: PluginContext): Route {
  const { datasets } = context;

  function documentOf(asked: IdSelection, ids: readonly string[]) {
    const page = isWhole(asked) ? { ids, hasMore: false } : selectIds(ids, datasets.configuredCount, asked);
    const made = context.document(page.ids, "dataset_info list", JSON_TYPE, () =>
      stringifyJsonPieces(page.ids),
    );
    return { page, made };
  }

  function handler(request: RouteRequest): DocumentReply | Promise<DocumentReply> {
    const asked = parseListQuery(request.query);
    const ids = datasets.ids();
    const kept = context.memo(ids, "dataset_info pages", () => createKeptPages());
    const isPaged = Number.isFinite(asked.limit);
    // Of further pages, the link depends on the address that the client uses, and on its token.
    const address = isPaged ? [request.serviceUrl, queryToken(request.query) ?? ""] : [];
    const key = JSON.stringify([asked.prefix, asked.after, isPaged && asked.limit, ...address]);
    const known = kept.get(key);
    if (known !== undefined) return known;
    const link = isPaged ? linkOf(request) : undefined;
    const { page, made } = documentOf(asked, ids);
    const reply = (document: Document): DocumentReply => {
      const last = page.ids.at(-1);
      const whole: DocumentReply =
        page.hasMore && link !== undefined && last !== undefined
          ? {
              kind: "document",
              document: withNext(document),
              headers: [["Link", `<${link(asked, last)}>; rel="next"`]],
              quotesAddress: true,
            }
          : { kind: "document", document };
      kept.set(key, whole);
      return whole;
    };
    return made instanceof Promise ? made.then(reply) : reply(made);
  }

  return {
    path: "/datasets",
    priority: "page",
    operation: {
      summary: "Ids of all datasets, in the order configured, then sorted",
      contentType: JSON_TYPE,
      schema: NAMES_SCHEMA,
      query: PARAMETERS,
      ranged: true,
    },
    handler,
  };
}

function createKeptPages(): BoundedMap<DocumentReply> {
  // The whole list is kept elsewhere, as long as the list itself.
  return createBoundedMap({ ...KEPT_PAGES, byteLengthOf: ({ document }) => document.bytes.byteLength });
}

function parseListQuery(query: string): IdSelection {
  const values = readQuery(query, (name) => Object.hasOwn(PARAMETERS, name), Object.keys(PARAMETERS));
  const limit = values.get("limit");
  return {
    prefix: values.get("prefix") ?? "",
    // Programs may begin with an empty one; no id is empty.
    after: values.get("after") || undefined,
    limit: limit === undefined ? Number.POSITIVE_INFINITY : readInteger("limit", limit, 1, MAX_LIMIT),
  };
}

function isWhole({ prefix, after, limit }: IdSelection): boolean {
  return prefix === "" && after === undefined && limit === Number.POSITIVE_INFINITY;
}

/** Returns a function that makes the URL of the page behind an id. It needs the request no more. */
function linkOf({ serviceUrl, query }: RouteRequest): (asked: IdSelection, after: string) => string {
  const token = queryToken(query);
  return ({ prefix, limit }, after) => {
    const values = [
      ...(prefix === "" ? [] : [["prefix", prefix]]),
      ["limit", String(limit)],
      ["after", after],
      ...(token === undefined ? [] : [["token", token]]),
    ];
    return `${serviceUrl}/datasets?${values.map(([name, value]) => `${name}=${encodeURIComponent(value as string)}`).join("&")}`;
  };
}

/** Gives a page another ETag if others follow: once its content is the same without them, caches must not keep the link. */
function withNext(document: Document): Document {
  return Object.freeze({ ...document, etag: document.etag.replace(/"$/, '+"') });
}

/** Describes a group as a dictionary without data, as xarray's `Dataset.to_dict(data=False)`. */
export function datasetDict(group: Group): JsonObject {
  return runNow(datasetDictSteps(group));
}

/** {@link datasetDict} as a cooperative task. */
export function* datasetDictSteps(group: Group): CooperativeTask<JsonObject> {
  const coords: [string, JsonObject][] = [];
  const dataVars: [string, JsonObject][] = [];
  for (const [name, variable] of group.variables) {
    yield;
    (group.coordinateNames.has(name) ? coords : dataVars).push([name, variableDict(variable)]);
  }
  return {
    coords: yield* objectSteps(coords),
    attrs: group.attrs,
    dims: yield* objectSteps(group.dims),
    data_vars: yield* objectSteps(dataVars),
  };
}

function variableDict({ dims, attrs, dataType, shape }: Variable): JsonObject {
  return { dims, attrs, dtype: dataType.numpyStr, shape };
}

/** Describes a group by a schema near NCO-JSON: dimensions, variables with types and attributes, global attributes. */
export function datasetSchema(group: Group): JsonObject {
  return runNow(datasetSchemaSteps(group));
}

/** {@link datasetSchema} as a cooperative task. */
export function* datasetSchemaSteps(group: Group): CooperativeTask<JsonObject> {
  const variables: [string, JsonObject][] = [];
  for (const [name, { dataType, dims, attrs }] of group.variables) {
    yield;
    variables.push([name, { type: dataType.numpyName, dimensions: dims, attributes: attrs }]);
  }
  return {
    dimensions: yield* objectSteps(group.dims),
    variables: yield* objectSteps(variables),
    global_attributes: group.attrs,
  };
}

const JSON_TYPE = "application/json";
const HTML_TYPE = "text/html; charset=utf-8";
const DATASET = "/datasets/{dataset_id}";
const GROUP = `${DATASET}/groups/{group_path:path}`;
const DATASET_PARAMETERS = { dataset_id: "Id of a dataset, as `/datasets` lists it" };
const GROUP_PARAMETERS = {
  ...DATASET_PARAMETERS,
  group_path: "Path of a group, as `groups` lists it: `/a/b` or `a/b`; empty for the root",
};

/** The plugin that describes datasets and their groups, as JSON and as pages. */
const datasetInfoPlugin = {
  name: "dataset_info",
  version: packageVersion,
  path: "zpublish/plugins/dataset-info",
  routes: createRoutes,
} satisfies Plugin;
export default datasetInfoPlugin;

/** A JSON document about a group, the root included. */
interface GroupDocument {
  readonly name: string;
  readonly summary: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly content: (group: Group) => CooperativeTask<JsonValue>;
}

const GROUP_DOCUMENTS: readonly GroupDocument[] = [
  {
    name: "keys",
    summary: "Names of the variables of a group, coordinates included",
    schema: NAMES_SCHEMA,
    content: (group) => listSteps(group.variables.keys()),
  },
  {
    name: "dict",
    summary: "A group as a dictionary without data, as xarray's Dataset.to_dict(data=False)",
    schema: DICT_SCHEMA,
    content: datasetDictSteps,
  },
  {
    name: "info",
    summary: "Schema of a group, near NCO-JSON",
    schema: INFO_SCHEMA,
    content: datasetSchemaSteps,
  },
];

function createRoutes(context: PluginContext): readonly Route[] {
  const { datasets } = context;
  const pages = createPageReplies(context);

  function snapshotOf({ params }: RouteRequest): DatasetSnapshot {
    return datasets.get(params.dataset_id as string);
  }

  const documentRoutes = GROUP_DOCUMENTS.flatMap(({ name, summary, schema, content }): Route[] => {
    const operation = { summary, schema, contentType: JSON_TYPE, ranged: true };
    const memoName = `dataset_info ${name}`;
    const groupReply = (snapshot: DatasetSnapshot, group: Group) =>
      largeJsonReply(context, snapshot, memoName, group.path, () => content(group));
    return [
      {
        path: `${DATASET}/${name}`,
        priority: "page",
        operation: { ...operation, description: "Of the root group.", parameters: DATASET_PARAMETERS },
        handler(request) {
          const snapshot = snapshotOf(request);
          return groupReply(snapshot, snapshot.tree.root);
        },
      },
      {
        path: `${GROUP}/${name}`,
        priority: "page",
        operation: { ...operation, parameters: GROUP_PARAMETERS },
        handler(request) {
          const snapshot = snapshotOf(request);
          return groupReply(snapshot, findGroup(snapshot, request.params.group_path as string));
        },
      },
    ];
  });

  return [
    createDatasetList(context),
    {
      path: DATASET,
      priority: "page",
      operation: page("Redirects to the dataset's page", DATASET_PARAMETERS),
      handler(request) {
        snapshotOf(request);
        return { kind: "redirect", to: "with-slash" };
      },
    },
    {
      path: `${DATASET}/`,
      priority: "page",
      operation: page("A dataset for people: its root group", DATASET_PARAMETERS),
      handler(request) {
        const snapshot = snapshotOf(request);
        return pages.reply(snapshot, snapshot.tree.root, false, request);
      },
    },
    {
      path: `${DATASET}/tree`,
      priority: "page",
      operation: page("A dataset for people: the whole tree of its groups", DATASET_PARAMETERS),
      handler(request) {
        const snapshot = snapshotOf(request);
        return pages.reply(snapshot, snapshot.tree.root, true, request);
      },
    },
    {
      path: `${DATASET}/groups`,
      priority: "page",
      operation: {
        summary: "Paths of all groups, root first, parents before children",
        contentType: JSON_TYPE,
        schema: NAMES_SCHEMA,
        parameters: DATASET_PARAMETERS,
        ranged: true,
      },
      handler(request) {
        const snapshot = snapshotOf(request);
        return largeJsonReply(context, snapshot, "dataset_info groups", "/", () =>
          listSteps(snapshot.tree.groups.keys()),
        );
      },
    },
    {
      path: `${DATASET}/overviews`,
      priority: "page",
      operation: page("Redirects to the list of the stores of overviews", DATASET_PARAMETERS),
      handler(request) {
        overviewsOf(snapshotOf(request));
        return { kind: "redirect", to: "with-slash" };
      },
    },
    {
      path: `${DATASET}/overviews/`,
      priority: "page",
      operation: page("Stores of a dataset's coarser levels, with relative links", DATASET_PARAMETERS),
      handler(request) {
        const overviews = overviewsOf(snapshotOf(request));
        return documentReply(context, overviews, "dataset_info overviews", "/", HTML_TYPE, () => {
          const entries = storesOf(context).map((prefix) => `${prefix}/`);
          return listingPieces({ title: `${context.datasetPath(overviews.id)}overviews/`, entries });
        });
      },
    },
    {
      path: GROUP,
      priority: "page",
      operation: page("One group for people", GROUP_PARAMETERS),
      handler(request) {
        const snapshot = snapshotOf(request);
        const group = findGroup(snapshot, request.params.group_path as string);
        return pages.reply(snapshot, group, false, request);
      },
    },
    ...documentRoutes,
  ];
}

function page(summary: string, parameters: Readonly<Record<string, string>>): RouteOperation {
  return { summary, contentType: HTML_TYPE, parameters };
}

function* listSteps(names: Iterable<string>): CooperativeTask<JsonValue> {
  const list: string[] = [];
  for (const name of names) {
    yield;
    list.push(name);
  }
  return list;
}
