import { ZpublishError } from "../errors.js";
import { allowsRange, matchIfMatch, matchIfNoneMatch } from "./conditional.js";
import type { Exchange, ExchangeContext } from "./exchange.js";
import { headerField } from "./header-field.js";
import { KeptFields, type KeptLine, keepLine } from "./kept-fields.js";
import { parseRange, type RangeRequest, resolveRange } from "./range.js";
import type { Body, BodyReply } from "./reply.js";
import { rangeNotSatisfiable } from "./send-error.js";

/** How often a body that is gone as soon as it is there is opened again. */
const MAX_OPENS = 3;
/** What a body is taken to need of whose size nothing is said: a chunk as is usual. */
const EXPECTED_BYTES = 2 ** 20;

/**
 * Answers with a body. What the request's conditions say is decided before it is made.
 * @throws ZpublishError what the conditions say, or what opening the body threw
 */
export function deliverBody(exchange: Exchange, reply: BodyReply): void | Promise<void> {
  // In the order of RFC 9110 §13.2.2. `*` asks whether there is anything, which only looking can tell.
  const ifMatch = exchange.header("if-match");
  if (ifMatch !== undefined && matchIfMatch(ifMatch, [reply.etag]) === "no-match") {
    throw new ZpublishError("precondition-failed", "The chunk is not the one that If-Match names");
  }
  const ifNoneMatch = exchange.header("if-none-match");
  const noneMatch = ifNoneMatch === undefined ? "no-match" : matchIfNoneMatch(ifNoneMatch, reply.etag);
  if (noneMatch === "match") {
    sendNotModified(exchange, reply);
    return;
  }
  if (noneMatch === "any") {
    return measure(exchange, reply).then(() => exchange.cork(() => sendNotModified(exchange, reply)));
  }
  if (exchange.method === "HEAD") return deliverHead(exchange, reply);
  const range = rangeOf(exchange, reply.etag);
  const body = reply.atHand?.();
  if (body !== undefined && sendBody(exchange, reply, body, range)) return;
  return deliverWhole(exchange, reply, range);
}

function rangeOf(exchange: Exchange, etag: string): RangeRequest | undefined {
  const header = exchange.header("range");
  if (header === undefined) return undefined;
  const ifRange = exchange.header("if-range");
  return ifRange === undefined || allowsRange(ifRange, etag) ? parseRange(header) : undefined;
}

async function deliverWhole(
  exchange: Exchange,
  reply: BodyReply,
  range: RangeRequest | undefined,
): Promise<void> {
  const room = exchange.context.load.room(exchange, reply.expectedByteLength ?? EXPECTED_BYTES);
  if (room !== undefined) await room;
  for (let opens = 1; !exchange.over; opens += 1) {
    const body = await reply.open(() => !exchange.over);
    exchange.hold(body);
    if (exchange.over || sendBody(exchange, reply, body, range)) return;
    if (opens >= MAX_OPENS) {
      throw new ZpublishError(
        "internal",
        `The body was gone ${MAX_OPENS} times in a row before it could be sent`,
      );
    }
  }
}

/** Writes head and body; false where the body is gone already, and nothing is written. */
function sendBody(
  exchange: Exchange,
  reply: BodyReply,
  body: Body,
  range: RangeRequest | undefined,
): boolean {
  const part = partOf(body, range);
  const first = body.read(part.start);
  if (first === undefined || (first.byteLength === 0 && part.byteLength > 0)) return false;
  // In the turn in which it was read: the view may be dead in the next.
  exchange.cork(() => {
    exchange.bodyHeaders = body.headers;
    writeBodyHead(exchange, reply, body, range === undefined ? undefined : part);
    const reopen = () => reply.open(() => !exchange.over);
    const { start, byteLength } = part;
    exchange.context.sender.send({ exchange, body, start, byteLength, reopen }, first);
  });
  return true;
}

