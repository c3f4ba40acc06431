import { messageOf, ZpublishError } from "../errors.js";

/*
 * The only file that loads numcodecs.js, whose Zstandard stands in for Node's below 22.15. Measured of version 0.3.2:
 *
 * - It is WebAssembly with one heap per thread of at most 2 GiB that grows and never shrinks; encoding 512 MiB works, 900 MB ends
 *   in a trap. A trap leaves the heap damaged: every later call fails or, worse, answers wrongly. So the module is loaded
 *   again after one.
 * - It leaks its input whenever it refuses it, and some of its stack: the 1,924th refusal of a small frame was a trap.
 */

interface NumcodecsCodec {
  encode(bytes: Uint8Array): Uint8Array | Promise<Uint8Array>;
  decode(bytes: Uint8Array): Uint8Array | Promise<Uint8Array>;
}

interface NumcodecsModule {
  readonly default: { fromConfig(config: object): NumcodecsCodec };
}

let loading: Promise<NumcodecsModule> | undefined;
let reloads = 0;
let leakedBytes = 0;
/** By the module that is loaded now. */
let refusals = 0;
const MAX_REFUSALS = 500;
const MAX_LEAKED_BYTES = 256 * 2 ** 20;

/**
 * Whether this thread's heap is damaged or has leaked much, or could not be loaded. Such a worker ends before its next
 * task, which is the only way to give the memory back.
 */
export function isNumcodecsWornOut(): boolean {
  return reloads > 0 || leakedBytes > MAX_LEAKED_BYTES;
}

/**
 * Runs the Zstandard of numcodecs.js.
 * @param config With the `level`, to encode.
 * @returns Bytes that own their buffer, outside the WebAssembly heap.
 * @throws Error with the library's message if it refuses the bytes; ZpublishError `codec-failed` if it broke.
 */
export async function runNumcodecsZstd(
  operation: "encode" | "decode",
  bytes: Uint8Array,
  config: object = {},
): Promise<Uint8Array> {
  const module = await loadModule();
  try {
    return await module.default.fromConfig(config)[operation](bytes);
  } catch (error) {
    leakedBytes += bytes.length;
    // Only what the codec itself says is an Error and nothing more; traps and aborts are of other classes.
    const isRefusal = error instanceof Error && error.constructor === Error;
    if (!isRefusal || ++refusals >= MAX_REFUSALS) {
      loading = undefined;
      refusals = 0;
      reloads++;
    }
    if (isRefusal) throw error;
    throw new ZpublishError(
      "codec-failed",
      `zstd: could not ${operation} ${bytes.length} bytes: ${messageOf(error)}`,
      { cause: error },
    );
  }
}

/**
 * Loads the codec before it is needed. Node.js 20 leaves a file's descriptor open if a thread dies while it imports the file, so a
 * worker imports nothing while it handles data that may end it.
 */
export async function loadNumcodecsZstd(): Promise<void> {
  await loadModule();
}

function loadModule(): Promise<NumcodecsModule> {
  if (loading !== undefined) return loading;
  // The query makes another module of the same file, with a heap of its own.
  const query = reloads === 0 ? "" : `?${reloads}`;
  const module = import(`${import.meta.resolve("numcodecs/zstd")}${query}`) as Promise<NumcodecsModule>;
  loading = module;
  module.catch(() => {
    // For want of descriptors, for example. Node.js may remember it: a worker ends before its next task.
    loading = undefined;
    reloads++;
  });
  return module;
}
