import { join } from "node:path";
import t from "tap";
import { askPython } from "../../support/clients/ask-python.js";
import { type AnswerCase, differingAnswers, writeAnswer } from "../../support/clients/compare-selections.js";
import { RANDOM_ARRAYS } from "../../support/clients/random-arrays.js";
import { clientMissing } from "../../support/clients/require-client.js";
import { effort } from "../../support/effort.js";
import { startServer } from "../../support/servers/start-server.js";

t.setTimeout(1_800_000);

/** Writes random datasets: NetCDF in all its formats, with groups, and Zarr. Prints random selections of each. */
const WRITE = `
import json, os, random, sys
from urllib.parse import quote
import cftime, netCDF4, numcodecs, numpy as np, zarr
directory, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = random.Random(seed)
nprng = np.random.default_rng(seed)
${RANDOM_ARRAYS}
FORMATS = {"NETCDF3_CLASSIC": ["i1", "<i2", "<i4", "<f4", "<f8", "S1"], "NETCDF3_64BIT_OFFSET": ["i1", "<i2", "<i4", "<f4", "<f8", "S1"],
           "NETCDF3_64BIT_DATA": ["i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8", "S1"],
           "NETCDF4": [each for each in NUMBERS if "f2" not in each] + ["S1", "O", "O"], "zarr": NUMBERS + ["bool", "S5", "<U3", ">U2", "<M8[s]", "<M8[ns]", "<M8[h]", "<m8[s]", "O"]}
CALENDARS = ["standard", "gregorian", "proleptic_gregorian", "noleap", "365_day", "all_leap", "366_day", "360_day", "julian", None]
SINCE = ["2000-01-01", "1970-01-01 06:00:00", "1582-10-01", "1582-09-28T12:00", "0800-02-25", "9990-12-20", "1900-1-1 0:0:0"]
WORDS = ["Züri", "Bern", "a,b", 'c"d', "x y", "ÅØ", "nan", "e/f"]

def time_axis(length):
    attrs = {"units": rng.choice(["days", "hours", "seconds"]) + " since " + rng.choice(SINCE)}
    calendar = rng.choice(CALENDARS)
    if calendar is not None: attrs["calendar"] = calendar
    # A label of a whole second is all of it.
    step = rng.choice([1.0, 3.0, 31.0] if attrs["units"].startswith("s") else [0.25, 0.5, 1.0, 3.0, 31.0])
    values = rng.choice([0.0, 10.0, 700.0]) + np.arange(length) * step
    dtype = rng.choice(["<f8", "<i4", "<i4"]) if step >= 1 else "<f8"
    return values.astype(dtype), attrs

def dates(values, attrs):
    calendar = attrs.get("calendar", "standard")
    return [each.isoformat() for each in cftime.num2date(values, attrs["units"], calendar)]

def typed(attrs, dtype):
    # Attributes of numbers have a type in NetCDF.
    kind = np.dtype(dtype)
    out = {}
    for key, value in attrs.items():
        if key in ("scale_factor", "add_offset"): out[key] = np.float64(value)
        elif key == "missing_value":
            if np.all(np.asarray(value) >= (0 if kind.kind == "u" else -9)): out[key] = np.asarray(value, kind.newbyteorder("="))
        else: out[key] = value
    return out

def describe(types, is_first, has_groups):
    lengths = {"time": rng.randrange(1, 6), "lat": rng.randrange(1, 5), "lon": rng.randrange(1, 5), "n": rng.randrange(1, 4), "level": rng.randrange(1, 4)}
    dims = [dim for dim in lengths if rng.random() < 0.65] or ["time"]
    labels, variables = {}, []
    def add(name, dims, dtype, values, attrs, fill=None): variables.append(dict(name=name, dims=list(dims), dtype=dtype, values=values, attrs=attrs, fill=fill))
    # A group has the labels of the one above if it has none.
    if "time" in dims and (has_groups or rng.random() < 0.9):
        values, attrs = time_axis(lengths["time"])
        add("time", ["time"], values.dtype.str, values, attrs)
        labels["time"] = dates(values, attrs)
    if "lat" in dims:
        values = np.linspace(60, 40, lengths["lat"]).astype("<f4")
        if rng.random() < 0.3: values = values[::-1].copy()
        add("lat", ["lat"], "<f4", values, {"units": "degrees_north"})
        labels["lat"] = [repr(float(each)) for each in values]
    if "lon" in dims:
        values = np.arange(lengths["lon"]) * 30.0
        add("lon", ["lon"], "<f8", values, {"units": "degrees_east"})
        labels["lon"] = [repr(each) for each in values.tolist()]
    if "level" in dims and (has_groups or rng.random() < 0.7):
        values = np.array([1000, 850, 500][:lengths["level"]], "<i4")
        add("level", ["level"], "<i4", values, {"units": "hPa"})
        labels["level"] = [str(each) for each in values]
    coordinates = []
    if rng.random() < 0.4:
        add("height", [], "<f8", np.array(2.0), {"units": "m"})
        coordinates.append("height")
    if "n" in dims and rng.random() < 0.6:
        texts = rng.sample(WORDS, lengths["n"])
        if "O" in types: add("station", ["n"], "O", np.array(texts, dtype=object), {}, "" if "bool" in types else None)
        else:
            size = max(len(each.encode()) for each in texts)
            add("station", ["n", f"string{size}"], "S1", np.array([list(each.encode().ljust(size, b"\\0")) for each in texts], "u1").view("S1"), {"_Encoding": "utf-8"})
            lengths[f"string{size}"] = size
        coordinates.append("station")
    for index in range(rng.randrange(1, 5)):
        own = [dim for dim in dims if rng.random() < 0.7]
        if not is_first or rng.random() < 0.3: rng.shuffle(own)
        if is_first and "time" in own: own.sort(key=lambda dim: dim != "time")
        dtype = rng.choice(types)
        if dtype == "S1":
            size = rng.randrange(1, 5)
            lengths[f"string{size}"] = size
            shape = tuple(lengths[dim] for dim in own)
            texts = np.array([rng.choice(["", "a", "xyz", "bc"])[:size] for _ in range(int(np.prod(shape)))], dtype=f"S{size}").reshape(shape)
            add(f"v{index}", own + [f"string{size}"], "S1", np.ascontiguousarray(texts).view("S1").reshape(shape + (size,)), {})
            continue
        shape = tuple(lengths[dim] for dim in own)
        kind = np.dtype(dtype).kind if dtype != "O" else "O"
        fill = rng.choice([None, 3, 9]) if kind in "iuf" else "" if kind == "O" and "bool" in types else None
        values = items(dtype, shape)
        attrs = packing(dtype, fill is not None)
        if kind == "M": values = np.where(nprng.random(shape) < 0.2, np.datetime64("NaT"), values).astype(dtype)
        if kind in "if" and np.dtype(dtype).itemsize >= 4 and rng.random() < 0.25:
            # Times that are data, some missing where xarray can decode that: cftime cannot.
            fill = rng.choice([None, 3])
            attrs = {"units": "hours since " + rng.choice(SINCE[:2] if fill else SINCE), "calendar": rng.choice(CALENDARS[:3] if fill else CALENDARS[:-1])}
            values = nprng.integers(0, 3000, shape).astype(dtype)
            if fill: values = np.where(nprng.random(shape) < 0.2, fill, values).astype(dtype)
        if rng.random() < 0.5: attrs["long_name"] = "Größe"
        add(f"v{index}", own, dtype, values, attrs, fill)
    for each in variables:
        used = [name for name in coordinates if set(next(v for v in variables if v["name"] == name)["dims"]) - {d for d in lengths if d.startswith("string")} <= set(each["dims"])]
        if each["name"].startswith("v") and used: each["attrs"]["coordinates"] = " ".join(used)
    unlimited = "time" if rng.random() < 0.5 else None
    return lengths, labels, variables, unlimited

def write_nc(group, format, lengths, variables, unlimited):
    used = list(dict.fromkeys(dim for each in variables for dim in each["dims"]))
    for dim in used: group.createDimension(dim, None if dim == unlimited else lengths[dim])
    for each in variables:
        dtype = np.dtype(each["dtype"]) if each["dtype"] != "O" else str
        options = {}
        if dtype is not str: options["fill_value"] = False if each["fill"] is None else each["fill"]
        if format == "NETCDF4" and dtype is not str and dtype.kind != "S" and each["dims"]:
            options |= {"endian": "big" if dtype.byteorder == ">" else "little", "zlib": rng.random() < 0.5, "chunksizes": [rng.randrange(1, lengths[dim] + 1) for dim in each["dims"]]}
        variable = group.createVariable(each["name"], dtype if dtype is str else dtype.newbyteorder("="), each["dims"], **options)
        if dtype is not str: variable.set_auto_maskandscale(False)
        if dtype == np.dtype("S1"): variable.set_auto_chartostring(False)
        variable.setncatts(typed(each["attrs"], each["dtype"]))
        variable[...] = each["values"]

def write_zarr(path, lengths, variables):
    root = zarr.open_group(path, mode="w")
    root.attrs.put({"title": "random"})
    for each in variables:
        shape = each["values"].shape
        options = {"object_codec": numcodecs.VLenUTF8()} if each["dtype"] == "O" else {}
        chunks = tuple(rng.randrange(1, length + 1) for length in shape) if shape else True
        array = root.create_dataset(each["name"], shape=shape, dtype=each["dtype"] if each["dtype"] != "O" else object, chunks=chunks, fill_value=each["fill"], order=rng.choice("CF"), compressor=rng.choice([None, numcodecs.Zlib(1)]), **options)
        array[...] = each["values"]
        array.attrs.put({"_ARRAY_DIMENSIONS": each["dims"], **each["attrs"]})
    zarr.consolidate_metadata(path)

def pick(dim, length, labels, index_only):
    """Query and the argument of isel."""
    kind = rng.choice(["all", "index", "slice", "slice", "list"] if index_only else ["all", "index", "slice", "list", "label", "labels", "range", "nearest", "range"])
    if kind == "all": return [], None
    if kind == "index":
        at = rng.randrange(-length, length)
        return [f"isel.{dim}={at}"], str(at)
    if kind == "slice":
        begin, step = rng.randrange(length), rng.choice([1, 1, 2, 3])
        end = rng.randrange(begin + 1, length + 1)
        if rng.random() < 0.2: return [f"isel.{dim}=::{-step}"], f"slice(None, None, {-step})"
        return [f"isel.{dim}={begin}:{end}:{step}"], f"slice({begin}, {end}, {step})"
    if kind == "list":
        ats = [rng.randrange(length) for _ in range(rng.randrange(2, 5))]
        return [f"isel.{dim}={at}" for at in ats], str(ats)
    if kind in ("label", "nearest"):
        at = rng.randrange(length)
        prefix = "nearest::" if kind == "nearest" else ""
        return [f"{dim}={prefix}{quote(labels[at])}"], str(at)
    if kind == "labels":
        ats = [rng.randrange(length) for _ in range(2)]
        return [f"{dim}={quote(labels[at])}" for at in ats], str(ats)
    begin = rng.randrange(length)
    end = rng.randrange(begin, length)
    return [f"{dim}={quote(labels[begin])}/{quote(labels[end])}"], f"slice({begin}, {end + 1})"

cases = []
for number in range(count):
    format = rng.choice(list(FORMATS))
    name = f"{number}.zarr" if format == "zarr" else f"{number}.nc"
    path = os.path.join(directory, name)
    is_classic = format.startswith("NETCDF3")
    groups = [None, "a", "b/c"] if format == "NETCDF4" and rng.random() < 0.4 else [None]
    made = {}
    for group in groups:
        described = describe(FORMATS[format], is_classic, len(groups) > 1)
        made[group] = described
    if format == "zarr": write_zarr(path, *made[None][::2])
    else:
        with netCDF4.Dataset(path, "w", format=format) as file:
            file.title = "random"
            for group, (lengths, labels, variables, unlimited) in made.items():
                write_nc(file if group is None else file.createGroup(group), format, lengths, variables, unlimited)
    for group, (lengths, labels, variables, unlimited) in made.items():
        if group is not None and rng.random() < 0.5: continue
        data = [each for each in variables if each["name"].startswith("v")]
        for _ in range(2):
            chosen = rng.sample(data, rng.randrange(1, len(data) + 1))
            if rng.random() < 0.4: chosen = chosen[:1]
            # A group shares a dimension with the root only by its labels, so those of the same name stay apart.
            dims = list(dict.fromkeys(dim for each in chosen for dim in each["dims"] if not dim.startswith("string")))
            query, code = [], []
            for dim in dims:
                parts, index = pick(dim, lengths[dim], labels.get(dim), dim not in labels)
                query += parts
                if index is not None: code.append(f"{dim}={index}")
            names = [each["name"] for each in chosen]
            path_of = (lambda name: name if group is None else f"{group}/{name}")
            cases.append(dict(dataset=str(number), name=name, engine="zarr" if format == "zarr" else "netcdf4", group=group,
                query="&".join([f"var={path_of(each)}" for each in names] + query), code=f"ds[{names!r}].isel({', '.join(code)})",
                variable=names[0], isOne=len(names) == 1, format=format))
json.dump(cases, sys.stdout)
`;

