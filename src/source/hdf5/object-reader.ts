import { ZpublishError } from "../../errors.js";
import { GlobalHeap } from "./global-heap.js";
import type { Hdf5Input } from "./hdf5-input.js";
import { SharedMessages } from "./shared-messages.js";

/** Parts of a file that its objects share, while they are read. */
export class ObjectReader {
  readonly shared: SharedMessages;
  readonly heap: GlobalHeap;
  /** Items that the attributes of the file have so far. */
  attributeItems = 0;

  constructor(readonly input: Hdf5Input) {
    this.shared = new SharedMessages(input);
    this.heap = new GlobalHeap(input);
  }

  /**
   * Returns why an object, link or attribute cannot be read, if the rest of the file can.
   * @throws the error itself if the file as a whole cannot be read
   */
  reasonOf(error: unknown): string {
    const isOwn = error instanceof ZpublishError && !this.input.isExhausted;
    if (isOwn && (error.code === "invalid-metadata" || error.code === "unsupported")) return error.message;
    throw error;
  }
}
