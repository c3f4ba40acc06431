import {
  type BoundedMap,
  type CooperativeTask,
  createBoundedMap,
  type DatasetView,
  type Document,
  type DocumentReply,
  encodingOf,
  findGroup,
  type Group,
  type IdSelection,
  idOfVersion,
  type JsonObject,
  type JsonValue,
  jsonReply,
  type NamedVersion,
  objectSteps,
  overviewsOf,
  type Plugin,
  type PluginContext,
  packageVersion,
  parseQuery,
  type QueryParameter,
  queryToken,
  type Route,
  type RouteOperation,
  type RouteRequest,
  readInteger,
  selectIds,
  stringifyJson,
  stringifyJsonPieces,
  type Variable,
  wrongParameter,
} from "../../plugin-api.js";

const JSON_TYPE = "application/json";
const HTML_TYPE = "text/html; charset=utf-8";
const DATASET = "/datasets/{dataset_id}";
const GROUP = "/groups/{group_path:path}";
/** Parameters of paths, by name. */
const PATH_PARAMETERS = {
  dataset_id: "Id of a dataset, as `/datasets` lists it, or of one of its versions: `air@v1`",
  group_path: "Path of a group, as `groups` lists it: `/a/b` or `a/b`; empty for the root",
  encoding: "Name of the encoding, as `info` lists it",
};

/** The plugin that describes datasets and their groups, as JSON and as pages. */
const datasetInfoPlugin = {
  name: "dataset_info",
  version: packageVersion,
  path: "zpublish/plugins/dataset-info",
  routes: createRoutes,
} satisfies Plugin;
export default datasetInfoPlugin;

function createRoutes(context: PluginContext): readonly Route[] {
  return [
    createDatasetList(context),
    createVersionList(context),
    ...pageRoutes(context),
    ...createJsonRoutes(context),
  ];
}

type SnapshotHandler = (snapshot: DatasetView, request: RouteRequest) => ReturnType<Route["handler"]>;

/** Makes a route below a dataset, which is `/datasets/{dataset_id}` and a path. */
function datasetRoute(
  { datasets }: PluginContext,
  path: string,
  operation: RouteOperation,
  answer: SnapshotHandler,
): Route {
  return {
    path: `${DATASET}${path}`,
    priority: "page",
    operation: { ...operation, parameters: PATH_PARAMETERS },
    handler: (request) => answer(datasets.get(request.params.dataset_id as string), request),
  };
}

function groupOf(snapshot: DatasetView, { params }: RouteRequest): Group {
  return findGroup(snapshot, params.group_path as string);
}

function pageRoutes(context: PluginContext): readonly Route[] {
  const page = (path: string, summary: string, answer: SnapshotHandler) =>
    datasetRoute(context, path, { summary, contentType: HTML_TYPE }, answer);
  /** Directory listing of the stores of another form of a dataset, to which those of its stores lead back. */
  const listing = (
    path: string,
    what: string,
    find: (snapshot: DatasetView, request: RouteRequest) => DatasetView,
  ) => [
    page(path, `Redirects to the directory listing of ${what}`, (snapshot, request) => {
      find(snapshot, request);
      return { kind: "redirect", to: "with-slash" };
    }),
    page(`${path}/`, `Directory listing of ${what}, with relative links`, (snapshot, request) => {
      const below = `${path.slice(1)}/`.replace("{encoding}", String(request.params.encoding));
      return context.pages.listing(find(snapshot, request), below);
    }),
  ];
  return [
    page("", "Redirects to the dataset's page", () => ({ kind: "redirect", to: "with-slash" })),
    page("/", "Page of a dataset", (snapshot, request) =>
      context.pages.reply(snapshot, snapshot.tree.root, false, request),
    ),
    page("/tree", "Page of a dataset with all its groups", (snapshot, request) =>
      context.pages.reply(snapshot, snapshot.tree.root, true, request),
    ),
    ...listing("/overviews", "the overviews", overviewsOf),
    ...listing("/encodings/{encoding}", "a dataset in another encoding", (snapshot, { params }) =>
      encodingOf(snapshot, params.encoding as string),
    ),
    page(GROUP, "Page of a group", (snapshot, request) =>
      context.pages.reply(snapshot, groupOf(snapshot, request), false, request),
    ),
  ];
}

