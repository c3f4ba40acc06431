import { compareItems } from "../collections/sorted-lists.js";
import {
  type DatasetSnapshot,
  encodingOf,
  type OverviewLevels,
  overviewsOf,
  type ServedArray,
} from "../dataset/dataset.js";
import { type Grid, listGrids } from "../dataset/overviews/level-grids.js";
import { geoMetadata, omeMultiscales, type RegularAxes } from "../dataset/overviews/level-metadata.js";
import { ZpublishError } from "../errors.js";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import { sortCooperatively } from "../event-loop/sort-cooperatively.js";
import type { DocumentPieces } from "../http/create-document.js";
import type { Reply, RouteRequest } from "../http/reply.js";
import type { Route, RouteOperation } from "../http/router.js";
import type { JsonObject } from "../json/json-value.js";
import {
  type DataTree,
  elementCount,
  type Group,
  normalNodePath,
  type Variable,
} from "../model/data-tree.js";
import { packageVersion } from "../observe/versions.js";
import { listingPieces } from "../pages/home-page.js";
import { documentReply, jsonReply, keepPromise } from "./documents.js";
import type { CoreContext, Plugin } from "./plugin.js";

/**
 * Returns the attributes of a group as a store shows them. The root of overviews has multiscale metadata, which need the values of
 * coordinates; these are read at the first call.
 * @param version Version of the Zarr format.
 */
function groupAttributes(
  context: CoreContext,
  snapshot: DatasetSnapshot,
  group: Group,
  version: 2 | 3,
): JsonObject | Promise<JsonObject> {
  const { levels } = snapshot;
  if (levels === undefined || group.path !== "/") return group.attrs;
  return keepPromise(context, snapshot, `overview attributes ${version}`, async () => {
    const grids = listGrids(levels.dataset.tree, levels.horizontal);
    const axes = await readAxes(context, levels, grids[0]);
    return version === 2 ? attributesOfV2(levels, grids, axes) : attributesOfV3(levels, grids, axes);
  });
}

/** Both conventions want the attribute `multiscales`, so that there is one of them. */
function attributesOfV2(levels: OverviewLevels, grids: readonly Grid[], axes: RegularAxes): JsonObject {
  if (levels.metadata === "geo") return geoMetadata(levels, grids[0], axes);
  const multiscales = omeMultiscales(levels, grids, axes, "0.4");
  return multiscales.length === 0 ? {} : { multiscales };
}

function attributesOfV3(levels: OverviewLevels, grids: readonly Grid[], axes: RegularAxes): JsonObject {
  const multiscales = omeMultiscales(levels, grids, axes, "0.5");
  const ome = multiscales.length === 0 ? {} : { ome: { version: "0.5", multiscales } };
  return { ...geoMetadata(levels, grids[0], axes), ...ome };
}

async function readAxes(
  context: CoreContext,
  { dataset }: OverviewLevels,
  grid: Grid | undefined,
): Promise<RegularAxes> {
  const read = async (coordinate: Variable | undefined) => {
    const array = coordinate && dataset.arrays.get(coordinate.path);
    return array && (await context.values.coordinates(dataset, array)).axes[0]?.regular;
  };
  const [y, x] = await Promise.all([read(grid?.yCoordinate), read(grid?.xCoordinate)]);
  return y && x && { y, x };
}

/** Parameters of a request. */
export type Params = RouteRequest["params"];

/** A version of the Zarr format as a plugin serves it. */
interface StoreFormat {
  /** Name of the plugin, and last segment of its stores' paths. */
  readonly name: "zarr" | "zarr3";
  readonly version: 2 | 3;
  /** In the order of a listing. */
  readonly documents: readonly StoreDocument[];
  /** Template of a chunk's path below a store. */
  readonly chunkPath: string;
  readonly chunkOperation: Pick<RouteOperation, "summary" | "parameters">;
  /** Takes the path of a request apart. */
  chunkOf(params: Params): ChunkName;
  /**
   * Lists the names below the directory of an array's chunks; undefined if there is no such directory.
   * @param indices Leading indices of chunks; empty for the directory of the array.
   */
  listChunks(gridShape: readonly number[], name?: ChunkName): (() => readonly string[]) | undefined;
  /** Returns the array with the plan of this format; undefined if the format cannot describe it. Default: the same array. */
  served?(array: ServedArray): ServedArray | undefined;
}

