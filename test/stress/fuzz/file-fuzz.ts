import { createHash } from "node:crypto";
import { type Dirent, existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { checkStoredLength } from "../../../src/chunk/delivery.js";
import { makeChunk } from "../../../src/codec/make-chunk.js";
import { messageOf, ZpublishError } from "../../../src/errors.js";
import type { FileFormat } from "../../../src/formats/file-format.js";
import { createFileSource } from "../../../src/formats/file-source.js";
import { FORMATS } from "../../../src/formats/formats.js";
import { elementCount, gridShapeOf } from "../../../src/model/data-tree.js";
import { openChunkReader } from "../../../src/open/chunk-reader.js";
import { createEncodingPlan } from "../../../src/zarr/plan/create-encoding-plan.js";
import type { EncodingPlan } from "../../../src/zarr/plan/encoding-plan.js";
import type { StoredArray } from "../../../src/zarr/stored-array.js";
import type { StoredTree } from "../../../src/zarr/stored-tree.js";
import { PACKAGE_ROOT } from "../../support/clients/client-generation.js";
import { createMemoryStore } from "../../support/memory-store.js";
import {
  type ChunkExtent,
  checksummedBlocks,
  chunkExtents,
  type DamagedFile,
  damageFile,
  type FileDamage,
  sealBlocks,
} from "./file-damage.js";
import type { FuzzKind, FuzzSubject } from "./fuzz.js";
import { writeGeneratedFiles } from "./generated-files.js";

/** Damaged NetCDF, HDF5 and TIFF files: refused, or read in bounded time and memory, without values that they do not have. */
export const fileFuzz: FuzzKind = {
  // More than files as small as these can need: a chunk of 16 MiB, as it is read, decoded and encoded.
  maxAllocationBytes: 64 * 2 ** 20,
  // Buffers that were not collected yet are in it.
  maxResidentBytes: 1536 * 2 ** 20,
  async open(folder) {
    const generated = join(folder, "generated");
    const notes = writeGeneratedFiles(generated);
    const seeds = findSeeds([join(PACKAGE_ROOT, "test", "fixtures"), generated]);
    const subjects = new Map(seeds.map((seed) => [seed, fileSubject(seed)]));
    const count = `${subjects.size} files were damaged.`;
    return { subjects: seeds.map((seed) => subjects.get(seed)!), notes: [...notes, count] };
  },
};

/** Damages a file, and reads the copies. */
export function fileSubject(seed: FileSeed): FuzzSubject {
  let target: Promise<FileTarget> | undefined;
  return {
    name: seed.name,
    row: seed.format.id,
    good: seed.bytes,
    async begin(random) {
      target ??= createFileTarget(seed);
      const file = await target;
      return {
        damages: damageFile(file, random),
        async attempt(damage) {
          const reading = await readWholeFile(seed.format, damage.bytes);
          const chunks = [...reading.arrays.values()].flatMap((array) => [...array.chunks.values()]);
          const refused = chunks.filter((chunk) => chunk === "refused").length;
          return {
            counts: {
              "files refused": reading.refusal === undefined ? 0 : 1,
              "chunks decoded": chunks.length - refused,
              "chunks refused": refused,
            },
            problem: [...reading.problems, ...inventedValues(file, damage as FileDamage, reading)][0],
          };
        },
      };
    },
  };
}

/** A file to damage, and what the service makes of it. */
interface FileTarget extends DamagedFile {
  /** `netcdf3 types_data.nc`. */
  readonly name: string;
  readonly format: FileFormat;
  readonly reading: FileReading;
}

/** A file that one of the formats recognizes. */
interface FileSeed {
  readonly name: string;
  readonly format: FileFormat;
  readonly bytes: Uint8Array;
}

const HEAD_BYTES = 4096;
/** Longer files would be damaged in their chunks only, and take long. */
const MAX_SEED_BYTES = 512 * 1024;

/**
 * Finds files in folders, of every format that the service has. Formats take turns in the order, so that each is tried about
 * as often.
 */
export function findSeeds(folders: readonly string[]): FileSeed[] {
  const byFormat = new Map<string, FileSeed[]>();
  for (const folder of folders.filter((each) => existsSync(each))) {
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true }) as Dirent[];
    for (const entry of entries.filter((each) => each.isFile())) {
      const bytes = new Uint8Array(readFileSync(join(entry.parentPath ?? entry.path, entry.name)));
      const format = FORMATS.find((each) => each.recognizes(bytes.subarray(0, HEAD_BYTES)));
      if (format === undefined || bytes.length > MAX_SEED_BYTES) continue;
      const name = `${format.id} ${relative(folder, join(entry.parentPath ?? entry.path, entry.name))}`;
      byFormat.set(format.id, [...(byFormat.get(format.id) ?? []), { name, format, bytes }]);
    }
  }
  const lists = [...byFormat.values()].map((list) => list.sort((a, b) => (a.name < b.name ? -1 : 1)));
  const longest = Math.max(0, ...lists.map((list) => list.length));
  const turns = Array.from({ length: longest }, (_, i) =>
    lists.map((list) => list[i % list.length] as FileSeed),
  );
  return turns.flat();
}

