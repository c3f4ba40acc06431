import type { DatasetSnapshot } from "../dataset/dataset.js";
import type { DocumentPieces } from "../http/create-document.js";
import type { Document } from "../http/document.js";
import type { DocumentReply } from "../http/reply.js";
import type { JsonValue } from "../model/json-value.js";
import { stringifyJsonPieces } from "../model/stringify-json.js";
import type { Steps } from "../sliced-work.js";
import type { PluginContext } from "./plugin.js";

/** The reply with a document about a snapshot, made once per key; see {@link PluginContext.document}. */
export function documentReply(
  context: PluginContext,
  snapshot: DatasetSnapshot,
  key: string,
  contentType: string,
  pieces: () => DocumentPieces,
): DocumentReply | Promise<DocumentReply> {
  const { datasets } = context;
  const reply = (document: Document): DocumentReply => ({
    kind: "document",
    document,
    cacheControl: snapshot.cacheControl,
    isCurrent: () => datasets.isCurrent(snapshot),
  });
  const made = context.document(snapshot, key, contentType, pieces);
  return made instanceof Promise ? made.then(reply) : reply(made);
}

/** The same with a JSON document. @param content What is at hand, or takes no time to make. */
export function jsonReply(
  context: PluginContext,
  snapshot: DatasetSnapshot,
  key: string,
  content: () => JsonValue,
): DocumentReply | Promise<DocumentReply> {
  return documentReply(context, snapshot, key, JSON_TYPE, () => stringifyJsonPieces(content()));
}

/** The same with a JSON document whose content grows with a dataset. */
export function largeJsonReply(
  context: PluginContext,
  snapshot: DatasetSnapshot,
  key: string,
  content: () => Steps<JsonValue>,
): DocumentReply | Promise<DocumentReply> {
  return documentReply(context, snapshot, key, JSON_TYPE, () => jsonPieces(content()));
}

const JSON_TYPE = "application/json";

function* jsonPieces(content: Steps<JsonValue>): Generator<string | undefined, void, undefined> {
  yield* stringifyJsonPieces(yield* content);
}