/** A metadata document of a store, of groups, arrays or both. */
interface StoreDocument {
  /** Its name: `.zarray`. */
  readonly name: string;
  readonly summary: string;
  readonly ofArray?: (array: ServedArray) => JsonObject;
  /** The document, if it is the same for all groups, or a function that writes it. */
  readonly ofGroup?: JsonObject | WriteGroup;
}

/**
 * Writes the document of a group.
 * @param attrs Attributes of the group as the store shows them.
 */
type WriteGroup = (snapshot: DatasetSnapshot, group: Group, attrs: JsonObject) => CooperativeTask<JsonObject>;

/** A path that may name a chunk, taken apart. */
export interface ChunkName {
  /** The whole path, without doubled slashes. */
  readonly path: string;
  /** Path of the array; undefined if the path names no chunk. */
  readonly variablePath: string | undefined;
  /** Indices, joined by dots; `0` for the chunk of a scalar. */
  readonly key: string;
  /** Whether the path names the chunk of a scalar; undefined if the key does not tell. */
  readonly isOfScalar?: boolean;
}

/** Creates the plugin that serves every dataset, its overviews and further encodings, and every group of them as stores of one format. */
export function createStorePlugin(format: StoreFormat) {
  return {
    name: format.name,
    version: packageVersion,
    path: `zpublish/plugins/${format.name}`,
    routes(context: CoreContext): readonly Route[] {
      const place = (name: string, snapshotOf: StorePlace["snapshotOf"]) =>
        createRoutes(format, context, { name, path: `/datasets/{dataset_id}/${name}`, snapshotOf });
      const ofOverviews = place(`overviews/${format.name}`, overviewsOf);
      const ofEncodings = place(`encodings/{encoding}/${format.name}`, (dataset, params) =>
        encodingOf(dataset, params.encoding as string),
      );
      return [
        ...place(format.name, (dataset) => dataset),
        ...ofOverviews.map((route) => described(route, ", in overviews", OVERVIEWS)),
        ...ofEncodings.map((route) => described(route, ", in another encoding", ENCODINGS, ENCODING)),
      ];
    },
  } satisfies Plugin;
}

/** A place below a dataset at which its arrays, or coarser levels of them, are a Zarr store. */
interface StorePlace {
  /** Template of the path below the dataset: `zarr`, `overviews/zarr`, `encodings/{encoding}/zarr`. */
  readonly name: string;
  /** Template of its URL, without a slash at its end. */
  readonly path: string;
  /** Returns the snapshot that is served there. @throws ZpublishError `not-found` if the dataset has none. */
  readonly snapshotOf: (dataset: DatasetSnapshot, params: Params) => DatasetSnapshot;
}

const OVERVIEWS =
  "Of the overviews: group `0` is the dataset itself, `1`, `2`, … have half, a quarter, … of its cells per axis.";
const ENCODINGS =
  "Of the dataset in another encoding: the same values in other chunks, as the configuration says.";
const ENCODING = { encoding: "Name of the encoding, as `info` lists it" };

function described(
  route: Route,
  where: string,
  text: string,
  parameters: Record<string, string> = {},
): Route {
  const { summary, description } = route.operation;
  return {
    ...route,
    operation: {
      ...route.operation,
      summary: `${summary}${where}`,
      description: description === undefined ? text : `${description} ${text}`,
      parameters: { ...route.operation.parameters, ...parameters },
    },
  };
}

const HTML_TYPE = "text/html; charset=utf-8";
const DATASET = { dataset_id: "Id of the dataset" };
const NODE = { ...DATASET, group_path: "Path of a group or variable; empty for the root" };
const GROUP = { ...DATASET, group_path: "Path of the group; empty for the root" };
const VARIABLE = { ...DATASET, var: "Path of the variable: `t2m`, `a/b/t2m`" };

