import type { DatasetSnapshot } from "../dataset/dataset.js";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import type { DocumentPieces } from "../http/create-document.js";
import type { Document } from "../http/headers.js";
import type { DocumentReply } from "../http/reply.js";
import type { JsonValue } from "../json/json-value.js";
import { stringifyJsonPieces } from "../json/stringify-json.js";
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
