import type { ExchangeContext } from "./exchange.js";
import { headerField } from "./header-field.js";
import { joinVary } from "./vary.js";

/** One header line or more, as one header whose value has the others behind it. */
export interface KeptLine {
  /** With the line break before each. */
  readonly text: string;
  readonly name: string;
  readonly value: Uint8Array;
}

/** Makes a {@link KeptLine} of headers; undefined where there are none. @throws ZpublishError as `headerField` does. */
export function keepLine(headers: readonly (readonly [name: string, value: string])[]): KeptLine | undefined {
  const first = headers[0];
  if (first === undefined) return undefined;
  let text = "";
  for (const [name, value] of headers) text += headerField(name, value);
  const name = first[0];
  return { text, name, value: Buffer.from(text.slice(`\r\n${name}: `.length), "latin1") };
}

/**
 * Header lines that are sent again and again: put together and encoded once, as uWebSockets.js would otherwise do for
 * every answer.
 */
export class KeptFields {
  /** Each line with its line break before it: put together again for the few answers that need it. */
  readonly text: () => string;
  /** What the answer depends on besides the origin. */
  readonly vary: string;
  #bytes: Uint8Array | undefined;
  #context: ExchangeContext | undefined;

  constructor(text: () => string, vary = "") {
    this.text = text;
    this.vary = vary;
  }

  /**
   * The value of the header `X-Content-Type-Options`, with all other lines behind it; undefined where they are not the
   * same in every answer: they depend on the origin, or the connection is to end.
   */
  encoded(context: ExchangeContext): Uint8Array | undefined {
    if (context.draining || context.cors.variesByOrigin) return undefined;
    if (this.#bytes === undefined || this.#context !== context) {
      const { cors, edge } = context;
      const varies = joinVary(this.vary, edge.vary);
      const vary = varies === "" ? "" : headerField("Vary", varies);
      const text = `nosniff${cors.fields(undefined)}${this.text()}${edge.fields}${vary}`;
      this.#bytes = Buffer.from(text, "latin1");
      this.#context = context;
    }
    return this.#bytes;
  }
}