function createJsonRoutes(context: PluginContext): readonly Route[] {
  const common = { contentType: JSON_TYPE, ranged: true };
  const groups = datasetRoute(
    context,
    "/groups",
    { ...common, summary: "Paths of all groups, root first, parents before children", schema: NAMES },
    (snapshot) =>
      jsonReply(context, snapshot, "dataset_info groups", "/", () => listSteps(snapshot.tree.groups.keys())),
  );
  const documents = GROUP_DOCUMENTS.flatMap(({ name, summary, schema, content }): Route[] => {
    const operation = { ...common, summary, schema };
    const memoName = `dataset_info ${name}`;
    const reply = (snapshot: DatasetView, group: Group) =>
      jsonReply(context, snapshot, memoName, group.path, () => content(group, snapshot));
    return [
      datasetRoute(context, `/${name}`, { ...operation, description: "For the root group." }, (snapshot) =>
        reply(snapshot, snapshot.tree.root),
      ),
      datasetRoute(context, `${GROUP}/${name}`, operation, (snapshot, request) =>
        reply(snapshot, groupOf(snapshot, request)),
      ),
    ];
  });
  return [groups, ...documents];
}

const NAMES = { type: "array", items: { type: "string" } };
/** Its summary says what is in it. */
const OBJECT = { type: "object" };

/** A JSON document about a group, the root included. */
interface GroupDocument {
  readonly name: string;
  readonly summary: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly content: (group: Group, snapshot: DatasetView) => CooperativeTask<JsonValue>;
}

const GROUP_DOCUMENTS: readonly GroupDocument[] = [
  {
    name: "keys",
    summary: "Names of the variables of a group, coordinates included",
    schema: NAMES,
    content: (group) => listSteps(group.variables.keys()),
  },
  {
    name: "dict",
    summary: "Metadata of a group, as Dataset.to_dict(data=False) of xarray writes it",
    schema: OBJECT,
    content: groupDict,
  },
  {
    name: "info",
    summary:
      "Dimensions, variables and attributes of a group, similar to NCO-JSON, and its further encodings",
    schema: OBJECT,
    content: groupSchema,
  },
];

function* listSteps(names: Iterable<string>): CooperativeTask<JsonValue> {
  const list: string[] = [];
  for (const name of names) {
    yield;
    list.push(name);
  }
  return list;
}