function createRoutes(format: StoreFormat, context: CoreContext, place: StorePlace): readonly Route[] {
  const { datasets } = context;
  const store = createStore(format, context, place.name);
  const handler = (answer: StoreAnswer, mayBeNew: MayBeNew) => storeHandler(context, place, answer, mayBeNew);

  return [
    ...format.documents.flatMap((document) =>
      documentRoutes(place, document, handler(store.documentAnswer(document), store.isUnknown)),
    ),
    {
      path: place.path,
      priority: "page",
      operation: { summary: "Redirects to the directory listing of the store", contentType: HTML_TYPE },
      handler({ params }) {
        place.snapshotOf(datasets.get(params.dataset_id as string), params);
        return { kind: "redirect", to: "with-slash" };
      },
    },
    ...withRoot({
      path: `${place.path}/{group_path:path}/`,
      priority: "page",
      operation: {
        summary: "Directory listing of a group or an array, with relative links",
        contentType: HTML_TYPE,
        parameters: NODE,
      },
      handler: handler(store.listing, store.isUnknown),
    }),
    {
      path: `${place.path}/${format.chunkPath}`,
      priority: "chunk",
      operation: {
        ...format.chunkOperation,
        description: "A path that names a group or an array instead redirects to it with a slash.",
        contentType: "application/octet-stream",
        ranged: true,
      },
      handler: handler(store.chunk, (_snapshot, params) => {
        const { variablePath, key } = format.chunkOf(params);
        return variablePath !== undefined && CHUNK_KEY.test(key);
      }),
    },
  ];
}

function documentRoutes({ path }: StorePlace, document: StoreDocument, handler: Route["handler"]): Route[] {
  const { name, summary, ofArray, ofGroup } = document;
  const isOfArrays = ofGroup === undefined;
  const route: Route = {
    path: `${path}/{${isOfArrays ? "var" : "group_path"}:path}/${name}`,
    priority: "page",
    operation: {
      summary,
      contentType: "application/json",
      schema: { type: "object" },
      parameters: isOfArrays ? VARIABLE : ofArray === undefined ? GROUP : NODE,
      ranged: true,
    },
    handler,
  };
  return isOfArrays ? [route] : withRoot(route);
}

/** A chunk key that an array may have. */
const CHUNK_KEY = /^(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*))*$/;

/**
 * Returns a route for every group and one for the root. The former matches an empty path too (`zarr//.zmetadata`), which OpenAPI
 * cannot express.
 */
function withRoot(route: Route): Route[] {
  const { path, operation } = route;
  const ofRoot = { ...operation, description: "Of the root group.", parameters: DATASET };
  return [{ ...route, path: path.replace(/\/\{\w+:path\}/, ""), operation: ofRoot }, route];
}

/** Answers a request from a snapshot. */
type StoreAnswer = (
  snapshot: DatasetSnapshot,
  params: Params,
  request: RouteRequest,
) => Reply | Promise<Reply>;

/** Tells whether a path could exist in a newer snapshot. */
type MayBeNew = (snapshot: DatasetSnapshot, params: Params) => boolean;

/**
 * Creates a handler that answers from the snapshot at a place. Before a 404 it refreshes the dataset: a client may know of a
 * chunk from another instance, and takes a 404 for fill values.
 */
function storeHandler(
  { datasets }: CoreContext,
  { snapshotOf }: StorePlace,
  answer: StoreAnswer,
  mayBeNew: MayBeNew,
): Route["handler"] {
  return (request) => {
    const { params } = request;
    const dataset = datasets.get(params.dataset_id as string);
    const snapshot = snapshotOf(dataset, params);
    try {
      return answer(snapshot, params, request);
    } catch (error) {
      const isAbsent = error instanceof ZpublishError && error.code === "not-found";
      if (!isAbsent || !mayBeNew(snapshot, params)) throw error;
      return datasets.refreshBeforeNotFound(dataset).then((newer) => {
        if (newer === dataset) throw error;
        return answer(snapshotOf(newer, params), params, request);
      });
    }
  };
}

