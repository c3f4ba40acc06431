import { createRequire } from "node:module";
import { messageOf, ZpublishError } from "../../errors.js";
import { type Codec, corrupt } from "../codec.js";

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
async function runJpeg(stream: Uint8Array): Promise<Uint8Array> {
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

/** Options of `jpeg`, as its rule describes them. */
interface JpegOptions {
  readonly width: number;
  readonly components: number;
  readonly isYcbcr: boolean;
  /** Base64. */
  readonly tables: string;
}

/** Markers (ITU-T T.81, table B.1). */
const START = 0xd8;
const END = 0xd9;
const SCAN = 0xda;
const COMMENT = 0xfe;
/** Baseline, extended and progressive frames. */
const FRAMES: ReadonlySet<number> = new Set([0xc0, 0xc1, 0xc2]);

/**
 * JPEG as TIFF has it (TIFF Technical Note 2): each chunk is a stream that may lack the tables, which all chunks share. Pixels with
 * their components, in the colours of the stream or converted from YCbCr to RGB.
 */
export const jpeg: Codec = {
  decode(bytes, step) {
    const options = step.codec as unknown as JpegOptions;
    const { width, components } = options;
    const length = step.decodedByteLength ?? -1;
    const { head, frame, scanAt } = readStream(bytes);
    if (frame.precision !== 8 || frame.width !== width || frame.components !== components) {
      const { precision } = frame;
      throw corrupt(
        `jpeg: expected ${width} pixels of ${components} × 8 bits, received ${frame.width} of ${frame.components} × ${precision}`,
      );
    }
    if (frame.height * width * components !== length) {
      throw corrupt(`jpeg: expected ${length / width / components} rows, received ${frame.height}`);
    }
    const tables = options.tables === "" ? [] : segmentsOf(Buffer.from(options.tables, "base64")).segments;
    const stream = Buffer.concat([
      Uint8Array.of(0xff, START),
      ...(components === 3 ? [colourSegment(options.isYcbcr)] : []),
      ...tables,
      ...head,
      bytes.subarray(scanAt),
    ]);
    return runJpeg(stream);
  },
};

/** What precedes the first scan of a stream, without what applications wrote, and the frame's dimensions. */
function readStream(bytes: Uint8Array) {
  const { segments, end } = segmentsOf(bytes);
  const frames = segments.filter((segment) => FRAMES.has(segment[1]!));
  const frame = frames[0];
  if (frames.length !== 1 || frame === undefined || frame.length < 10 || bytes[end + 1] !== SCAN) {
    throw corrupt("jpeg: expected one baseline or progressive frame and a scan");
  }
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  return {
    head: segments,
    frame: {
      precision: view.getUint8(4),
      height: view.getUint16(5),
      width: view.getUint16(7),
      components: view.getUint8(9),
    },
    scanAt: end,
  };
}

/**
 * Takes a stream apart up to its first scan or its end.
 * @returns Segments with their markers, without those of applications and comments, and where they end.
 * @throws ZpublishError `corrupt-chunk`
 */
function segmentsOf(bytes: Uint8Array): { readonly segments: Uint8Array[]; readonly end: number } {
  if (bytes[0] !== 0xff || bytes[1] !== START) throw corrupt("jpeg: expected a stream that begins with FFD8");
  const segments: Uint8Array[] = [];
  let at = 2;
  for (;;) {
    // Any number of fill bytes may precede a marker.
    while (bytes[at] === 0xff && bytes[at + 1] === 0xff) at++;
    const marker = bytes[at + 1];
    if (bytes[at] !== 0xff || marker === undefined) throw corrupt(`jpeg: expected a marker at ${at}`);
    if (marker === SCAN || marker === END) return { segments, end: at };
    const end = at + 2 + 256 * (bytes[at + 2] ?? 0) + (bytes[at + 3] ?? 0);
    if (end < at + 4 || end > bytes.length) throw corrupt(`jpeg: expected a segment at ${at}`);
    const isApplication = (marker & 0xf0) === 0xe0 || marker === COMMENT;
    if (!isApplication) segments.push(bytes.subarray(at, end));
    at = end;
  }
}

/** Adobe's segment, by which decoders know the colours: TIFF says them in its own tag instead. */
function colourSegment(isYcbcr: boolean): Uint8Array {
  return Uint8Array.of(0xff, 0xee, 0, 14, 0x41, 0x64, 0x6f, 0x62, 0x65, 0, 100, 0, 0, 0, 0, isYcbcr ? 1 : 0);
}
