import { registry } from "zarrita";
import { corrupt } from "../../../codec/codec.js";
import { decodeLz4Block } from "../../../codec/plain/block-decoders.js";
import { unshuffleBytes } from "../../../codec/plain/shuffles.js";
import { decodeBloscFrame, decodeZstd, inflateStream } from "./decoders.js";

/** Name of the option that tells a decoder how many bytes it decodes to; set by `readable-document.ts`, absent if unknown. */
export const DECODED_BYTES = "zpublish:decoded-bytes";

/** Bound of decoded chunks whose length is unknown (texts), and of any chunk: browsers allocate little more at a time. */
export const MAX_CHUNK_BYTES = 2 ** 31 - 1;

type Options = Readonly<Record<string, unknown>>;

type Decode = (
  bytes: Uint8Array,
  options: Options,
  byteLength: number | undefined,
) => Uint8Array | Promise<Uint8Array>;

/** Codecs of numcodecs that decode bytes to bytes. They return bytes that begin with their buffer, which zarrita relies on. */
const DECODERS: Readonly<Record<string, Decode>> = Object.freeze({
  blosc: (bytes, _options, byteLength) => decodeBloscFrame(bytes, byteLength ?? MAX_CHUNK_BYTES),
  zstd: (bytes, _options, byteLength) => decodeZstd(bytes, byteLength, MAX_CHUNK_BYTES),
  lz4: decodeLz4,
  gzip: (bytes, _options, byteLength) => inflateStream(bytes, "gzip", byteLength ?? MAX_CHUNK_BYTES),
  zlib: (bytes, _options, byteLength) => inflateStream(bytes, "deflate", byteLength ?? MAX_CHUNK_BYTES),
  shuffle: (bytes, { elementsize = 4 }) => {
    const size = Number(elementsize);
    if (size <= 1) return bytes;
    const target = new Uint8Array(bytes.length);
    unshuffleBytes(bytes, target, size);
    return target;
  },
  // Both only dropped bits when they encoded.
  bitround: (bytes) => bytes,
  quantize: (bytes) => bytes,
});

/** Tells whether chunks of a codec of numcodecs can be decoded in a browser. */
export function isReadableCodec(id: string): boolean {
  return Object.hasOwn(DECODERS, id) || ARRAY_CODECS.has(id);
}

/** Codecs of arrays that zarrita has, or that {@link registerCodecs} adds. */
const ARRAY_CODECS = new Set("delta fixedscaleoffset vlen-utf8 vlen-bytes json2".split(" "));

/**
 * Replaces zarrita's codecs, which are looked up as `numcodecs.<id>` for Zarr v2, by those that run without WebAssembly: numcodecs.js
 * calls `new Function`, which a strict policy forbids.
 */
export function registerCodecs(): void {
  for (const [id, decode] of Object.entries(DECODERS)) {
    registry.set(`numcodecs.${id}`, async () => ({
      fromConfig: (options: unknown) => bytesCodec(id, decode, options as Options),
    }));
  }
  for (const id of ["vlen-utf8", "vlen-bytes"]) {
    registry.set(`numcodecs.${id}`, async () => ({
      fromConfig: (_options, { shape }) => ({
        kind: "array_to_bytes",
        encode,
        decode: (bytes: Uint8Array) => ({ data: decodeTexts(bytes), shape: [...shape], stride: [] }) as never,
      }),
    }));
  }
}

function bytesCodec(id: string, decode: Decode, options: Options) {
  const announced = options[DECODED_BYTES];
  const byteLength = typeof announced === "number" ? announced : undefined;
  return {
    kind: "bytes_to_bytes" as const,
    encode,
    async decode(bytes: Uint8Array) {
      const decoded = await decode(bytes, options, byteLength);
      if (byteLength !== undefined && decoded.length !== byteLength)
        throw corrupt(`${id}: expected ${byteLength} bytes, received ${decoded.length}`);
      return decoded;
    },
  };
}

function encode(): never {
  throw new Error("chunks are only read");
}

/** Decodes LZ4 as numcodecs frames it: the decoded length in four bytes, then one block. */
function decodeLz4(bytes: Uint8Array, _options: unknown, byteLength = MAX_CHUNK_BYTES): Uint8Array {
  if (bytes.length < 4) throw corrupt(`lz4: expected at least 4 bytes, received ${bytes.length}`);
  const announced = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  // LZ4 makes at most 255 bytes of one.
  if (announced > byteLength || announced > bytes.length * 255)
    throw corrupt(`lz4: expected at most ${byteLength} bytes, received ${announced}`);
  const target = new Uint8Array(announced);
  if (!decodeLz4Block(bytes.subarray(4), target)) throw corrupt("lz4: the block is damaged");
  return target;
}

/** Decodes texts (or bytes, as UTF-8) behind their lengths: how many there are, then each behind its length. */
function decodeTexts(bytes: Uint8Array): string[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const decoder = new TextDecoder();
  const texts: string[] = [];
  const count = bytes.length < 4 ? -1 : view.getUint32(0, true);
  let position = 4;
  for (let index = 0; index < count; index++) {
    const end = position + 4 + (position + 4 > bytes.length ? bytes.length : view.getUint32(position, true));
    if (end > bytes.length) throw corrupt(`texts: expected ${count}, received ${index}`);
    texts.push(decoder.decode(bytes.subarray(position + 4, end)));
    position = end;
  }
  if (count < 0 || position !== bytes.length) throw corrupt("texts: the lengths do not add up");
  return texts;
}