/** Reads a good file. */
async function createFileTarget({ name, format, bytes }: FileSeed): Promise<FileTarget> {
  const reading = await readWholeFile(format, bytes);
  const found = reading.refusal === undefined ? await chunkExtents(format, bytes) : [];
  const owners = new Uint8Array(bytes.length);
  for (const { begin, end } of found)
    for (let at = begin; at < end; at++) owners[at] = Math.min(2, (owners[at] ?? 0) + 1);
  const isOwn = ({ begin, end }: ChunkExtent) => !owners.subarray(begin, end).includes(2);
  const blocks = format.id === "hdf5" ? checksummedBlocks(bytes) : [];
  return {
    ...{ name, format, bytes, reading },
    extents: found.filter(isOwn),
    metadata: Uint32Array.from(owners.keys()).filter((at) => owners[at] === 0),
    ...(blocks.length > 0 && { seal: (copy: Uint8Array) => sealBlocks(copy, blocks) }),
  };
}

/** What the service makes of a file. */
interface FileReading {
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
async function readWholeFile(format: FileFormat, bytes: Uint8Array): Promise<FileReading> {
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
      const isPassed = plan.kind === "passthrough" && (reader.places?.variantOf(coords) ?? 0) === 0;
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
    while (axis >= 0 && coords[axis] === grid[axis]! - 1) coords[axis--] = 0;
    if (axis < 0) return;
    coords[axis] = coords[axis]! + 1;
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

/**
 * Returns values of a damaged file that differ from those of the good one, though the bytes that they are made of are the same, or
 * are missing.
 */
function inventedValues(
  { reading: good, extents, bytes }: Pick<FileTarget, "reading" | "extents" | "bytes">,
  damage: FileDamage,
  reading: FileReading,
): string[] {
  if (damage.scope === "any" || good.refusal !== undefined) return [];
  const mayDiffer = new Set<string>();
  if (damage.scope === "chunks") {
    if (reading.refusal !== undefined)
      return [`expected only chunks to be refused, received ${reading.refusal}`];
    for (const { path, key, begin, end } of extents)
      if (Buffer.compare(bytes.subarray(begin, end), damage.bytes.subarray(begin, end)) !== 0)
        mayDiffer.add(`${path} ${key}`);
  }
  const problems: string[] = [];
  for (const [path, { form, chunks }] of reading.arrays) {
    const before = good.arrays.get(path);
    if (before?.form !== form) problems.push(`'${path}': expected ${before?.form}, received ${form}`);
    for (const [key, chunk] of chunks) {
      const isSame = chunk === before?.chunks.get(key);
      const isExplained = mayDiffer.has(`${path} ${key}`)
        ? chunk !== "absent"
        : damage.scope === "cut" && chunk === "refused";
      if (!isSame && !isExplained)
        problems.push(`'${path}' ${key}: expected ${before?.chunks.get(key)}, received ${chunk}`);
    }
  }
  if (damage.scope === "chunks" && reading.arrays.size !== good.arrays.size)
    problems.push(`expected ${good.arrays.size} arrays, received ${reading.arrays.size}`);
  return problems;
}
