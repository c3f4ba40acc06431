import type { Exchange } from "./exchange.js";
import type { EncodedHeaders, PackedLines } from "./headers/encoded-headers.js";
import { headerField, joinVary } from "./headers/header-field.js";

/**
 * Writes status and headers of an answer.
 * @param fields Header lines, each with its line break before it.
 * @param vary Request headers that the answer depends on, besides `Origin`.
 */
export function writeHead(exchange: Exchange, status: string, fields: string, vary = ""): void {
  const { context, res } = exchange;
  const { access } = context;
  let more = fields + access.fields;
  const varies = joinVary(vary, access.vary);
  if (varies !== "") more += headerField("Vary", varies);
  if (context.draining) more += headerField("Connection", "close");
  if (exchange.isNamed) more += headerField("X-Request-Id", exchange.id);
  exchange.begin(status);
  // uWebSockets.js writes names and values as they are, so that one call into it writes all lines.
  res.writeHeader("X-Content-Type-Options", `nosniff${context.cors.fields(exchange.origin)}${more}`);
}

/** Writes status and headers that are sent often. @param more Lines of this answer only. */
export function writeEncodedHead(
  exchange: Exchange,
  status: string,
  fields: EncodedHeaders,
  more?: PackedLines,
): void {
  const { context, res } = exchange;
  const encoded = fields.encoded(context);
  if (encoded === undefined) {
    writeHead(exchange, status, fields.text(context) + (more?.text ?? ""), fields.vary);
    return;
  }
  exchange.begin(status);
  res.writeHeader("X-Content-Type-Options", encoded);
  if (more !== undefined) res.writeHeader(more.name, more.value);
  if (exchange.isNamed) res.writeHeader("X-Request-Id", exchange.id);
}