/** Describes a group as a dictionary without data, as xarray's `Dataset.to_dict(data=False)`. */
export function* groupDict(group: Group): CooperativeTask<JsonObject> {
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

/**
 * Describes a group by a schema near NCO-JSON: dimensions, variables with types and attributes, global attributes. If its dataset has
 * further encodings, also the chunk lengths of the variables in each; if it offers its file, also that.
 */
export function* groupSchema(
  group: Group,
  { encodings, file }: Pick<DatasetView, "encodings" | "file"> = {},
): CooperativeTask<JsonObject> {
  const variables: [string, JsonObject][] = [];
  for (const [name, { dataType, dims, attrs }] of group.variables) {
    yield;
    variables.push([name, { type: dataType.numpyName, dimensions: dims, attributes: attrs }]);
  }
  return {
    dimensions: yield* objectSteps(group.dims),
    variables: yield* objectSteps(variables),
    global_attributes: group.attrs,
    ...(encodings !== undefined && {
      encodings: yield* objectSteps([...encodings].map(([name, each]) => [name, chunksOf(each, group)])),
    }),
    ...(file !== undefined && { file: { name: file.name, size: file.byteLength, type: file.contentType } }),
  };
}

function chunksOf({ tree }: DatasetView, { path }: Group): JsonObject {
  const variables = [...(tree.groups.get(path)?.variables ?? [])];
  return { chunks: Object.fromEntries(variables.map(([name, { chunkShape }]) => [name, chunkShape])) };
}

const MAX_LIMIT = 10_000;
/** Bytes of pages that are kept while the list is the same, and their number. */
const KEPT_PAGES = { maxBytes: 8 * 1024 * 1024, maxEntries: 1_000 };

const PARAMETERS: Readonly<Record<string, QueryParameter>> = {
  prefix: { description: "Lists only ids that begin with this text", schema: { type: "string" } },
  limit: {
    description:
      "Maximum number of ids. If there are more, the answer has the header `Link` with the URL of the next page, relation `next`. Default: all",
    schema: { type: "integer", minimum: 1, maximum: MAX_LIMIT },
  },
  after: {
    description: "Id after which the list begins; it need not exist any more",
    schema: { type: "string" },
  },
};

/** Creates the route that lists datasets, whole or in pages. */
function createDatasetList(context: PluginContext): Route {
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
    const link = isPaged ? linkOf(request, "/datasets") : undefined;
    const { page, made } = documentOf(asked, ids);
    const reply = (document: Document): DocumentReply => {
      const last = page.ids.at(-1);
      const whole: DocumentReply =
        page.hasMore && link !== undefined && last !== undefined
          ? withNext(document, link({ prefix: asked.prefix, limit: asked.limit, after: last }))
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
      summary: "Ids of all datasets: first those configured, in their order, then all others, sorted",
      contentType: JSON_TYPE,
      schema: NAMES,
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
  const values = parseQuery(query, { once: Object.keys(PARAMETERS) });
  const [limit] = values.get("limit") ?? [];
  return {
    prefix: values.get("prefix")?.[0] ?? "",
    // Programs may begin with an empty one; no id is empty.
    after: values.get("after")?.[0] || undefined,
    limit: limit === undefined ? Number.POSITIVE_INFINITY : readInteger("limit", limit, 1, MAX_LIMIT),
  };
}

function isWhole({ prefix, after, limit }: IdSelection): boolean {
  return prefix === "" && after === undefined && limit === Number.POSITIVE_INFINITY;
}

/** Returns a function that makes the URL of another page of a list, from the parameters that are not empty. It does not keep the request. */
function linkOf({ serviceUrl, query }: RouteRequest, path: string) {
  const token = queryToken(query) ?? "";
  return (parameters: Readonly<Record<string, string | number>>): string => {
    const values = Object.entries({ ...parameters, token }).filter(([, value]) => value !== "");
    return `${serviceUrl}${path}?${values.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&")}`;
  };
}

/**
 * Replies with a page of a list that others follow. It has another ETag: once its content is the same without them, caches must not keep
 * the link.
 */
function withNext(document: Document, next: string): DocumentReply {
  return {
    kind: "document",
    document: Object.freeze({ ...document, etag: document.etag.replace(/"$/, '+"') }),
    headers: [["Link", `<${next}>; rel="next"`]],
    quotesAddress: true,
  };
}

/** Maximum of versions in an answer. */
const MAX_VERSIONS = 1_000;

const VERSION_PARAMETERS: Readonly<Record<string, QueryParameter>> = {
  limit: {
    description:
      "Maximum number of versions. If there are more, the answer has the header `Link` with the URL of the next page, relation `next`",
    schema: { type: "integer", minimum: 1, maximum: MAX_VERSIONS, default: MAX_VERSIONS },
  },
  after: {
    description: "Kind and name of the version after which the list begins: `tag:v1`",
    schema: { type: "string" },
  },
};

const TEXT = { type: "string" };
const VERSIONS = {
  type: "array",
  items: {
    type: "object",
    properties: {
      kind: { enum: ["branch", "tag", "snapshot"] },
      name: TEXT,
      snapshot: { ...TEXT, description: "Id of the snapshot" },
      time: { ...TEXT, format: "date-time" },
      message: TEXT,
      id: { ...TEXT, description: "Id of the version in paths; for a branch, that of its snapshot" },
      path: { ...TEXT, description: "Path of its page" },
    },
  },
};

/** Creates the route that lists the versions of a dataset. */
function createVersionList(context: PluginContext): Route {
  const { createDocument, datasetPath } = context;
  const path = "/versions";

  async function answer(snapshot: DatasetView, request: RouteRequest): Promise<DocumentReply> {
    const values = parseQuery(request.query, { once: Object.keys(VERSION_PARAMETERS) });
    const limit = readInteger("limit", values.get("limit")?.[0] ?? `${MAX_VERSIONS}`, 1, MAX_VERSIONS);
    const after = values.get("after")?.[0] || undefined;
    const dataset = snapshot.version?.dataset ?? snapshot.id;
    const pathOf = (id: string) => datasetPath(encodeURIComponent(id).replaceAll("%40", "@"));
    // Before the first `await`: a request that is cancelled meanwhile has no headers any more.
    const link = linkOf(request, `${pathOf(snapshot.id).slice(0, -1)}${path}`);
    const root = new URL(request.serviceUrl).pathname.replace(/\/$/, "");
    const all = (await snapshot.versions?.list(request.signal)) ?? [];
    const keyOf = ({ kind, name }: NamedVersion) => `${kind}:${name}`;
    const begin = after === undefined ? 0 : all.findIndex((each) => keyOf(each) === after) + 1;
    if (after !== undefined && begin === 0)
      throw wrongParameter("after", "unknown_version", "a version of the list, such as tag:v1", after);
    const page = all.slice(begin, begin + limit);
    const content = page.map(({ kind, name, snapshot, time, message }, index) => {
      const id = idOfVersion(dataset, page[index]!);
      return { kind, name, snapshot, time, message, id, path: root + pathOf(id) };
    });
    const document = createDocument(stringifyJson(content), JSON_TYPE);
    if (begin + limit >= all.length) return { kind: "document", document, quotesAddress: true };
    return withNext(document, link({ limit, after: keyOf(page.at(-1)!) }));
  }

  const operation = {
    summary: "Branches, tags and snapshots of a dataset, the newest of each first; empty if it keeps none",
    description: "The id of a version takes the place of the dataset's in all paths: `/datasets/air@v1/info`",
    ...{ contentType: JSON_TYPE, schema: VERSIONS, query: VERSION_PARAMETERS, ranged: true },
  };
  return datasetRoute(context, path, operation, answer);
}
