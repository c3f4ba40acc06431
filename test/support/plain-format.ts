import { ZpublishError } from "../../src/errors.js";
import type { FileFormat } from "../../src/formats/file-format.js";
import type { FileArray, FileIndex } from "../../src/formats/file-index.js";

const MAGIC = "PLAIN1\n";
/** Digits of the number of bytes of the description. */
const DIGITS = 12;

/** Content of a file of the format. */
export interface PlainFile {
  readonly arrays: readonly FileArray[];
  /** Default: none. */
  readonly index?: Partial<FileIndex>;
  /** Bytes behind the description; offsets count from {@link DATA_OFFSET}. */
  readonly data: Uint8Array;
}

/** Offset of the data of every file. */
export const DATA_OFFSET = 65_536;

/** Writes a file of an invented format: a JSON description of its index, then data. */
export function plainFile({ arrays, index, data }: PlainFile): Buffer {
  const root = { path: "/", attrs: { title: "plain" }, arrays };
  const text = JSON.stringify(
    { groups: [root], refused: [], warnings: [], format: "Plain", ...index },
    replacer,
  );
  const length = Buffer.byteLength(text);
  if (length + MAGIC.length + DIGITS > DATA_OFFSET) throw new Error("expected a shorter description");
  const file = Buffer.alloc(DATA_OFFSET + data.length);
  file.write(`${MAGIC}${String(length).padStart(DIGITS, "0")}${text}`);
  file.set(data, DATA_OFFSET);
  return file;
}

/** The format of {@link plainFile}. `reads` counts how often an index was read. */
export const plainFormat: FileFormat & { reads: number } = {
  id: "hdf5",
  revision: 1,
  reads: 0,
  recognizes: (head) => Buffer.from(head.subarray(0, MAGIC.length)).toString() === MAGIC,
  async readIndex(file) {
    plainFormat.reads++;
    const head = await file.read(MAGIC.length, DIGITS);
    const length = Number(Buffer.from(head).toString());
    if (!Number.isSafeInteger(length)) throw new ZpublishError("invalid-metadata", "expected a length");
    const text = Buffer.from(await file.read(MAGIC.length + DIGITS, length)).toString();
    try {
      return JSON.parse(text, reviver) as FileIndex;
    } catch {
      throw new ZpublishError("invalid-metadata", "expected a whole description");
    }
  },
  async makeChunk(file, recipe, chunkCoords) {
    const places = recipe as readonly (readonly (readonly [number, number])[])[];
    const parts = places[chunkCoords[0] ?? 0];
    if (parts === undefined) return undefined;
    const read = await Promise.all(
      parts.map(([offset, byteLength]) => file.readOnce(DATA_OFFSET + offset, byteLength)),
    );
    return Uint8Array.from(read.flatMap((bytes) => [...bytes]));
  },
};

const TYPES = { Float64Array, Uint32Array, Uint8Array };

function replacer(_key: string, value: unknown): unknown {
  for (const [type, Typed] of Object.entries(TYPES))
    if (value instanceof Typed) return { type, items: [...value] };
  return value;
}

function reviver(_key: string, value: unknown): unknown {
  const { type, items } = (value ?? {}) as { type?: keyof typeof TYPES; items?: number[] };
  return type !== undefined && items !== undefined ? new TYPES[type](items) : value;
}

/** An array of bytes without codecs, whose chunks lie in the data. */
export function plainArray(
  array: Pick<FileArray, "name" | "shape" | "chunkShape" | "chunks"> & Partial<FileArray>,
): FileArray {
  return {
    dtype: "|u1",
    codecs: [],
    compressorCount: 0,
    fill: { served: 0, item: null, absentIsServed: true },
    dimNames: array.shape.map((_, axis) => `${array.name}_${axis}`),
    attrs: {},
    ...array,
  };
}
