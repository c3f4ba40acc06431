import type { FileFormat } from "../file-format.js";
import { makeTextChunk } from "./make-text-chunk.js";
import { mapFile } from "./mapping/map-file.js";
import type { TextRecipe } from "./mapping/text-recipe.js";
import { readHdf5 } from "./read-hdf5.js";

/** The signature of a superblock (HDF5 File Format Specification, II.A). */
const SIGNATURE = Buffer.from("\x89HDF\r\n\x1a\n", "latin1");

/** HDF5, and NetCDF-4, which is HDF5 with conventions about dimensions. */
export const hdf5Format: FileFormat = {
  id: "hdf5",
  revision: 2,
  recognizes: hasSuperblock,
  readIndex: async (file) => mapFile(file, await readHdf5(file)),
  makeChunk: (file, recipe, chunkCoords) => makeTextChunk(file, recipe as TextRecipe, chunkCoords),
};

/** Tells if there is a superblock: at the beginning, or behind a user block of 512 bytes or that times a power of two. */
function hasSuperblock(head: Uint8Array): boolean {
  for (let at = 0; at + SIGNATURE.length <= head.length; at = at === 0 ? 512 : 2 * at) {
    if (SIGNATURE.equals(head.subarray(at, at + SIGNATURE.length))) return true;
  }
  return false;
}
