import { messageOf, ZpublishError } from "../errors.js";

/**
 * The only file that loads numcodecs.js. What is measured of version 0.3.2:
 *
 * - Blosc, LZ4 and Zstd are WebAssembly with one heap per thread of at most 2 GiB that grows and never shrinks; encoding
 *   512 MiB works, 900 MB ends in a trap. A trap leaves the heap damaged: every later call fails or, worse, answers
 *   wrongly. So after one the module is loaded anew. Zstd leaks its input whenever it refuses it, and some of its stack: the
 *   1,924th refusal of a small frame was a trap.
 * - Blosc and LZ4 do not check what they decode; they are used to encode only, and only without the kernel. Zstd does.
 * - Blosc always encodes with typesize 4, whatever the data.
 */
export type NumcodecsName = "blosc" | "lz4" | "zstd";

/** More than this has not been seen to pass. */
export const MAX_ENCODE_BYTES = 512 * 2 ** 20;

interface NumcodecsCodec {
  encode(bytes: Uint8Array): Uint8Array | Promise<Uint8Array>;
  decode(bytes: Uint8Array): Uint8Array | Promise<Uint8Array>;
}

interface NumcodecsModule {
  readonly default: { fromConfig(config: object): NumcodecsCodec };
}

const modules = new Map<NumcodecsName, Promise<NumcodecsModule>>();
let reloads = 0;
let leakedBytes = 0;
/** By the modules that are loaded now. */
let refusals = 0;
const MAX_REFUSALS = 500;
const MAX_LEAKED_BYTES = 256 * 2 ** 20;

/**
 * Whether this thread's WebAssembly heaps are damaged or have leaked much, or could not be loaded: a worker that finds so ends itself before its
 * next task, which is the only way to give the memory back.
 */
export function isNumcodecsWornOut(): boolean {
  return reloads > 0 || leakedBytes > MAX_LEAKED_BYTES;
}

/**
 * Runs one codec of numcodecs.js.
 * @returns Bytes that own their buffer, outside the WebAssembly heap.
 * @throws Error with the library's message where it refuses; ZpublishError `codec-failed` where it broke.
 */
export async function runNumcodecs(
  name: NumcodecsName,
  operation: "encode" | "decode",
  config: object,
  bytes: Uint8Array,
): Promise<Uint8Array> {
  const module = await loadModule(name);
  try {
    return await module.default.fromConfig(config)[operation](bytes);
  } catch (error) {
    leakedBytes += bytes.length;
    // Only what the codec itself says is an Error and nothing more; traps and aborts are of other classes.
    const isRefusal = error instanceof Error && error.constructor === Error;
    if (!isRefusal || ++refusals >= MAX_REFUSALS) {
      modules.delete(name);
      refusals = 0;
      reloads++;
    }
    if (isRefusal) throw error;
    throw new ZpublishError(
      "codec-failed",
      `${name}: could not ${operation} ${bytes.length} bytes: ${messageOf(error)}`,
      { cause: error },
    );
  }
}

/**
 * Loads a codec before it is needed. Node.js 20 leaves a file's descriptor open where a thread dies while it imports it, so a worker
 * imports nothing while it has to do with data that it may die of.
 */
export async function loadNumcodecs(name: NumcodecsName): Promise<void> {
  await loadModule(name);
}

function loadModule(name: NumcodecsName): Promise<NumcodecsModule> {
  const module = modules.get(name);
  if (module === undefined) {
    // The query makes another module of the same file, with a heap of its own.
    const query = reloads === 0 ? "" : `?${reloads}`;
    const loading = import(`${import.meta.resolve(`numcodecs/${name}`)}${query}`) as Promise<NumcodecsModule>;
    modules.set(name, loading);
    loading.catch(() => {
      // For want of descriptors, say. Node.js may remember it: a worker ends before its next task.
      modules.delete(name);
      reloads++;
    });
    return loading;
  }
  return module;
}

/** @throws ZpublishError `codec-failed` for more bytes than can be encoded. */
export function checkEncodable(id: string, bytes: Uint8Array): void {
  if (bytes.length <= MAX_ENCODE_BYTES) return;
  throw new ZpublishError(
    "codec-failed",
    `${id}: expected at most ${MAX_ENCODE_BYTES} bytes to encode, received ${bytes.length}`,
  );
}
