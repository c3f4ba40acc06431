import { join } from "node:path";
import t from "tap";
import { createWorkerFeed } from "../../src/chunk/worker-feed.js";
import { createSnapshot } from "../../src/dataset/snapshot.js";
import { openJoin } from "../../src/join/open-join.js";
import { openSource } from "../../src/open/open-source.js";
import { createTaskRunner } from "../../src/pool/run-chunk-task.js";
import type { AxisSelection, ReadValuesOptions, ValueBlock } from "../../src/values/values.js";
import type { Source } from "../../src/zarr/stored-tree.js";
import { askPython } from "../support/clients/ask-python.js";
import { RANDOM_ARRAYS } from "../support/clients/random-arrays.js";
import { clientMissing } from "../support/clients/require-client.js";
import { effort } from "../support/effort.js";
import { inlineValues } from "../support/inline-values.js";

/**
 * Writes random arrays of every type, packing, order and chunking: in a Zarr store, a NetCDF-4 and a NetCDF-3 file, and a folder of
 * NetCDF-4 files. Prints random selections of each, and what they hold as it is stored and as xarray decodes it.
 */
const SCRIPT = `
import base64, json, os, random, sys
import netCDF4, numcodecs, numpy as np, scipy.io, xarray as xr, zarr
directory, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = random.Random(seed)
nprng = np.random.default_rng(seed)
${RANDOM_ARRAYS}
def pick(length):
    kind = rng.choice(["all", "range", "range", "back", "list", "one", "none"] if length else ["all"])
    if kind == "all": return {"begin": 0, "count": length, "step": 1}
    if kind == "none" and rng.random() < 0.3: return {"begin": 0, "count": 0, "step": 1}
    if kind == "one": return {"begin": rng.randrange(length), "count": 1, "step": 1}
    if kind == "list": return {"indexes": [rng.randrange(length) for _ in range(rng.randrange(1, 8))]}
    begin, step = rng.randrange(length), rng.choice([1, 1, 2, 3, 7])
    if kind == "back": return {"begin": begin, "count": rng.randrange(begin // step + 1) + 1, "step": -step}
    return {"begin": begin, "count": rng.randrange((length - 1 - begin) // step + 1) + 1, "step": step}

def indexes(axis):
    return axis["indexes"] if "indexes" in axis else [axis["begin"] + i * axis["step"] for i in range(axis["count"])]

def taken(values, selection):
    for axis, picked in enumerate(selection):
        values = np.take(values, np.array(indexes(picked), dtype=int), axis=axis)
    return values

def said(values):
    values = np.asarray(values)
    if values.dtype.kind == "O": return {"dtype": "object", "texts": [str(each) for each in values.ravel().tolist()]}
    little = values.astype(values.dtype.newbyteorder("<"))
    return {"dtype": values.dtype.newbyteorder("<").str.replace("|", ""), "bytes": base64.b64encode(little.tobytes()).decode()}

answers = []
def answer(dataset, path, stored, decoded, attrs):
    # numpy 1 makes doubles of masked scalars and of masked complex numbers, whatever their type.
    if stored.ndim == 0: decoded = None
    if stored.dtype.kind == "c": decoded = decoded.astype(stored.dtype) if stored.ndim else None
    for _ in range(3):
        selection = [pick(length) for length in stored.shape]
        points = [[rng.randrange(length) for length in stored.shape] for _ in range(9)] if stored.ndim and 0 not in stored.shape else []
        at = tuple(np.array(points).T) if points else None
        answers.append({
            "dataset": dataset, "path": path, "attrs": attrs, "selection": selection, "points": [i for point in points for i in point],
            "stored": said(taken(stored, selection)), "storedPoints": said(stored[at]) if points else None,
            "decoded": None if decoded is None else said(taken(decoded, selection)),
            "decodedPoints": said(decoded[at]) if points and decoded is not None else None,
        })

def shapes():
    shape = tuple(rng.randrange(1, 14) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4])))
    return shape, tuple(rng.randrange(1, length + 2) for length in shape)

root = zarr.open_group(os.path.join(directory, "a.zarr"), mode="w")
made = {}
for index in range(count):
    dtype = rng.choice(NUMBERS * 2 + OTHERS)
    shape, chunks = shapes()
    kind = np.dtype(dtype).kind if dtype != "O" else "O"
    fill = rng.choice([None, 3, 9]) if kind in "iuf" else "" if kind == "O" else complex(2, 3) if kind == "c" and rng.random() < 0.3 else None
    if kind == "f" and rng.random() < 0.2: fill = float("nan")
    options = {"filters": [numcodecs.Shuffle(np.dtype(dtype).itemsize)]} if kind in "iuf" and rng.random() < 0.3 else {}
    if kind == "O": options = {"object_codec": numcodecs.VLenUTF8()}
    values = items(dtype, shape)
    array = root.create_dataset(str(index), shape=shape, dtype=dtype, chunks=chunks if shape else True, fill_value=fill, order=rng.choice("CF"),
                                compressor=rng.choice([None, numcodecs.Blosc(), numcodecs.Zlib(1), numcodecs.Zstd()]), write_empty_chunks=True, **options)
    array[...] = values
    if shape and rng.random() < 0.3 and fill is not None:
        for key in list(array.chunk_store.listdir(array.path)):
            if not key.startswith(".") and rng.random() < 0.4: del array.chunk_store[array.path + "/" + key]
    attrs = packing(dtype, fill is not None)
    if attrs.get("missing_value") is not None and fill is None and rng.random() < 0.3: attrs["units"] = "hours since 2000-01-01"
    array.attrs.put({"_ARRAY_DIMENSIONS": [f"d{index}_{axis}" for axis in range(len(shape))], **attrs})
    made[str(index)] = (array[...] if shape else np.array(array[()], dtype=array.dtype), attrs)
decoded = xr.open_zarr(os.path.join(directory, "a.zarr"), consolidated=False, chunks=None, decode_times=False)
for path, (values, attrs) in made.items():
    answer("a.zarr", path, values, decoded[path].values if values.dtype.kind in "iufc" else None, attrs)

with netCDF4.Dataset(os.path.join(directory, "b.nc"), "w") as file:
    for index in range(count // 3):
        dtype = rng.choice([each for each in NUMBERS if "f2" not in each])
        shape, chunks = shapes()
        dims = [f"d{index}_{axis}" for axis in range(len(shape))]
        for dim, length in zip(dims, shape): file.createDimension(dim, length)
        order = "big" if dtype[0] == ">" else "little"
        fill = rng.choice([False, 3])
        variable = file.createVariable(f"v{index}", np.dtype(dtype).str[1:], dims, fill_value=fill, endian=order, zlib=rng.random() < 0.5, shuffle=rng.random() < 0.5,
                                       **({"chunksizes": [min(chunk, length) for chunk, length in zip(chunks, shape)]} if shape and rng.random() < 0.7 else {}))
        variable.set_auto_maskandscale(False)
        attrs = packing(dtype, bool(fill))
        attrs = {key: np.asarray(value, "f8") if key in ("scale_factor", "add_offset") else np.asarray(value, np.dtype(dtype).newbyteorder("=")) if key == "missing_value" else value
                 for key, value in attrs.items() if key != "missing_value" or np.all(np.asarray(value) >= (0 if np.dtype(dtype).kind == "u" else -9))}
        variable.setncatts(attrs)
        variable[...] = items(dtype, shape)
for path, name in [("b.nc", "b.nc")]:
    stored = xr.open_dataset(os.path.join(directory, path), decode_cf=False)
    decoded = xr.open_dataset(os.path.join(directory, path), decode_times=False)
    for each in stored.variables:
        answer(name, each, stored[each].values, decoded[each].values, {key: str(value) for key, value in stored[each].attrs.items()})

with scipy.io.netcdf_file(os.path.join(directory, "c.nc"), "w") as file:
    file.createDimension("time", None)
    file.createDimension("y", 7)
    for name, dtype, dims in [("a", "i2", ("time", "y")), ("b", "f8", ("time", "y")), ("c", "i4", ("y",)), ("d", "i1", ("time",)), ("e", "f4", ("time", "y"))]:
        variable = file.createVariable(name, dtype, dims)
        shape = tuple(5 if dim == "time" else 7 for dim in dims)
        variable[:] = items(">" + dtype if dtype != "i1" else dtype, shape)
        if name == "a": variable.scale_factor, variable.add_offset, variable.missing_value = 0.5, 20.0, np.int16(3)
stored = xr.open_dataset(os.path.join(directory, "c.nc"), decode_cf=False, engine="scipy")
decoded = xr.open_dataset(os.path.join(directory, "c.nc"), decode_times=False, engine="scipy")
for each in stored.variables:
    answer("c.nc", each, stored[each].values, decoded[each].values, {})

os.mkdir(os.path.join(directory, "days"))
parts = []
for day in range(6):
    steps = rng.randrange(1, 4)
    part = xr.Dataset({"t": (("time", "y", "x"), items("<i2", (steps, 9, 8)), {"scale_factor": 0.01, "add_offset": 250.0, "_FillValue": np.int16(3)}),
                       "p": (("time",), items("<f4", (steps,)))}, {"time": ("time", np.arange(steps) + day * 4.0, {"units": "hours since 2000-01-01"})})
    part.to_netcdf(os.path.join(directory, "days", f"{day}.nc"), engine="netcdf4", encoding={"t": {"chunksizes": (1, 4, 5), "zlib": True}})
    parts.append(part)
stored = xr.concat(parts, "time")
decoded = xr.decode_cf(stored, decode_times=False)
for each in ("t", "p"):
    answer("days", each, stored[each].values, decoded[each].values, {})
json.dump(answers, sys.stdout)
`;