async function deliverHead(exchange: Exchange, reply: BodyReply): Promise<void> {
  const { byteLength, headers } = await measure(exchange, reply);
  exchange.cork(() => {
    exchange.writeKeptHead("200 OK", headOf(exchange, reply).fields, lineOf(headers));
    exchange.endHead(byteLength);
  });
}

/** How long the body is, without making it where that is possible. */
async function measure(exchange: Exchange, reply: BodyReply): Promise<Pick<Body, "byteLength" | "headers">> {
  const byteLength = await reply.byteLength?.();
  if (byteLength !== undefined) return { byteLength, headers: reply.headers?.() ?? [] };
  const body = reply.atHand?.() ?? (await reply.open(() => !exchange.over));
  body.release?.();
  return body;
}

/** What is sent of a body. */
interface BodyPart {
  readonly start: number;
  readonly byteLength: number;
}

function partOf(body: Body, range: RangeRequest | undefined): BodyPart {
  if (range === undefined) return { start: 0, byteLength: body.byteLength };
  const part = resolveRange(range, body.byteLength);
  if (part === undefined) throw rangeNotSatisfiable(body.byteLength);
  return part;
}

function sendNotModified(exchange: Exchange, reply: BodyReply): void {
  exchange.writeKeptHead("304 Not Modified", headOf(exchange, reply).validators);
  exchange.endBodiless();
}

/** Header lines of a reply that do not depend on its body. There may be thousands: each is made when it is needed. */
class BodyHead {
  /** For which site they are. */
  readonly context: ExchangeContext;
  readonly #reply: BodyReply;
  #validators: KeptFields | undefined;
  #fields: KeptFields | undefined;

  constructor(reply: BodyReply, context: ExchangeContext) {
    this.#reply = reply;
    this.context = context;
  }

  /** Of 304. */
  get validators(): KeptFields {
    this.#validators ??= new KeptFields(() => this.#validatorLines());
    return this.#validators;
  }

  /** Of 200 and 206. */
  get fields(): KeptFields {
    this.#fields ??= new KeptFields(
      () => this.#validatorLines() + headerField("Content-Type", this.#reply.contentType),
    );
    return this.#fields;
  }

  #validatorLines(): string {
    const { edge, cacheControl: ofSite } = this.context;
    const { etag, cacheControl = ofSite } = this.#reply;
    return (
      headerField("ETag", etag) +
      headerField("Cache-Control", edge.cacheControlOf(cacheControl)) +
      headerField("Accept-Ranges", "bytes")
    );
  }
}

/** Of replies that are given more than once. */
const heads = new WeakMap<BodyReply, BodyHead>();

function headOf({ context, isRepeated }: Exchange, reply: BodyReply): BodyHead {
  const known = heads.get(reply);
  if (known?.context === context) return known;
  const head = new BodyHead(reply, context);
  if (isRepeated) heads.set(reply, head);
  return head;
}

/** By frozen lists of headers: those are worth remembering. */
const lines = new WeakMap<Body["headers"], KeptLine>();

function lineOf(headers: Body["headers"]): KeptLine | undefined {
  const known = lines.get(headers);
  if (known !== undefined) return known;
  const line = keepLine(headers);
  if (line !== undefined && Object.isFrozen(headers)) lines.set(headers, line);
  return line;
}

function writeBodyHead(exchange: Exchange, reply: BodyReply, body: Body, part: BodyPart | undefined): void {
  const { fields } = headOf(exchange, reply);
  const line = lineOf(body.headers);
  if (part === undefined) {
    exchange.writeKeptHead("200 OK", fields, line);
    return;
  }
  const { start, byteLength } = part;
  const contentRange = `bytes ${start}-${start + byteLength - 1}/${body.byteLength}`;
  const more = (line?.text ?? "") + headerField("Content-Range", contentRange);
  exchange.writeHead("206 Partial Content", fields.text() + more);
}
