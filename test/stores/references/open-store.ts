import type { ByteStore } from "../../../src/stores/byte-store.js";
import type { ReferenceOptions } from "../../../src/stores/reference-store.js";
import { createMemoryStore, type MemoryStore } from "../memory-store.js";

/** A container of references, and the store of a bucket to which they lead. */
export interface ReferenceStage {
  readonly container: MemoryStore;
  readonly bucket: MemoryStore;
  readonly options: ReferenceOptions;
  /** URLs that were opened. */
  readonly opened: string[];
}

/** Creates a stage: references in `s3://refs/folder/`, which may lead to that folder and to `s3://bucket/`. */
export function createReferenceStage(files: Readonly<Record<string, string | Uint8Array>>): ReferenceStage {
  const container = createMemoryStore(files, "s3://refs/folder");
  const bucket = createMemoryStore({}, "s3://bucket");
  const opened: string[] = [];
  const places: readonly (readonly [string, ByteStore])[] = [
    ["s3://refs/folder/", container],
    ["s3://bucket/", bucket],
    ["https://host/data/", bucket],
  ];
  return {
    container,
    bucket,
    opened,
    options: {
      folder: "s3://refs/folder/",
      isAllowed: (url) => places.some(([prefix]) => url.startsWith(prefix)),
      openTarget(url) {
        opened.push(url);
        const [prefix, store] = places.find(([prefix]) => url.startsWith(prefix))!;
        return { store, key: url.slice(prefix.length) };
      },
    },
  };
}

/** Reads a key as text; undefined if it is absent. */
export async function textOf(store: ByteStore, key: string): Promise<string | undefined> {
  const read = await store.read(key);
  return read && Buffer.from(read.bytes).toString();
}