interface Said {
  readonly dtype: string;
  readonly bytes?: string;
  readonly texts?: readonly string[];
}

interface Answer {
  readonly dataset: string;
  readonly path: string;
  readonly attrs: Readonly<Record<string, unknown>>;
  readonly selection: readonly AxisSelection[];
  readonly points: readonly number[];
  readonly stored: Said;
  readonly decoded: Said | null;
  readonly storedPoints: Said | null;
  readonly decodedPoints: Said | null;
}

t.setTimeout(240_000);

const run = createTaskRunner();
const values = inlineValues({ makeChunk: createWorkerFeed((task) => run(task)) });

async function open(source: Source) {
  const config = { id: "d", location: "here", immutable: false, encoding: {}, variables: {} };
  return createSnapshot(config, await source.readTree(), "no-cache");
}

/** What a block holds, as the script says it. */
function say({ dataType, bytes, values }: ValueBlock): Said {
  if (dataType.kind === "O") return { dtype: "object", texts: values as readonly string[] };
  const dtype = String(dataType.zarr).replace("|", "");
  return { dtype, bytes: Buffer.from(bytes).toString("base64") };
}

/** Numbers with one NaN: the payload of a NaN that was computed with is the processor's. */
function plain({ dtype, bytes, texts }: Said) {
  if (bytes === undefined || !/f[48]$/.test(dtype)) return { dtype, bytes, texts };
  const buffer = Buffer.from(bytes, "base64");
  const size = Number(dtype.at(-1));
  const read = (at: number) => (size === 4 ? buffer.readFloatLE(at) : buffer.readDoubleLE(at));
  const items = Array.from({ length: buffer.length / size }, (_, i) => read(i * size));
  return { dtype, items: items.map((item) => (Object.is(item, -0) ? "-0" : String(item))) };
}

