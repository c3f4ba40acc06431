import { pipeline, Readable, type Transform } from "node:stream";
import { constants, createBrotliCompress, createGzip } from "node:zlib";
import { answerAs, currentGrant } from "./access/grants.js";
import type {
  Body,
  BodyClient,
  BodyReply,
  ByteRange,
  ContentCoding,
  StreamReply,
  WantedPart,
} from "./reply.js";

/** Memory of a stream if its reply does not say it. */
const DEFAULT_HELD_BYTES = 4 * 2 ** 20;
const NOTHING = new Uint8Array();

/**
 * Opens the pieces of a stream as a body, which is opened again for each further piece. One piece is held at a time.
 * @param coding A body that is not sent as it is has no length.
 */
export function createStreamBody(
  reply: StreamReply,
  coding: ContentCoding | "identity",
): Pick<BodyReply, "open"> {
  const { heldByteLength = DEFAULT_HELD_BYTES } = reply;
  const byteLength = (coding === "identity" ? reply.byteLength : undefined) ?? Number.POSITIVE_INFINITY;
  // Further pieces are asked for by callbacks of the socket, which are outside of the request.
  const grant = currentGrant();
  let iterator: AsyncIterator<Uint8Array> | undefined;
  let piece: Uint8Array = NOTHING;
  /** Place of the piece in the body, and of the last byte that is sent. */
  let begin = 0;
  let end = 0;
  let hasEnded = false;
  let isReleased = false;
  const body: Body = {
    byteLength,
    get heldByteLength() {
      return Math.max(heldByteLength, piece.byteLength);
    },
    headers: [],
    read(offset) {
      const at = offset - begin;
      return at < piece.byteLength || hasEnded ? piece.subarray(at) : undefined;
    },
    release() {
      isReleased = true;
      // What makes the pieces stops. It may fail meanwhile: the request's signal has aborted.
      iterator?.return?.().catch(() => undefined);
    },
  };

  function start(client: BodyClient, { start, byteLength: wanted }: ByteRange): AsyncIterator<Uint8Array> {
    begin = start;
    end = start + wanted;
    const isWhole = start === 0 && wanted === byteLength;
    const pieces = answerAs(grant, () =>
      reply.pieces(isWhole ? undefined : { start, byteLength: wanted }, client),
    );
    return (coding === "identity" ? pieces : compressed(pieces, coding, reply))[Symbol.asyncIterator]();
  }

  /** Takes the next piece that has bytes. */
  async function advance(from: AsyncIterator<Uint8Array>): Promise<void> {
    begin += piece.byteLength;
    piece = NOTHING;
    while (piece.byteLength === 0 && !hasEnded) {
      const { done, value } = await answerAs(grant, () => from.next());
      if (done) hasEnded = true;
      else piece = value;
    }
    const got = begin + piece.byteLength;
    const isWrong = end !== Number.POSITIVE_INFINITY && (got > end || (hasEnded && got < end));
    if (isWrong && !isReleased)
      throw new Error(`Pieces of a body: expected bytes up to ${end}, received up to ${got}`);
  }

  return {
    async open(client: BodyClient, wanted: WantedPart): Promise<Body> {
      const part = wanted(byteLength);
      if (part.byteLength === 0) {
        hasEnded = true;
        return body;
      }
      if (iterator === undefined) {
        await client.reserve(heldByteLength);
        iterator = start(client, part);
      }
      await advance(iterator);
      return body;
    },
  };
}

/** Compresses pieces as they come. Fast rather than small: a client waits for what is made. */
function compressed(
  pieces: AsyncIterable<Uint8Array>,
  coding: ContentCoding,
  { byteLength }: StreamReply,
): AsyncIterable<Uint8Array> {
  const chunkSize = 64 * 1024;
  const encoder: Transform =
    coding === "br"
      ? createBrotliCompress({ chunkSize, params: { [constants.BROTLI_PARAM_QUALITY]: 1 } })
      : createGzip({ chunkSize, level: 1 });
  // An error of the pieces is thrown by the encoder, and what ends the encoder ends the pieces.
  return pipeline(Readable.from(copied(pieces, byteLength)), encoder, () => undefined);
}

/**
 * Copies pieces: the encoder has not read them all when the next one is asked for.
 * @throws if there are fewer or more bytes than expected
 */
async function* copied(
  pieces: AsyncIterable<Uint8Array>,
  expected: number | undefined,
): AsyncGenerator<Uint8Array> {
  let length = 0;
  for await (const piece of pieces) {
    length += piece.byteLength;
    yield Uint8Array.from(piece);
  }
  if (length !== (expected ?? length))
    throw new Error(`Pieces of a body: expected ${expected} bytes, received ${length}`);
}
