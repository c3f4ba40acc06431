import { createHash } from "node:crypto";
import { checkStoredLength } from "../../src/chunk/delivery.js";
import { makeChunk } from "../../src/codec/make-chunk.js";
import { messageOf, ZpublishError } from "../../src/errors.js";
import type { FileFormat } from "../../src/formats/file-format.js";
import { createFileSource } from "../../src/formats/file-source.js";
import { elementCount, gridShapeOf } from "../../src/model/data-tree.js";
import { openChunkReader } from "../../src/open/chunk-reader.js";
import { createEncodingPlan } from "../../src/zarr/plan/create-encoding-plan.js";
import type { EncodingPlan } from "../../src/zarr/plan/encoding-plan.js";
import type { StoredArray } from "../../src/zarr/stored-array.js";
import type { StoredTree } from "../../src/zarr/stored-tree.js";
import { createMemoryStore } from "../../test/stores/memory-store.js";

/** What the service makes of a file. */
export interface FileReading {
  /** By path. Arrays that are refused are not among them. */
  readonly arrays: ReadonlyMap<string, ArrayReading>;
  /** Why the whole file is refused; undefined if it opens. */
  readonly refusal: string | undefined;
  /** Errors that no file may cause. */
  readonly problems: readonly string[];
}

/** An array of a file. */
export interface ArrayReading {
  /** Shape, chunks, type and fill value. */
  readonly form: string;
  /** By key: a hash of the decoded bytes, `absent`, or `refused`. Not all chunks of large arrays are read. */
  readonly chunks: ReadonlyMap<string, string>;
}

/** Chunks of an array that are read, and longest chunk that is decoded. */
const MAX_CHUNKS = 24;
const MAX_DECODED_BYTES = 16 * 2 ** 20;
/** Arrays of a file that are read, so that a damaged count costs little time. */
const MAX_ARRAYS = 200;
/** Errors that say something of the machine or the code, and not of the file. */
const FORBIDDEN_CODES: ReadonlySet<string> = new Set(["internal", "source-changed", "overloaded"]);

/** Opens a file in memory as the server does, and decodes chunks of every array. */
export async function readWholeFile(format: FileFormat, bytes: Uint8Array): Promise<FileReading> {
  const problems: string[] = [];
  const arrays = new Map<string, ArrayReading>();
  let tree: StoredTree;
  try {
    tree = await openFile(format, bytes);
  } catch (error) {
    noteError(error, "the file", problems);
    return { arrays, refusal: messageOf(error), problems };
  }
  const all = tree.groups.flatMap((group) => group.arrays);
  for (const array of all.slice(0, MAX_ARRAYS)) {
    try {
      const { plan } = planOf(array);
      const { shape, chunkShape, dataType, fill } = array;
      const form = JSON.stringify([shape, chunkShape, dataType.numpyStr, String(fill.served)]);
      arrays.set(array.path, { form, chunks: await readChunks(array, plan, problems) });
    } catch (error) {
      noteError(error, `'${array.path}'`, problems);
    }
  }
  return { arrays, refusal: undefined, problems };
}

function openFile(format: FileFormat, bytes: Uint8Array): Promise<StoredTree> {
  const key = "fuzzed";
  const store = createMemoryStore({ [key]: bytes }, `memory://${key}`);
  return createFileSource({
    location: key,
    formats: [format],
    store,
    key,
    freshness: "immutable",
  }).readTree();
}

/** Plans chunks without codecs, unless their items have no fixed size. */
function planOf(array: StoredArray): { readonly plan: EncodingPlan } {
  const asked = array.dataType.kind === "O" ? {} : { compressor: null, filters: null };
  return createEncodingPlan(array, { ...asked, chunkShape: array.chunkShape });
}

async function readChunks(
  array: StoredArray,
  plan: EncodingPlan,
  problems: string[],
): Promise<Map<string, string>> {
  const chunks = new Map<string, string>();
  const chunkBytes = elementCount(array.chunkShape) * array.dataType.itemSize;
  if (chunkBytes > MAX_DECODED_BYTES) return chunks;
  const reader = openChunkReader(array.chunks);
  const grid = gridShapeOf(array.shape, array.chunkShape);
  for (const coords of chunksToRead(grid)) {
    const key = coords.join(".");
    try {
      const isPassed = plan.kind === "passthrough" && (reader.variantOf?.(coords) ?? 0) === 0;
      const made = isPassed
        ? await reader.read(coords, { maxByteLength: MAX_DECODED_BYTES })
        : await makeChunk(plan, coords, reader);
      const bytes = made === undefined || !("bytes" in made) ? undefined : made.bytes;
      if (isPassed && bytes !== undefined) checkStoredLength(plan, coords, bytes.length);
      if (bytes !== undefined && array.dataType.kind !== "O" && bytes.length !== chunkBytes)
        problems.push(`'${array.path}' ${key}: expected ${chunkBytes} bytes, received ${bytes.length}`);
      chunks.set(key, bytes === undefined ? "absent" : hashOf(bytes));
    } catch (error) {
      noteError(error, `'${array.path}' ${key}`, problems);
      chunks.set(key, "refused");
    }
  }
  return chunks;
}

/** Yields the first chunks of a grid, and the last. */
function* chunksToRead(grid: readonly number[]): Generator<number[]> {
  if (grid.includes(0)) return;
  const coords = grid.map(() => 0);
  for (let read = 0; read < MAX_CHUNKS; read++) {
    yield [...coords];
    let axis = grid.length - 1;
    while (axis >= 0 && coords[axis] === (grid[axis] as number) - 1) coords[axis--] = 0;
    if (axis < 0) return;
    coords[axis] = (coords[axis] as number) + 1;
  }
  yield grid.map((length) => length - 1);
}

function noteError(error: unknown, what: string, problems: string[]): void {
  if (error instanceof ZpublishError && !FORBIDDEN_CODES.has(error.code)) return;
  const name = error instanceof ZpublishError ? error.code : ((error as Error | null)?.name ?? "error");
  const stack = error instanceof ZpublishError ? "" : ` ${(error as Error).stack?.split("\n")[1]?.trim()}`;
  problems.push(
    `${what}: expected an error that says what is wrong with the file, received ${name}: ${messageOf(error)}${stack}`,
  );
}

function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 32);
}