/** Creates the answers of a store. @param placeName As {@link StorePlace.name}. */
function createStore(format: StoreFormat, context: CoreContext, placeName: string) {
  const { name, documents, listChunks } = format;
  /** Names of recent paths, whose parameters the router remembers. */
  const chunkNames = new WeakMap<Params, ChunkName>();
  // Pool and cache start here, when routes are made: at the first request they would be too late for its chunk.
  const { chunks } = context;
  const served = format.served ?? ((array) => array);
  const listingName = `${name} listing`;

  function chunkOf(params: Params): ChunkName {
    let found = chunkNames.get(params);
    if (found === undefined) {
      found = format.chunkOf(params);
      chunkNames.set(params, found);
    }
    return found;
  }

  function arrayAt(snapshot: DatasetSnapshot, path: string | undefined): ServedArray | undefined {
    const array = path === undefined ? undefined : snapshot.arrays.get(path);
    return array && served(array);
  }

  function documentAnswer({ name: documentName, ofArray, ofGroup }: StoreDocument): StoreAnswer {
    const memoName = `${name} ${documentName}`;
    const noun = ofArray === undefined ? "Group" : ofGroup === undefined ? "Variable" : "Group or variable";
    return (snapshot, params) => {
      const path = nodePathOf(params);
      const array = ofArray && snapshot.arrays.get(path);
      if (ofArray !== undefined && array !== undefined) {
        const described = served(array);
        if (described === undefined) {
          const message = `Variable '${path}' of dataset '${snapshot.id}' is served as Zarr v2 only: ${array.v3Problem}`;
          throw new ZpublishError("not-found", message);
        }
        return jsonReply(context, snapshot, memoName, path, () => completed(ofArray(described)));
      }
      const group = ofGroup && snapshot.tree.groups.get(`/${path}`);
      if (ofGroup === undefined || group === undefined) throw notFound(noun, path, snapshot);
      const reply = (content: () => CooperativeTask<JsonObject>) =>
        jsonReply(context, snapshot, memoName, group.path, content);
      if (typeof ofGroup !== "function") return reply(() => completed(ofGroup));
      const answer = (attrs: JsonObject) => reply(() => ofGroup(snapshot, group, attrs));
      const attrs = groupAttributes(context, snapshot, group, format.version);
      return attrs instanceof Promise ? attrs.then(answer) : answer(attrs);
    };
  }

  /** Answers a chunk, or redirects if the path names a group or an array without its slash. */
  function chunk(snapshot: DatasetSnapshot, params: Params, request: RouteRequest): Reply | Promise<Reply> {
    const name = chunkOf(params);
    const { path, variablePath, key, isOfScalar } = name;
    const array = variablePath === undefined ? undefined : snapshot.arrays.get(variablePath);
    const isKey = isOfScalar === undefined || isOfScalar === (array?.variable.shape.length === 0);
    const asServed = array && isKey ? served(array) : undefined;
    if (asServed !== undefined) {
      const find = chunks.unseen(snapshot, asServed, name);
      if (find === undefined) return chunks.serve(snapshot, asServed, name, request);
      const otherwise = () => chunks.serve(snapshot, asServed, name, request);
      return { kind: "elsewhere", find, otherwise, cacheControl: snapshot.cacheControl };
    }
    if (snapshot.tree.groups.has(`/${path}`) || snapshot.arrays.has(path))
      return { kind: "redirect", to: "with-slash" };
    if (variablePath !== undefined) refuseLostChunk(snapshot, variablePath, key);
    throw notFound("Group or variable", array === undefined ? variablePath || path : path, snapshot);
  }

  function listing(snapshot: DatasetSnapshot, params: Params): Reply | Promise<Reply> {
    const path = nodePathOf(params);
    const entries = entriesAt(snapshot, path, params);
    const place = placeName.replace("{encoding}", params.encoding ?? "");
    const title = `${context.datasetPath(snapshot.id)}${place}/${path}`;
    return documentReply(context, snapshot, listingName, path, HTML_TYPE, () =>
      listingDocument(title, entries),
    );
  }

  /** @throws ZpublishError `not-found` if there is no such node, or too many chunks to list. */
  function entriesAt(snapshot: DatasetSnapshot, path: string, params: Params): Entries {
    const node = arrayAt(snapshot, path);
    const chunkName = node === undefined ? chunkOf(params) : undefined;
    const array = node ?? arrayAt(snapshot, chunkName?.variablePath);
    if (array !== undefined) {
      assertListable(snapshot, array);
      const keys = listChunks(array.plan.served.gridShape, chunkName);
      if (keys === undefined) throw notFound("Group or variable", path, snapshot);
      const ofArray = node === undefined ? [] : documents.filter((each) => each.ofArray !== undefined);
      return () => completed([...ofArray.map((each) => each.name), ...keys()]);
    }
    const group = snapshot.tree.groups.get(`/${path}`);
    if (group === undefined) throw notFound("Group or variable", path, snapshot);
    const ofGroup = documents.filter((each) => each.ofGroup !== undefined);
    return () =>
      groupEntries(
        ofGroup.map((each) => each.name),
        group,
        variablesOf(snapshot, group),
      );
  }

  function variablesOf({ arrays }: DatasetSnapshot, { variables }: Group): Iterable<string> {
    if (format.served === undefined) return variables.keys();
    const isServed = ({ path }: Variable) => arrays.get(path)?.v3Problem === undefined;
    return [...variables.values()].filter(isServed).map((variable) => variable.name);
  }

  /** Tells if a path names neither a group, an array nor a directory of chunks. Clients request documents of both to find out. */
  function isUnknown(snapshot: DatasetSnapshot, params: Params): boolean {
    const path = nodePathOf(params);
    if (snapshot.arrays.has(path) || snapshot.tree.groups.has(`/${path}`)) return false;
    return arrayAt(snapshot, chunkOf(params).variablePath) === undefined;
  }

  return { documentAnswer, chunk, listing, isUnknown };
}

