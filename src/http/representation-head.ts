import { EncodedHeaders, type HeaderContext } from "./headers/encoded-headers.js";
import { type HeaderLines, headerField } from "./headers/header-field.js";

/** Header values of one representation. */
export interface HeadFields {
  /** Strong, with its quotes. */
  readonly etag: string;
  readonly contentType: string;
  /** Default: the server's. */
  readonly cacheControl?: string | undefined;
  readonly contentEncoding?: string | undefined;
  /** Request headers, besides `Origin`, that the choice of this representation depends on. */
  readonly vary?: string;
  /** Whether the body contains the service's address, which a proxy's headers may have named. */
  readonly quotesAddress?: boolean | undefined;
  readonly headers?: HeaderLines | undefined;
}

/** Header lines of one representation, put together when first sent. */
export class RepresentationHead {
  /** Lines of 304. */
  readonly notModified: EncodedHeaders;
  /** Lines of 200 and 206. */
  readonly ok: EncodedHeaders;

  constructor(fields: HeadFields) {
    const { contentType, contentEncoding, vary = "" } = fields;
    this.notModified = new EncodedHeaders((context) => validatorLines(fields, context), vary);
    this.ok = new EncodedHeaders(
      (context) =>
        validatorLines(fields, context) +
        headerField("Content-Type", contentType) +
        (contentEncoding === undefined ? "" : headerField("Content-Encoding", contentEncoding)),
      vary,
    );
  }
}

function validatorLines(
  { etag, cacheControl, quotesAddress, headers = [] }: HeadFields,
  context: HeaderContext,
): string {
  const { access } = context;
  const asked = cacheControl ?? context.cacheControl;
  return (
    headerField("ETag", etag) +
    headerField(
      "Cache-Control",
      quotesAddress ? access.cacheControlOfAddress(asked) : access.cacheControlOf(asked),
    ) +
    headerField("Accept-Ranges", "bytes") +
    headers.map(([name, value]) => headerField(name, value)).join("")
  );
}
