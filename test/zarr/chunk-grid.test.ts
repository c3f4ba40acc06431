import t from "tap";
import type { JsonValue } from "../../src/json/json-value.js";
import { parseJson } from "../../src/json/parse-json.js";
import { chunksWithin } from "../../src/model/chunk-axis.js";
import { parseChunkGrid } from "../../src/zarr/v3/chunk-grid.js";

function parse(configuration: JsonValue, shape: readonly number[], name = "rectilinear") {
  return parseChunkGrid({ name, configuration }, shape);
}

/** Lists the lengths of the chunks along each axis, and of what they decode to. */
function lengthsOf(configuration: JsonValue, shape: readonly number[], name?: string) {
  const grid = parse(configuration, shape, name);
  if ("chunkShape" in grid) return grid.chunkShape;
  return grid.axes.map((axis) =>
    chunksWithin(axis, 0, axis.extent).map(({ length, decodedLength }) =>
      length === decodedLength ? length : `${length} of ${decodedLength}`,
    ),
  );
}

t.test("chunks are lengths, repeated lengths, or one length for all", async (t) => {
  const chunk_shapes = [4, [1, 2, 3], [[4, 2]], [[1, 3], 3], [4, 4, 4]];
  t.same(lengthsOf({ kind: "inline", chunk_shapes }, [6, 6, 6, 6, 6]), [
    [4, 4],
    [1, 2, 3],
    [4, 4],
    [1, 1, 1, 3],
    [4, 4],
  ]);
  t.same(lengthsOf({ chunk_shapes: [[2, 3]] }, [5]), [[2, 3]], "without a kind, as some stores have it");
  t.same(lengthsOf({ kind: "inline", chunk_shapes: [[2.0, 3]] }, [5]), [[2, 3]]);
});

t.test("zarr-python 3.2 wrote unequal chunks into grids that it called regular", async (t) => {
  t.same(lengthsOf({ chunk_shape: [[1, 2], 2] }, [3, 3], "regular"), [
    [1, 2],
    [2, 2],
  ]);
});

t.test("a grid of equal chunks is regular", async (t) => {
  t.same(parse({ kind: "inline", chunk_shapes: [3, [[4, 2]], [5, 5, 2]] }, [9, 8, 10]), {
    chunkShape: [3, 4, 5],
  });
  t.same(parse({ kind: "inline", chunk_shapes: [[], [7, 8]] }, [0, 0]), {
    chunkShape: [1, 7],
  });
  t.same(parse({ kind: "inline", chunk_shapes: [] }, []), { chunkShape: [] });
});

t.test("chunks may decode to more than they give", async (t) => {
  const chunk_shapes = [[[200, 2], 150, [200, 2], 150]];
  t.same(lengthsOf({ chunk_shapes, encoded_chunk_shapes: [200] }, [1_100]), [
    [200, 200, "150 of 200", 200, 200, "150 of 200"],
  ]);
  t.same(lengthsOf({ chunk_shapes: [[2, [1, 3]]], encoded_chunk_shapes: [[[3, 2], 1, 2]] }, [5]), [
    ["2 of 3", "1 of 3", 1, "1 of 2"],
  ]);
});

t.test("huge counts take no memory", async (t) => {
  const grid = parse(
    parseJson('{"kind":"inline","chunk_shapes":[[[3,1000000000000],[2,1000000000000],1]]}'),
    [5 * 10 ** 12],
  );
  t.equal("axes" in grid && grid.axes[0]!.runs.length, 2);
});

t.test("bad grids are refused by name", async (t) => {
  const cases: readonly (readonly [JsonValue, RegExp])[] = [
    [
      { kind: "reference", chunk_shapes: [[1, 2]] },
      /expected a rectilinear chunk_grid of the kind "inline", received "reference"/,
    ],
    [{ kind: "inline" }, /expected chunk_shapes to be a list, received nothing/],
    [{ kind: "inline", chunk_shapes: [[1, 2], 3] }, /chunk_shapes to be a list of 1 entries, one per axis/],
    [
      { kind: "inline", chunk_shapes: [[1, 1]] },
      /chunk_shapes to have a sum of at least 3, received \[1,1\]/,
    ],
    [{ kind: "inline", chunk_shapes: [[]] }, /a sum of at least 3, received \[\]/],
    [{ kind: "inline", chunk_shapes: [[0, 3]] }, /positive integers, or pairs .* received 0/],
    [{ kind: "inline", chunk_shapes: [-3] }, /received -3/],
    [{ kind: "inline", chunk_shapes: [[1.5, 2]] }, /received 1.5/],
    [{ kind: "inline", chunk_shapes: [["3"]] }, /received "3"/],
    [{ kind: "inline", chunk_shapes: [[[3, 0]]] }, /received \[3,0\]/],
    [{ kind: "inline", chunk_shapes: [[[3]]] }, /received \[3\]/],
    [{ kind: "inline", chunk_shapes: [[[3, 1, 1]]] }, /received \[3,1,1\]/],
    [{ kind: "inline", chunk_shapes: [[2n ** 60n]] }, /received 1152921504606846976/],
    [{ kind: "inline", chunk_shapes: [[1, 2]], encoded_chunk_shapes: [[1, 1]] }, /none of them shorter/],
    [{ kind: "inline", chunk_shapes: [[1, 2]], encoded_chunk_shapes: [[2]] }, /as many chunks/],
    [{ kind: "inline", chunk_shapes: [[1, 2]], encoded_chunk_shapes: [[2, 2, 2]] }, /as many chunks/],
  ];
  for (const [configuration, message] of cases)
    t.throws(() => parse(configuration, [3]), { message }, String(message));
  t.throws(() => parse({}, [3], "hexagonal"), {
    message: /a chunk_grid regular or rectilinear, received "hexagonal"/,
  });
});