/** Returns the entries of a listing, some of which take time to sort. */
type Entries = () => CooperativeTask<readonly string[]>;

/** Lists a group: documents, then child groups and arrays with a slash at the end. */
function* groupEntries(
  documents: readonly string[],
  group: Group,
  variables: Iterable<string>,
): CooperativeTask<readonly string[]> {
  const entries = [...documents];
  for (const name of yield* sortCooperatively([...group.childNames, ...variables], compareItems)) {
    yield;
    entries.push(`${name}/`);
  }
  return entries;
}

function* listingDocument(title: string, entries: Entries): DocumentPieces {
  yield* listingPieces({ title, entries: yield* entries() });
}

/** Returns a task that only has its result to return. */
export function* completed<T>(result: T): CooperativeTask<T> {
  yield;
  return result;
}

function nodePathOf(params: Params): string {
  return normalNodePath(params.group_path ?? params.var ?? "");
}

/** Chunks of an array's listing at most. GDAL takes chunks that a listing leaves out for absent, so a longer one does not exist. */
const MAX_LISTED_CHUNKS = 10_000;

function assertListable({ id }: DatasetSnapshot, { plan }: ServedArray): void {
  if (elementCount(plan.served.gridShape) <= MAX_LISTED_CHUNKS) return;
  const message = `Variable '${plan.path}' of dataset '${id}' has too many chunks to list`;
  throw new ZpublishError("not-found", message);
}

/** Throws for a chunk of an array that was served and is now refused: a client that knows the array would take 404 for fill values. */
function refuseLostChunk(snapshot: DatasetSnapshot, variablePath: string, chunkKey: string): void {
  if (!snapshot.withdrawn.has(variablePath) || !CHUNK_KEY.test(chunkKey)) return;
  const reason = snapshot.refused.find(({ path }) => path === variablePath)?.reason;
  throw new ZpublishError(
    "source-unreadable",
    `chunk '${chunkKey}' of '${variablePath}' in dataset '${snapshot.id}', which is refused: ${reason}`,
  );
}

function notFound(noun: string, path: string, { id }: DatasetSnapshot): ZpublishError {
  return new ZpublishError("not-found", `${noun} '${path}' not found in dataset '${id}'`);
}

/**
 * Visits a group and everything below it, parents first.
 * @param onGroup Gets each group with its path below the first one: empty for that one, `a/b/` for others.
 * @param onVariable Gets each variable with its path below the first group.
 */
export function* visitBelow(
  tree: DataTree,
  group: Group,
  onGroup: (member: Group, prefix: string) => void,
  onVariable: (variable: Variable, path: string) => void,
): CooperativeTask<void> {
  const below = group.path === "/" ? "/" : `${group.path}/`;
  for (const member of tree.groups.values()) {
    yield;
    if (member !== group && !member.path.startsWith(below)) continue;
    const prefix = member === group ? "" : `${member.path.slice(below.length)}/`;
    onGroup(member, prefix);
    for (const variable of member.variables.values()) {
      yield;
      onVariable(variable, `${prefix}${variable.name}`);
    }
  }
}