interface RandomCase {
  readonly dataset: string;
  /** Of the file. */
  readonly name: string;
  readonly engine: string;
  readonly group: string | null;
  readonly query: string;
  readonly code: string;
  readonly variable: string;
  /** Whether npy can hold it. */
  readonly isOne: boolean;
  readonly format: string;
}

const SEED = Number(process.env.ZPUBLISH_TEST_SEED ?? 900);
const DATASETS_AT_ONCE = 40;

t.test(
  "random selections of random datasets are those of xarray in every format",
  { skip: clientMissing("xarray", "netcdf4") },
  async (t) => {
    let left = effort(160);
    for (let round = 0; left > 0; round += 1, left -= DATASETS_AT_ONCE) {
      const folder = t.testdir();
      const args = [folder, `${Math.min(left, DATASETS_AT_ONCE)}`, `${SEED + round}`];
      const cases = JSON.parse(askPython(WRITE, null, args)) as RandomCase[];
      const ids = new Map(cases.map(({ dataset, name }) => [dataset, name]));
      const datasets = Array.from(ids, ([id, name]) => ({
        ...{ id, location: join(folder, name), immutable: false, encoding: {}, variables: {} },
      }));
      const { server, url } = await startServer(t, { datasets });
      const asked: AnswerCase[] = [];
      const refused: string[] = [];
      for (const [index, each] of cases.entries()) {
        const forms = ["nc", "json", "csv", "arrow", ...(each.isOne ? ["npy"] : [])];
        for (const form of forms)
          for (const isDecoded of [false, true]) {
            const path = `/datasets/${each.dataset}/select?${each.query}&f=${form}&decode=${Number(isDecoded)}`;
            const response = await fetch(url + path);
            const bytes = Buffer.from(await response.arrayBuffer());
            if (response.status !== 200) {
              refused.push(`${each.format} ${path}: ${response.status} ${bytes}`);
              continue;
            }
            const answer = join(folder, `${index}-${Number(isDecoded)}.${form}`);
            await writeAnswer(answer, form, bytes);
            asked.push({
              ...{ query: `${each.format} ${path}`, form, isDecoded, answer, variable: each.variable },
              ...{ code: each.code, engine: each.engine, group: each.group, file: join(folder, each.name) },
              prefix: each.group === null ? "" : `${each.group.replaceAll("/", "_")}_`,
            });
          }
      }
      t.same(refused.slice(0, 5), [], `seed ${SEED + round}: refused`);
      const wrong = differingAnswers(asked);
      t.same(wrong.slice(0, 8), [], `seed ${SEED + round}: ${wrong.length} of ${asked.length}`);
      await server.close();
    }
  },
);