t.test(
  "selections and points are those of xarray, stored and decoded",
  { skip: clientMissing("xarray", "netcdf4") },
  async (t) => {
    const directory = t.testdir();
    const seed = Number(process.env.ZPUBLISH_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
    const answers = JSON.parse(
      askPython(SCRIPT, null, [directory, String(effort(600)), String(seed)]),
    ) as Answer[];
    const snapshots = {
      "a.zarr": await open(await openSource(join(directory, "a.zarr"))),
      "b.nc": await open(await openSource(join(directory, "b.nc"))),
      "c.nc": await open(await openSource(join(directory, "c.nc"))),
      days: await open(await openJoin(join(directory, "days"), { kind: "concat", dimension: "time" })),
    };
    const wrong: unknown[] = [];
    let compared = 0;
    for (const answer of answers) {
      const { dataset, path, attrs, selection, points } = answer;
      const snapshot = snapshots[dataset as keyof typeof snapshots];
      const array = snapshot.arrays.get(path);
      if (array === undefined) {
        wrong.push([dataset, path, "refused", snapshot.refused.find((each) => each.path === path)?.reason]);
        continue;
      }
      const compare = async (
        expected: Said | null,
        options: ReadValuesOptions,
        find: () => Promise<ValueBlock>,
      ) => {
        if (expected === null) return;
        compared++;
        const said = say(await find());
        const isScaled = options.decode && array.stored.attrs.scale_factor !== undefined;
        const isSame =
          isScaled || array.stored.attrs.add_offset !== undefined
            ? JSON.stringify(plain(said)) === JSON.stringify(plain(expected))
            : JSON.stringify(said) === JSON.stringify(expected);
        if (!isSame)
          wrong.push([
            dataset,
            path,
            array.stored.dataType.zarr,
            attrs,
            array.document.fill_value,
            selection,
            options,
            plain(said),
            plain(expected),
          ]);
      };
      for (const decode of [false, true]) {
        const [box, at] = decode
          ? [answer.decoded, answer.decodedPoints]
          : [answer.stored, answer.storedPoints];
        await compare(box, { decode }, () => values.read(snapshot, array, selection, { decode }));
        if (points.length > 0)
          await compare(at, { decode }, () => values.readPoints(snapshot, array, points, { decode }));
        if (box?.bytes === undefined) continue;
        const pieces: Uint8Array[] = [];
        const options = { decode, pieceBytes: 64, byteOrder: "big" } as const;
        for await (const { bytes, dataType } of values.stream(snapshot, array, selection, options)) {
          const wordSize =
            dataType.byteOrder === "|"
              ? 1
              : dataType.kind === "U"
                ? 4
                : dataType.kind === "c"
                  ? dataType.itemSize / 2
                  : dataType.itemSize;
          for (let at = 0; at < bytes.length; at += wordSize) bytes.subarray(at, at + wordSize).reverse();
          pieces.push(bytes);
        }
        const streamed = { dtype: box.dtype, bytes: Buffer.concat(pieces).toString("base64") };
        compared++;
        if (JSON.stringify(plain(streamed)) !== JSON.stringify(plain(box)))
          wrong.push([dataset, path, selection, "streamed", decode]);
      }
    }
    t.ok(compared > answers.length * 2);
    t.same(wrong.slice(0, 5), [], `of ${compared} of seed ${seed}: ${wrong.length}`);
  },
);
