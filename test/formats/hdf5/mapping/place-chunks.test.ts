import t from "tap";
import { extendGrid, type GriddedChunks, hasAbsentChunks } from "../../../../src/formats/hdf5/to-zarr.js";

const places: GriddedChunks = {
  offsets: new Float64Array([10, 20, 30, 40]),
  byteLengths: new Uint32Array(4),
};

t.test("chunks keep their places in a longer array", async (t) => {
  // Two by two chunks become three by three.
  const { numbers } = await extendGrid(places, [2, 2], [4, 3], [5, 6]);
  t.same([...(numbers ?? [])], [0, 1, 3, 4]);
  const sparse = { ...places, numbers: new Float64Array([0, 2, 3, 5]) };
  t.same([...((await extendGrid(sparse, [2, 2], [4, 6], [6, 8])).numbers ?? [])], [0, 2, 4, 6]);
  t.equal(await extendGrid(places, [4, 2], [3, 3], [4, 4]), places, "the grid may be the same");
});

t.test("chunks that are not stored are noticed", async (t) => {
  t.equal(hasAbsentChunks(places, [4, 3], [2, 2]), false);
  t.equal(hasAbsentChunks({ ...places, numbers: new Float64Array([0, 1, 2, 3]) }, [5, 3], [2, 2]), true);
  t.equal(hasAbsentChunks({ offsets: new Float64Array([10, -1]) }, [4], [2]), true);
  t.equal(hasAbsentChunks({ numbers: new Float64Array(0), offsets: new Float64Array(0) }, [0], [2]), false);
});
