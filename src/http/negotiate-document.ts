import type { ContentCoding, Document } from "./document.js";
import { negotiateCoding } from "./headers/negotiate.js";
import type { DocumentReply, RouteRequest } from "./reply.js";
import { RepresentationHead } from "./representation-head.js";
import type { Representation } from "./send-representation.js";

const ETAG_SUFFIXES = { identity: "", br: "-br", gzip: "-gz" } as const;
type Coding = ContentCoding | "identity";

/**
 * Chooses the coding of a document by the request's headers; a promise while it is compressed for the first time.
 * @param isRanged Whether the request asks for a part, whose offsets are those of the document as it is.
 */
export function negotiateDocument(
  request: Pick<RouteRequest, "header">,
  reply: DocumentReply,
  isRanged: boolean,
): Representation | Promise<Representation> {
  const { document } = reply;
  const coding = isRanged ? "identity" : negotiateCoding(request.header("accept-encoding"));
  if (coding === "identity") return variantOf(reply, coding, document.bytes);
  const choose = (encoded: Uint8Array | undefined) =>
    encoded === undefined ? variantOf(reply, "identity", document.bytes) : variantOf(reply, coding, encoded);
  const encoded = document.encodedNow(coding);
  return encoded === null ? document.encoded(coding).then(choose) : choose(encoded);
}

/** Variants of each document as they were sent last: a document is rarely sent with different headers. */
const variants = new WeakMap<
  Document,
  Map<Coding, Representation & Pick<DocumentReply, "cacheControl" | "quotesAddress" | "headers">>
>();

function variantOf(reply: DocumentReply, coding: Coding, bytes: Uint8Array): Representation {
  const { document, cacheControl, quotesAddress, headers } = reply;
  let ofDocument = variants.get(document);
  if (ofDocument === undefined) {
    ofDocument = new Map();
    variants.set(document, ofDocument);
  }
  const known = ofDocument.get(coding);
  if (
    known !== undefined &&
    known.cacheControl === cacheControl &&
    known.quotesAddress === quotesAddress &&
    known.headers === headers
  )
    return known;
  const { contentType } = document;
  const etagOf = (suffix: string) =>
    suffix === "" ? document.etag : `${document.etag.slice(0, -1)}${suffix}"`;
  const etag = etagOf(ETAG_SUFFIXES[coding]);
  const contentEncoding = coding === "identity" ? undefined : coding;
  const variant = {
    etag,
    // A client that saw the document uncompressed and asks again accepting compression means the same document.
    etags: Object.values(ETAG_SUFFIXES).map(etagOf),
    content: bytes,
    head: new RepresentationHead({
      etag,
      contentType,
      cacheControl,
      contentEncoding,
      quotesAddress,
      headers,
      vary: "Accept-Encoding",
    }),
    ...(cacheControl === undefined ? {} : { cacheControl }),
    ...(quotesAddress === undefined ? {} : { quotesAddress }),
    ...(headers === undefined ? {} : { headers }),
  };
  ofDocument.set(coding, variant);
  return variant;
}
