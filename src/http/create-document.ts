import { createHash, type Hash } from "node:crypto";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import { memoPromise } from "../event-loop/joined.js";
import type { ContentCoding, Document } from "./reply.js";

/** A document of at most so many bytes fits a packet or two anyhow, and is never compressed. */
const MIN_COMPRESSED_BYTES = 1024;

// Quality 5 is where brotli overtakes gzip in size at about gzip's cost; 11, its default, takes a hundred times as long.
const BROTLI_QUALITY = 5;
const GZIP_LEVEL = 6;

const brotliAsync = promisify(brotliCompress);
const gzipAsync = promisify(gzip);

// The asynchronous forms run in libuv's pool: the loop that answers requests is never held up.
const ENCODERS: Readonly<Record<ContentCoding, (bytes: Uint8Array) => Promise<Uint8Array>>> = {
  br: (bytes) =>
    brotliAsync(bytes, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
        [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
        [constants.BROTLI_PARAM_SIZE_HINT]: bytes.byteLength,
      },
    }),
  gzip: (bytes) => gzipAsync(bytes, { level: GZIP_LEVEL }),
};

/**
 * Makes a document of bytes or text.
 * @param content Text becomes UTF-8. Bytes are not copied: they belong to the document from now on.
 */
export function createDocument(content: Uint8Array | string, contentType: string): Document {
  const bytes = typeof content === "string" ? Buffer.from(content, "utf8") : content;
  return documentOf(bytes, contentType, beginEtag(contentType).update(bytes));
}

/** Characters that are encoded and hashed at a time. */
const BLOCK_CHARS = 64 * 1024;

/** The text of a document in pieces, none of which ends within a character; undefined where there is none yet. */
export type DocumentPieces = Iterable<string | undefined>;

/** {@link createDocument} of a text that is long, or takes long to make, as work that can be interrupted. */
export function* documentSteps(pieces: DocumentPieces, contentType: string): CooperativeTask<Document> {
  const hash = beginEtag(contentType);
  const blocks: Buffer[] = [];
  let byteLength = 0;
  let text = "";
  const endBlock = () => {
    const block = Buffer.from(text, "utf8");
    hash.update(block);
    blocks.push(block);
    byteLength += block.length;
    text = "";
  };
  for (const piece of pieces) {
    if (piece !== undefined) text += piece;
    if (text.length >= BLOCK_CHARS) endBlock();
    yield;
  }
  endBlock();
  return documentOf(yield* joinSteps(blocks, byteLength), contentType, hash);
}

function* joinSteps(blocks: readonly Buffer[], byteLength: number): CooperativeTask<Uint8Array> {
  if (blocks.length === 1) return blocks[0] as Buffer;
  const bytes = Buffer.allocUnsafeSlow(byteLength);
  let offset = 0;
  for (const block of blocks) {
    offset += block.copy(bytes, offset);
    yield;
  }
  return bytes;
}

function documentOf(bytes: Uint8Array, contentType: string, hash: Hash): Document {
  const isWorthwhile = bytes.byteLength > MIN_COMPRESSED_BYTES;
  const forms = { br: memoPromise<Uint8Array | undefined>(), gzip: memoPromise<Uint8Array | undefined>() };

  async function encode(coding: ContentCoding): Promise<Uint8Array | undefined> {
    // A failure is out of memory, say. The document can always be sent as it is.
    const encoded = await ENCODERS[coding](bytes).catch(() => undefined);
    return encoded !== undefined && encoded.byteLength < bytes.byteLength ? encoded : undefined;
  }

  return Object.freeze({
    contentType,
    bytes,
    etag: endEtag(hash),
    encoded: (coding: ContentCoding) => (isWorthwhile ? forms[coding](() => encode(coding)) : undefined),
  });
}

/** The content follows. */
function beginEtag(contentType: string): Hash {
  return createHash("sha256").update(contentType).update("\0");
}

/** 128 bits of a hash: enough that no two states of a document share one. */
function endEtag(hash: Hash): string {
  return `"${hash.digest().toString("base64url", 0, 16)}"`;
}
