import { isDamage, ZpublishError } from "../../errors.js";
import { unsupportedFile } from "./byte-cursor.js";
import { GlobalHeap } from "./global-heap.js";
import type { Hdf5Input } from "./hdf5-input.js";
import { SharedMessages } from "./shared-messages.js";

/** Bounds for the values of all attributes of a file. Several attributes may have the same bytes, so a small file could have many. */
const MAX_ATTRIBUTE_ITEMS = 8_000_000;
const MAX_ATTRIBUTE_BYTES = 128 * 1024 * 1024;

/** Maximum number of warnings about attributes. */
const MAX_WARNINGS = 100;

/** Parts of a file that its objects share, while they are read. */
export class ObjectReader {
  readonly shared: SharedMessages;
  readonly heap: GlobalHeap;
  private itemsLeft = MAX_ATTRIBUTE_ITEMS;
  private bytesLeft = MAX_ATTRIBUTE_BYTES;

  constructor(readonly input: Hdf5Input) {
    this.shared = new SharedMessages(input);
    this.heap = new GlobalHeap(input);
  }

  /** Counts values of attributes. */
  spend(items: number, bytes: number): void {
    this.itemsLeft -= items;
    this.bytesLeft -= bytes;
  }

  /** @throws ZpublishError `unsupported` if the file's attributes had too many values already */
  checkBudget(): void {
    if (this.itemsLeft > 0 && this.bytesLeft > 0) return;
    throw unsupportedFile(
      `expected at most ${MAX_ATTRIBUTE_ITEMS} items and ${MAX_ATTRIBUTE_BYTES} bytes in all attributes, received more`,
    );
  }

  /** Adds a warning about the file, unless it has many already. */
  warn(warning: string): void {
    if (this.input.warnings.length < MAX_WARNINGS) this.input.warnings.push(warning);
  }

  /**
   * Returns why an object, link or attribute cannot be read, if the rest of the file can.
   * @throws the error itself if the file as a whole cannot be read
   */
  reasonOf(error: unknown): string {
    const isOwn = error instanceof ZpublishError && !this.input.isExhausted;
    if (isOwn && isDamage(error)) return error.message;
    throw error;
  }
}
