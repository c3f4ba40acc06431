import { type ByteBoundedMap, createByteBoundedMap } from "../../collections/byte-bounded-map.js";
import { type IdSelection, selectIds } from "../../dataset/id-page.js";
import { queryToken } from "../../http/handle-request.js";
import type { Document } from "../../http/headers.js";
import type { DocumentReply, RouteRequest } from "../../http/reply.js";
import type { QueryParameter, Route } from "../../http/router.js";
import { stringifyJsonPieces } from "../../json/stringify-json.js";
import type { PluginContext } from "../plugin.js";
import { readInteger, readQuery } from "../read-query.js";
import { NAMES_SCHEMA } from "./json-schemas.js";

const JSON_TYPE = "application/json";
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

function createKeptPages(): ByteBoundedMap<DocumentReply> {
  // The whole list is kept elsewhere, as long as the list itself.
  return createByteBoundedMap({ ...KEPT_PAGES, byteLengthOf: ({ document }) => document.bytes.byteLength });
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
