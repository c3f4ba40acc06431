import { createBoundedMap } from "../collections/bounded-map.js";
import type { DatasetView } from "../dataset/dataset.js";
import { type CooperativeTask, startCooperatively } from "../event-loop/cooperative-task.js";
import { memoPromise } from "../event-loop/joined.js";
import type { MaybePromise } from "../event-loop/maybe-promise.js";
import { type DocumentPieces, documentSteps } from "../http/create-document.js";
import type { Document, DocumentReply, Reply, RouteRequest } from "../http/reply.js";
import type { JsonValue } from "../json/json-value.js";
import { stringifyJsonPieces } from "../json/stringify-json.js";
import type { MapPicture } from "../maps/maps.js";
import type { PluginContext } from "./plugin.js";

/**
 * Replies with a document about a group or an array, made once per snapshot; see {@link PluginContext.document}.
 * @param name Name of the document, the same for all paths.
 * @param path The group or array.
 */
export function documentReply(
  context: PluginContext,
  snapshot: DatasetView,
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

/**
 * As {@link documentReply}, with a JSON document.
 * @param content Makes the content, or a generator that returns it and yields now and then, so that other requests are answered
 * meanwhile.
 */
export function jsonReply(
  context: PluginContext,
  snapshot: DatasetView,
  name: string,
  path: string,
  content: () => JsonValue | CooperativeTask<JsonValue>,
): DocumentReply | Promise<DocumentReply> {
  return documentReply(context, snapshot, name, path, "application/json", () => jsonPieces(content()));
}

/** Pictures of a snapshot that are remembered: one takes about a kilobyte, and its address. */
const MAX_PICTURES = 1_024;
/** Characters of addresses of pictures that are remembered. */
const MAX_ADDRESS = 1_024;

/**
 * Replies with the picture of a dataset that was made for the same address, if it is still the same; else with `make()`, which is remembered
 * if it is a picture.
 */
export function pictureReply(
  { memo, datasets }: Pick<PluginContext, "memo" | "datasets">,
  { params, rawPath, query }: RouteRequest,
  make: () => Promise<Reply | MapPicture>,
): MaybePromise<Reply> {
  const pictures = memo(datasets.get(params.dataset_id!), "replies of maps", () =>
    createBoundedMap<MapPicture>({ maxEntries: MAX_PICTURES }),
  );
  const address = `${rawPath}?${query}`;
  const known = pictures.get(address);
  if (known?.isCurrent()) return known;
  return make().then((reply) => {
    if ("isCurrent" in reply && address.length <= MAX_ADDRESS) pictures.set(address, reply);
    return reply;
  });
}

const XML_ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

/** Writes a text in XML, as content or in double quotes, without the characters that XML 1.0 does not have. */
export function xmlText(text: string): string {
  // A thousand layers have twenty thousand texts, nearly all of them plain.
  if (/^[ !#-%'-;=?-~]*$/.test(text)) return text;
  return text
    .replace(/[&<>"]/g, (character) => XML_ENTITIES[character]!)
    .replace(/[^\t\n\r -\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "");
}

/** Returns the promise of `make()`, made once per snapshot and key. A failure is not kept. */
export async function keepPromise<T>(
  { memo }: Pick<PluginContext, "memo">,
  snapshot: DatasetView,
  key: string,
  make: () => Promise<T>,
): Promise<T> {
  return memo(snapshot, key, memoPromise<T>)(make);
}

function* jsonPieces(
  content: JsonValue | CooperativeTask<JsonValue>,
): Generator<string | undefined, void, undefined> {
  yield* stringifyJsonPieces(isTask(content) ? yield* content : content);
}

function isTask(content: JsonValue | CooperativeTask<JsonValue>): content is CooperativeTask<JsonValue> {
  return typeof (content as Partial<CooperativeTask<JsonValue>> | null)?.next === "function";
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
