import { linkSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type FieldStore, storedBytes } from "./bench-data.js";
import { FIELD_SIDE } from "./field.js";

/**
 * Makes a store whose planes repeat those of a field along y and x. Its chunks are links to the field's files, so that gigabytes
 * take no room.
 * @param steps Of the field, at most as many as it has.
 * @returns The directory of the store, whose array is called `field`, too.
 */
export function tileField(store: FieldStore, directory: string, steps: number, tiles: number): string {
  mkdirSync(join(directory, "field"), { recursive: true });
  const perField = FIELD_SIDE / store.chunkSide;
  const perSide = perField * tiles;
  for (let step = 0; step < steps; step++) {
    for (let y = 0; y < perSide; y++)
      for (let x = 0; x < perSide; x++)
        linkSync(
          join(store.directory, `field/${step}.${y % perField}.${x % perField}`),
          join(directory, `field/${step}.${y}.${x}`),
        );
  }
  const side = FIELD_SIDE * tiles;
  const zarray = JSON.parse(storedBytes(store, "field/.zarray").toString());
  writeFileSync(join(directory, "field/.zarray"), JSON.stringify({ ...zarray, shape: [steps, side, side] }));
  writeFileSync(join(directory, "field/.zattrs"), storedBytes(store, "field/.zattrs"));
  writeFileSync(join(directory, ".zgroup"), JSON.stringify({ zarr_format: 2 }));
  return directory;
}
