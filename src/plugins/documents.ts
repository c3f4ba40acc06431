import type { DatasetSnapshot, OverviewLevels } from "../dataset/dataset.js";
import { type Grid, listGrids, regularAxis } from "../dataset/overviews/level-grids.js";
import { geoMetadata, omeMultiscales, type RegularAxes } from "../dataset/overviews/level-metadata.js";
import { type CooperativeTask, startCooperatively } from "../event-loop/cooperative-task.js";
import { memoPromise } from "../event-loop/joined.js";
import { type DocumentPieces, documentSteps } from "../http/create-document.js";
import type { Document } from "../http/headers.js";
import type { DocumentReply } from "../http/reply.js";
import type { JsonObject, JsonValue } from "../json/json-value.js";
import { stringifyJsonPieces } from "../json/stringify-json.js";
import type { Group, Variable } from "../model/data-tree.js";
import type { PluginContext } from "./plugin.js";

/**
 * Replies with a document about a group or an array, made once per snapshot; see {@link PluginContext.document}.
 * @param name Name of the document, the same for all paths.
 * @param path The group or array.
 */
export function documentReply(
  context: PluginContext,
  snapshot: DatasetSnapshot,
  name: string,
  path: string,
  contentType: string,
  pieces: () => DocumentPieces,
): DocumentReply | Promise<DocumentReply> {
  // Two look-ups by existing strings: building one key costs more than the rest of the request.
  const replies = context.memo(snapshot, name, () => new Map<string, DocumentReply>());
  const known = replies.get(path);
  if (known !== undefined) return known;
  const reply = (document: Document): DocumentReply => {
    const made: DocumentReply = { kind: "document", document, cacheControl: snapshot.cacheControl };
    replies.set(path, made);
    return made;
  };
  const made = context.document(snapshot, `${name} ${path}`, contentType, pieces);
  return made instanceof Promise ? made.then(reply) : reply(made);
}

/** As {@link documentReply}, with a JSON document. @param content Returns content that takes no time to make. */
export function jsonReply(
  context: PluginContext,
  snapshot: DatasetSnapshot,
  name: string,
  path: string,
  content: () => JsonValue,
): DocumentReply | Promise<DocumentReply> {
  return documentReply(context, snapshot, name, path, JSON_TYPE, () => stringifyJsonPieces(content()));
}

/** As {@link jsonReply}, if the content grows with a dataset. */
export function largeJsonReply(
  context: PluginContext,
  snapshot: DatasetSnapshot,
  name: string,
  path: string,
  content: () => CooperativeTask<JsonValue>,
): DocumentReply | Promise<DocumentReply> {
  return documentReply(context, snapshot, name, path, JSON_TYPE, () => jsonPieces(content()));
}

const JSON_TYPE = "application/json";

function* jsonPieces(content: CooperativeTask<JsonValue>): Generator<string | undefined, void, undefined> {
  yield* stringifyJsonPieces(yield* content);
}

/** Values and documents of snapshots, and of lists of ids, by key. What is no longer used releases them. */
export type SnapshotMemo = Pick<PluginContext, "memo" | "document">;

/** Creates an empty memo. */
export function createSnapshotMemo(): SnapshotMemo {
  const memos = new WeakMap<object, Map<string, unknown>>();

  function memo<T>(snapshot: object, key: string, value: () => T): T {
    let values = memos.get(snapshot);
    if (values === undefined) {
      values = new Map();
      memos.set(snapshot, values);
    }
    const known = values.get(key);
    if (known !== undefined || values.has(key)) return known as T;
    const made = value();
    values.set(key, made);
    return made;
  }

  return {
    memo,
    document(snapshot, key, contentType, pieces) {
      const made = memo(snapshot, `document ${key}`, memoPromise<Document>);
      return made(() => startCooperatively(documentSteps(pieces(), contentType)));
    },
  };
}

/** Version of the Zarr format. */
type ZarrFormat = 2 | 3;

/**
 * Calls a function with the attributes of a group as a store shows them: with the multiscale metadata, at the root of overviews. These
 * need the values of coordinates, which are read when they are first asked for.
 */
export function withGroupAttributes<R>(
  context: PluginContext,
  snapshot: DatasetSnapshot,
  group: Group,
  format: ZarrFormat,
  answer: (attrs: JsonObject) => R | Promise<R>,
): R | Promise<R> {
  if (snapshot.levels === undefined || group.path !== "/") return answer(group.attrs);
  const attrs = rootAttributes(context, snapshot, snapshot.levels, format);
  return attrs instanceof Promise ? attrs.then(answer) : answer(attrs);
}

function rootAttributes(
  context: PluginContext,
  snapshot: DatasetSnapshot,
  levels: OverviewLevels,
  format: ZarrFormat,
): JsonObject | Promise<JsonObject> {
  const name = `overview attributes ${format}`;
  // A failure is not kept: the source may be readable again at the next request.
  return context.memo(
    snapshot,
    name,
    memoPromise<JsonObject>,
  )(async () => {
    const grids = listGrids(levels.dataset.tree, levels.horizontal);
    const axes = await readAxes(context, levels, grids[0]);
    return format === 2 ? attributesOfV2(levels, grids, axes) : attributesOfV3(levels, grids, axes);
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
  context: PluginContext,
  { dataset }: OverviewLevels,
  grid: Grid | undefined,
): Promise<RegularAxes> {
  const read = async (coordinate: Variable | undefined) => {
    const array = coordinate && dataset.arrays.get(coordinate.path);
    const values = array && (await context.previews.numbers(array));
    return values && regularAxis(values);
  };
  const [y, x] = await Promise.all([read(grid?.yCoordinate), read(grid?.xCoordinate)]);
  return y && x && { y, x };
}
