import { createRecentMap } from "../recent-map.js";

/** As the options of the functions of `node:zlib` whose names end in `Sync`. */
export interface StreamRunOptions {
  /** Bytes of room at a time: with more than comes out, and be it one byte, there is one pass, and nothing is copied. */
  readonly chunkSize: number;
  /** Bytes that may come out, at most. */
  readonly maxOutputLength?: number;
}

/**
 * Sends bytes through a stream, from its beginning to its end.
 * @throws An error with zlib's own message, or with the code `ERR_BUFFER_TOO_LARGE`: more would come out than may.
 */
export type StreamRun = (bytes: Uint8Array, options: StreamRunOptions) => Uint8Array;

export interface StreamKind {
  /** Makes one of the streams of `node:zlib`. */
  readonly create: () => object;
  /** `Z_FINISH` or `ZSTD_e_end`: what comes is all. */
  readonly finish: number;
  /** Whether to reset it behind each end. Zstandard's encoder would lose its options; but is as new behind a frame. */
  readonly isReset: boolean;
  /**
   * Bytes of earlier input that a reset leaves where the stream may see them: behind a shorter input, zlib's encoder looks a few bytes
   * too far, and what it writes depends on them. Default 0.
   */
  readonly windowBytes?: number;
  /** The same by a stream of its own, for a Node.js whose streams are otherwise inside. */
  readonly runOnce: StreamRun;
}

/**
 * What is used of a stream besides what Node.js documents: its synchronous part, as minizlib (which npm unpacks with)
 * and pngjs do. The same in Node.js 20, 22 and 24.
 */
interface StreamInside {
  readonly _handle: {
    /** Fills `_writeState`, or calls `onerror`. */
    writeSync(
      flush: number,
      input: Uint8Array,
      inputStart: number,
      inputLength: number,
      output: Uint8Array,
      outputStart: number,
      outputLength: number,
    ): void;
    reset(): void;
    onerror: (message: string) => void;
  };
  /** Bytes of room that are left, and of input. */
  readonly _writeState: Uint32Array;
  close(): void;
}

/** A stream that is not reset keeps the memory it took for longer input only until that is done. */
const MAX_KEPT_INPUT_BYTES = 2 ** 17;

/**
 * A stream of `node:zlib` that one thread uses again and again, made with its first use. For two reasons:
 *
 * - A thread that ends (by `terminate`, without memory, with its process) between the two steps in which Node.js makes such a
 *   stream takes the process along: `Assertion failed: init_done_ && "close before init"`, in Node.js 20, 22 and 24. The functions
 *   that end in `Sync` make one with each call, and a thread may end in the midst of any chunk.
 * - Making one costs as much as encoding or decoding 500 bytes.
 *
 * Keeps at most about 3 MiB (Zstandard's encoder); zlib's encoder has 256 KiB. What comes out is what a new stream would give,
 * whatever went before.
 */
export function keepStream(kind: StreamKind): StreamRun {
  const { create, finish, isReset, windowBytes = 0, runOnce } = kind;
  let kept: StreamInside | undefined;
  /** So much of the window is not zero any more. */
  let usedBytes = 0;
  let failure: string | undefined;

  function open(): StreamInside | undefined {
    const stream: unknown = create();
    if (!isKnownInside(stream)) return undefined;
    // Node's own would destroy the stream.
    stream._handle.onerror = (message) => {
      failure = message;
    };
    return stream;
  }

  /** Fills it with zeros, as it is at first: some 0.1 ms. */
  function clearWindow(stream: StreamInside): void {
    writeAll(stream, new Uint8Array(windowBytes), finish, { chunkSize: windowBytes }, () => failure);
    stream._handle.reset();
    usedBytes = 0;
  }

  return (bytes, options) => {
    kept ??= open();
    if (kept === undefined) return runOnce(bytes, options);
    const stream = kept;
    failure = undefined;
    if (bytes.length < usedBytes) clearWindow(stream);
    usedBytes = Math.max(usedBytes, Math.min(bytes.length, windowBytes));
    let isAsNew = false;
    try {
      const written = writeAll(stream, bytes, finish, options, () => failure);
      isAsNew = isReset || bytes.length <= MAX_KEPT_INPUT_BYTES;
      return written;
    } finally {
      // After a failure a reset is not enough for Zstandard's decoder.
      if (!isAsNew) {
        kept = undefined;
        usedBytes = 0;
        stream.close();
      } else if (isReset) stream._handle.reset();
    }
  };
}

/**
 * One of each level that is asked for, as {@link keepStream}; those not asked for lately are forgotten.
 * @param limit At most so many.
 */
export function keepStreams(
  limit: number,
  kindOf: (level: number) => StreamKind,
): (level: number) => StreamRun {
  const byLevel = createRecentMap<StreamRun>(limit);
  return (level) => {
    const key = String(level);
    let run = byLevel.get(key);
    if (run === undefined) {
      run = keepStream(kindOf(level));
      byLevel.set(key, run);
    }
    return run;
  };
}

function writeAll(
  { _handle: handle, _writeState: state }: StreamInside,
  bytes: Uint8Array,
  finish: number,
  { chunkSize, maxOutputLength = Number.POSITIVE_INFINITY }: StreamRunOptions,
  failureOf: () => string | undefined,
): Uint8Array {
  const pieces: Uint8Array[] = [];
  let start = 0;
  let length = 0;
  for (;;) {
    // Of the plain class: V8 runs loops that meet a Buffer as well more slowly.
    const room = new Uint8Array(Buffer.allocUnsafeSlow(chunkSize).buffer);
    handle.writeSync(finish, bytes, start, bytes.length - start, room, 0, chunkSize);
    const failure = failureOf();
    if (failure !== undefined) throw new Error(failure);
    const [roomLeft, inputLeft] = state as unknown as [number, number];
    length += chunkSize - roomLeft;
    if (length > maxOutputLength) throw tooLarge(maxOutputLength);
    pieces.push(room.subarray(0, chunkSize - roomLeft));
    if (roomLeft > 0) break;
    start = bytes.length - inputLeft;
  }
  return pieces.length === 1 ? (pieces[0] as Uint8Array) : concatenate(pieces, length);
}

function concatenate(pieces: readonly Uint8Array[], length: number): Uint8Array {
  const whole = new Uint8Array(length);
  let end = 0;
  for (const piece of pieces) {
    whole.set(piece, end);
    end += piece.length;
  }
  return whole;
}

function tooLarge(maxOutputLength: number): Error {
  return Object.assign(new RangeError(`more than ${maxOutputLength} bytes`), {
    code: "ERR_BUFFER_TOO_LARGE",
  });
}

function isKnownInside(stream: unknown): stream is StreamInside {
  const { _handle: handle, _writeState: state } = stream as Partial<StreamInside>;
  return (
    typeof handle?.writeSync === "function" &&
    typeof handle.reset === "function" &&
    state instanceof Uint32Array &&
    state.length >= 2
  );
}
