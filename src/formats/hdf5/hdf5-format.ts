import type { FileFormat } from "../file-format.js";
import { readHdf5 } from "./groups.js";
import { isHdf5 } from "./objects.js";
import { makeTextChunk, type TextRecipe } from "./text.js";
import { mapFile } from "./to-zarr.js";

/** HDF5, and NetCDF-4, which is HDF5 with conventions about dimensions. */
export const hdf5Format: FileFormat = {
  id: "hdf5",
  revision: 2,
  recognizes: isHdf5,
  readIndex: async (file) => mapFile(file, await readHdf5(file)),
  makeChunk: (file, recipe, chunkCoords) => makeTextChunk(file, recipe as TextRecipe, chunkCoords),
};
