import { createRequire } from "node:module";
import { messageOf, ZpublishError } from "../errors.js";

/*
 * The only file that loads libjpeg-turbo, compiled to WebAssembly. Measured of version 1.2.8:
 *
 * - Its pixels are those of GDAL with libjpeg-turbo, bit by bit: grey, RGB and YCbCr of any subsampling. jpeg-js 0.4.4 differs by 1 in
 *   one of sixty grey pixels, and by up to 70 where colours are subsampled.
 * - It throws numbers, which are addresses of C++ exceptions and leak, for damaged or short streams.
 * - Dimensions that its memory cannot hold end in a trap, after which every call fails. They are checked before.
 */

/** Name of the package, which is optional. */
export const JPEG_PACKAGE = "@cornerstonejs/codec-libjpeg-turbo-8bit";

interface JpegDecoder {
  /** Memory for the stream. */
  getEncodedBuffer(byteLength: number): Uint8Array;
  decode(): void;
  /** A view of the decoder's memory. */
  getDecodedBuffer(): Uint8Array;
  delete(): void;
}

interface JpegModule {
  readonly JPEGDecoder: new () => JpegDecoder;
}

type CreateModule = (options: object) => Promise<JpegModule>;

/** Refusals after which the module is loaded again, since each leaks. */
const MAX_REFUSALS = 500;

const require = createRequire(import.meta.url);
let loading: Promise<JpegModule> | undefined;
let refusals = 0;

/** Whether the package is installed. */
export function hasJpeg(): boolean {
  try {
    require.resolve(`${JPEG_PACKAGE}/decodewasmjs`);
    return true;
  } catch {
    return false;
  }
}

/**
 * Decodes a stream whose dimensions were checked.
 * @returns Pixels, which own their buffer.
 * @throws ZpublishError `corrupt-chunk` if it is damaged, `codec-failed`.
 */
export async function runJpeg(stream: Uint8Array): Promise<Uint8Array> {
  const module = await loadModule();
  try {
    const decoder = new module.JPEGDecoder();
    try {
      decoder.getEncodedBuffer(stream.length).set(stream);
      decoder.decode();
      return Uint8Array.from(decoder.getDecodedBuffer());
    } finally {
      decoder.delete();
    }
  } catch (error) {
    const isRefusal = typeof error === "number";
    if (!isRefusal || ++refusals >= MAX_REFUSALS) {
      loading = undefined;
      refusals = 0;
    }
    throw isRefusal
      ? new ZpublishError("corrupt-chunk", "jpeg: the stream is damaged or incomplete")
      : new ZpublishError("codec-failed", `jpeg: ${messageOf(error)}`, { cause: error });
  }
}

async function loadModule(): Promise<JpegModule> {
  loading ??= load();
  try {
    return await loading;
  } catch (error) {
    loading = undefined;
    throw new ZpublishError(
      "codec-failed",
      `jpeg: expected the package ${JPEG_PACKAGE}: ${messageOf(error)}`,
      {
        cause: error,
      },
    );
  }
}

async function load(): Promise<JpegModule> {
  const create = require(`${JPEG_PACKAGE}/decodewasmjs`) as CreateModule;
  const silent = () => undefined;
  return create({
    locateFile: () => require.resolve(`${JPEG_PACKAGE}/decodewasm`),
    print: silent,
    printErr: silent,
  });
}
