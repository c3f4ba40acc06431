import type { OpenRequest, VariableDescription } from "../protocol.js";
import {
  type ArrayReader,
  type ChunkValues,
  chunkOfCell,
  costOf,
  MAX_UNASKED_CHUNK_BYTES,
  openArray,
  type Resolution,
} from "./array-reader.js";
import { type ChunkJob, ChunkQueue, fetchBytes, type QueueLimits, ReadFailure } from "./chunk-queue.js";
import { describeDataset, type OpenedDataset } from "./describe-dataset.js";
import type { ReadableDocument } from "./readable-document.js";

/** A chunk; undefined if it is absent. */
export type Chunk = ChunkValues | undefined;

/** An array in one of both stores. */
type StoredPlace = Pick<Resolution, "isInOverviews" | "path">;

const ABSENT_BYTES = 64;

/** An open dataset: its description, its arrays, and their chunks. */
export class DatasetSession {
  readonly queue: ChunkQueue<Chunk>;
  readonly #request: OpenRequest;
  readonly #dataset: OpenedDataset;
  readonly #variables: ReadonlyMap<string, VariableDescription>;
  readonly #readers = new Map<string, Promise<ArrayReader>>();

  private constructor(request: OpenRequest, dataset: OpenedDataset, limits: QueueLimits) {
    this.#request = request;
    this.#dataset = dataset;
    this.#variables = new Map(dataset.description.variables.map((variable) => [variable.path, variable]));
    this.queue = new ChunkQueue(limits, (chunk) => chunk?.byteLength ?? ABSENT_BYTES);
  }

  /** Reads the metadata. @throws ReadFailure */
  static async open(request: OpenRequest, limits: QueueLimits): Promise<DatasetSession> {
    const { store, overviews, token, group } = request;
    const read = async (url: string, what: string) => {
      const bytes = await fetchBytes(`${url}.zmetadata`, { token, what });
      return bytes && new TextDecoder().decode(bytes);
    };
    const [metadata, coarse] = await Promise.all([
      read(store, "the dataset's metadata"),
      overviews === undefined ? undefined : read(overviews, "the metadata of the overviews"),
    ]);
    if (metadata === undefined) throw new ReadFailure("This dataset no longer exists.");
    return new DatasetSession(request, describeDataset(metadata, coarse, group), limits);
  }

  get description() {
    return this.#dataset.description;
  }

  /** Returns a variable. @throws ReadFailure if there is none, or a browser cannot read it */
  variable(path: string): VariableDescription {
    const variable = this.#variables.get(path);
    if (variable === undefined) throw new ReadFailure(`"${path}" is not in this dataset.`);
    if (variable.problem !== undefined) throw new ReadFailure(variable.problem);
    return variable;
  }

  /** Returns how an array is read. @throws ReadFailure */
  documentOf({ isInOverviews, path }: StoredPlace): ReadableDocument {
    const { arrays, overviewArrays } = this.#dataset;
    const document = (isInOverviews ? overviewArrays : arrays).get(path)?.readable;
    if (typeof document !== "object") throw new ReadFailure(`"${path}" cannot be read in a browser.`);
    return document;
  }

  /** Returns the chunk that holds a cell of the variable at a resolution, and the offset of its number in the chunk. */
  placeOf(
    resolution: Resolution,
    cell: readonly number[],
  ): { readonly coords: number[]; readonly offset: number } {
    const { strides } = this.documentOf(resolution);
    const coords = chunkOfCell(resolution, cell);
    const offset = cell.reduce((sum, index, axis) => {
      const coarse = Math.floor(index / resolution.factors[axis]!);
      return sum + (coarse - coords[axis]! * resolution.chunkShape[axis]!) * strides[axis]!;
    }, 0);
    return { coords, offset };
  }

  job({ isInOverviews, path }: StoredPlace, coords: readonly number[]): ChunkJob<Chunk> {
    const place = { isInOverviews, path };
    return {
      key: `${isInOverviews} ${path} ${coords.join(".")}`,
      read: async (signal) => (await this.#reader(place)).readChunk(coords, signal),
    };
  }

  /** Returns the decoded bytes of each chunk. */
  chunkBytes(source: StoredPlace): number {
    const { chunkShape, dataType } = this.documentOf(source);
    return costOf(1, chunkShape, dataType.itemSize).bytes;
  }

  /** Reads one chunk, unless it is larger than people expect to read without being asked. @throws ReadFailure, or the signal's reason */
  readChunk(
    source: StoredPlace,
    coords: readonly number[],
    priority: number,
    signal?: AbortSignal,
  ): Promise<Chunk> {
    const job = this.job(source, coords);
    const bytes = this.chunkBytes(source);
    if (bytes > MAX_UNASKED_CHUNK_BYTES && !this.queue.has(job.key))
      throw new ReadFailure(
        `Each chunk of "${source.path}" has ${Math.round(bytes / 2 ** 20)} MiB, too much to read for one value.`,
      );
    return this.queue.read(job, priority, signal);
  }

  #reader({ isInOverviews, path }: StoredPlace): Promise<ArrayReader> {
    const key = `${isInOverviews} ${path}`;
    const { store, overviews = "", token } = this.#request;
    const encoded = path.split("/").map(encodeURIComponent).join("/");
    const url = `${isInOverviews ? overviews : store}${encoded}/`;
    const open = () => openArray({ url, name: path, token }, this.documentOf({ isInOverviews, path }));
    const reader = this.#readers.get(key) ?? open();
    this.#readers.set(key, reader);
    return reader;
  }
}
