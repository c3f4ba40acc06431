import type { AccessRules } from "../access/access-rules.js";
import type { Cors } from "./cors.js";
import { type HeaderLines, headerField, joinVary } from "./header-field.js";

/** What the header lines of all answers of one app depend on. */
export interface HeaderContext {
  readonly cors: Cors;
  /** `Cache-Control` of replies without one. */
  readonly cacheControl: string;
  readonly access: AccessRules;
  /** Whether connections end with their current answer. */
  readonly draining: boolean;
}

/** Several header lines packed into one `writeHeader` call: the first name, and a value that contains the rest. */
export interface PackedLines {
  /** All lines, each with its line break before it. */
  readonly text: string;
  readonly name: string;
  readonly value: Uint8Array;
}

/** Lists of headers that are sent often: they are frozen, and so packed once. */
const packed = new WeakMap<HeaderLines, PackedLines>();

/** Packs a body's headers; undefined if there are none. @throws ZpublishError as `headerField` does. */
export function packLines(headers: HeaderLines): PackedLines | undefined {
  const known = packed.get(headers);
  if (known !== undefined) return known;
  const first = headers[0];
  if (first === undefined) return undefined;
  let text = "";
  for (const [name, value] of headers) text += headerField(name, value);
  const name = first[0];
  const lines = { text, name, value: Buffer.from(text.slice(`\r\n${name}: `.length), "latin1") };
  if (Object.isFrozen(headers)) packed.set(headers, lines);
  return lines;
}

/** Header lines that are sent again and again, encoded once. uWebSockets.js would otherwise encode them for every answer. */
export class EncodedHeaders {
  /** Returns all lines, each with its line break before it. */
  readonly text: (context: HeaderContext) => string;
  /** What the answer depends on besides the origin. */
  readonly vary: string;
  #bytes: Uint8Array | undefined;
  #context: HeaderContext | undefined;

  constructor(text: (context: HeaderContext) => string, vary = "") {
    this.text = text;
    this.vary = vary;
  }

  /**
   * The value of the header `X-Content-Type-Options`, with all other lines behind it; undefined if answers differ: they
   * depend on the origin, or the connection is to end.
   */
  encoded(context: HeaderContext): Uint8Array | undefined {
    if (context.draining || context.cors.variesByOrigin) return undefined;
    if (this.#bytes === undefined || this.#context !== context) {
      const { cors, access } = context;
      const varies = joinVary(this.vary, access.vary);
      const vary = varies === "" ? "" : headerField("Vary", varies);
      const text = `nosniff${cors.fields(undefined)}${this.text(context)}${access.fields}${vary}`;
      this.#bytes = Buffer.from(text, "latin1");
      this.#context = context;
    }
    return this.#bytes;
  }
}
