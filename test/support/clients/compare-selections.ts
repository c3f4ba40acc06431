import { writeFile } from "node:fs/promises";
import { tableFromIPC } from "apache-arrow";
import { askPython } from "./ask-python.js";

/** An answer in a file, and the selection from the file it was asked of. */
export interface AnswerCase {
  /** Says in the list of differences which answer it was. */
  readonly query: string;
  /** Python that makes the selection of `ds`, the decoded dataset. */
  readonly code: string;
  /** Labels of the answer that are not the stored ones, by dimension. */
  readonly labels?: Readonly<Record<string, readonly number[]>>;
  readonly form: string;
  /** Whether the answer is decoded. Default: that of its format. */
  readonly isDecoded?: boolean;
  /** Path of the answer: of Arrow, what {@link writeAnswer} made of it. */
  readonly answer: string;
  readonly file: string;
  readonly engine: string;
  readonly group: string | null;
  /** What names in the answer have before those of the group. */
  readonly prefix: string;
  /** The variable of npy. */
  readonly variable: string;
}

/** Compares answers with xarray's selection from the same file. Prints what differs. */
const COMPARE = `
import functools, json, sys, traceback
import numpy as np, pandas as pd, xarray as xr
wrong = []
def text_of(v):
    try: return v.decode("utf-8")
    except UnicodeDecodeError: return v.decode("latin1")
def canonical(values):
    values = np.asarray(values)
    kind = values.dtype.kind
    if kind == "M":
        unit = "ns" if values.dtype.str.endswith("[ns]") else "us"
        return np.array(["" if np.isnat(v) else str(np.datetime_as_string(v, unit)) for v in values.ravel()], dtype=object).reshape(values.shape)
    if kind == "m": return values.astype("m8[s]").astype("i8")
    if kind == "S": return np.array([text_of(v) for v in values.ravel()], dtype=object).reshape(values.shape)
    if kind in "OU": return np.array([word(v) for v in values.ravel()], dtype=object).reshape(values.shape)
    return values
def word(v):
    if v is None or v is pd.NaT or isinstance(v, float) and v != v: return ""
    if isinstance(v, bytes): return text_of(v)
    return v.isoformat() if hasattr(v, "isoformat") else str(v)
def same(a, b):
    a, b = canonical(a), canonical(b)
    if a.shape != b.shape: return False
    if b.dtype.kind == "O" and a.dtype.kind == "O":
        return all(x == y or is_time(y) and same_time(x, y) for x, y in zip(a.ravel(), b.ravel()))
    if a.dtype.kind == "f" and a.ndim == 0: return bool(np.isclose(a, b, rtol=1e-6, equal_nan=True))
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f" and b.dtype.kind == "f"))
def is_time(text): return len(text) > 15 and text[4] == "-" and text[10] == "T"
def same_time(a, b):
    return a.split(".")[0] == b.split(".")[0] and (a.split(".") + [""])[1].rstrip("0") == (b.split(".") + [""])[1].rstrip("0")
def as_type(have, want):
    # What JSON and pandas make of numbers: missing ones are None, long integers texts.
    have = np.asarray(have)
    if want.dtype.kind == "O": return canonical(have.astype(object)) if have.dtype.kind != "M" else have
    if want.dtype.kind == "f": return have.astype("f8").astype(want.dtype)
    if want.dtype.kind in "iub": return have.astype(want.dtype) if want.dtype.kind != "b" or have.dtype.kind == "b" else have
    return have

@functools.lru_cache(maxsize=8)
def opened(file, engine, group):
    how = dict(filename_or_obj=file, engine=engine, group=group, decode_timedelta=False)
    if engine == "zarr": how = dict(filename_or_obj=file, engine="zarr", chunks={}, decode_timedelta=False)
    return [xr.open_dataset(**how, **more).load() for more in ({}, {"decode_times": False}, {"decode_cf": False})]

for case in json.load(sys.stdin):
    form, prefix = case["form"], case["prefix"]
    decoded = case.get("isDecoded", form not in ("nc", "npy"))
    def fail(*what): wrong.append([case["query"], form, decoded, *[" ".join(str(w).split())[-700:] for w in what]])
    try:
        ds, half, raw = opened(case["file"], case["engine"], case["group"])
        placed = eval(case["code"], {"ds": ds.assign_coords({f"i_{d}": (d, np.arange(n)) for d, n in ds.sizes.items()}), "np": np, "xr": xr})
        indexes = {d: placed[f"i_{d}"] for d in ds.sizes if f"i_{d}" in placed}
        expected = placed.drop_vars([f"i_{d}" for d in ds.sizes if f"i_{d}" in placed])
        def picked(other):
            other = other.isel({d: i.drop_vars(list(i.coords)) for d, i in indexes.items()})
            names = [n for n in other.variables if n in expected.variables]
            return other[names].set_coords([n for n in expected.coords if n in names])
        def labelled(other): return other.assign_coords({n: (n, np.array(v, other[n].dtype), other[n].attrs) for n, v in case.get("labels", {}).items()})
        half, stored, expected = labelled(picked(half)), labelled(picked(raw)), labelled(expected)
        def in_answer(name): return prefix + name if name in raw.variables else name
        def check_dims(have, want):
            if [d[len(prefix):] if d.startswith(prefix) and prefix else d for d in have.dims] != list(want.dims): fail(have.name, "dims", have.dims, want.dims)
        if form == "nc":
            plain = half if decoded else stored
            got = xr.open_dataset(case["answer"], **({"decode_times": False, "decode_timedelta": False} if decoded else {"decode_cf": False}))
            for name in expected.variables:
                want, have = plain[name], got[prefix + name]
                if want.dtype.kind in "iuf":
                    # NetCDF has no half floats.
                    kind = np.dtype("f4") if want.dtype == "f2" else want.dtype.newbyteorder("=")
                    if have.ndim and have.dtype.newbyteorder("=") != kind: fail(name, "type", have.dtype, want.dtype)
                    if not same(have, want): fail(name, "values", have.values, want.values)
            got = xr.open_dataset(case["answer"], decode_timedelta=False)
            if set(got.data_vars) != {prefix + n for n in expected.data_vars}: fail("variables", list(got.data_vars), list(expected.data_vars))
            for name in expected.variables:
                have = got[prefix + name]
                if not same(have, expected[name]): fail(name, "values", have.values, expected[name].values)
                check_dims(have, expected[name])
        elif form == "json":
            from_file = expected if decoded else stored
            content = json.load(open(case["answer"]))
            got = xr.Dataset.from_dict(content)
            if list(content) != ["coords", "attrs", "dims", "data_vars"]: fail("keys", list(content))
            if set(got.data_vars) != {prefix + n for n in from_file.data_vars}: fail("variables", list(got.data_vars), list(from_file.data_vars))
            for name in from_file.variables:
                have, want = got[prefix + name], from_file[name]
                if not same(as_type(have.values, canonical(want.values)), want.values): fail(name, "values", have.values, want.values)
                check_dims(have, want)
                if decoded and set(have.attrs) != set(want.attrs): fail(name, "attrs", have.attrs, want.attrs)
        elif form in ("csv", "arrow"):
            from_file = expected if decoded else stored
            if form == "csv":
                got = pd.read_csv(case["answer"], float_precision="round_trip", keep_default_na=False, na_values=[""])
                columns = {n: got[n].values for n in got.columns}
            else:
                content = json.load(open(case["answer"]))
                units = {"SECOND": "s", "MILLISECOND": "ms", "MICROSECOND": "us", "NANOSECOND": "ns"}
                def column(kind, items):
                    unit = units[kind.split("<")[1][:-1]] if "<" in kind else ""
                    if unit: return np.array([v if v is not None else -2**63 for v in map(lambda v: v and int(v), items)], dtype="i8").view(f"{'M' if kind[0] == 'T' else 'm'}8[{unit}]")
                    if kind == "Utf8": return np.array(items, dtype=object)
                    return np.array([int(v) if "nt" in kind or kind == "Bool" else float(v) for v in items], dtype=kind.lower())
                columns = {n: column(kind, items) for n, kind, items in content}
            want = from_file.to_dataframe().reset_index() if from_file.sizes else pd.DataFrame({n: [from_file[n].values[()]] for n in from_file.variables})
            if set(columns) != {in_answer(n) for n in want.columns}: fail("columns", list(columns), list(want.columns))
            order = [d for c in columns for d in from_file.sizes if in_answer(d) == c]
            if order != list(from_file.sizes): want = from_file.to_dataframe(dim_order=order).reset_index()
            for name in want.columns:
                have, target = columns[in_answer(name)], want[name].values
                # Indexes of pandas are doubles and 64-bit integers.
                if name in from_file.variables and target.dtype.kind in "iuf": target = target.astype(from_file[name].dtype)
                # numpy 1 makes doubles of masked scalars.
                if name in from_file.variables and from_file[name].ndim == 0 and target.dtype.kind == "f":
                    if not np.allclose(have.astype(target.dtype).astype("f8"), target.astype("f8"), rtol=1e-6, equal_nan=True): fail(name, "values", have, target)
                    continue
                if form == "arrow" and target.dtype.kind in "iufb" and have.dtype != target.dtype.newbyteorder("="): fail(name, "type", have.dtype, target.dtype)
                if not same(as_type(have, canonical(target)), target): fail(name, "values", have, target)
        elif form == "npy":
            want = (half if decoded else stored)[case["variable"]]
            got = np.load(case["answer"])
            if not same(got, want.values): fail("values", got, want.values)
            if want.dtype.kind in "iufb" and want.ndim and got.dtype.newbyteorder("=") != want.dtype.newbyteorder("="): fail("type", got.dtype, want.dtype)
    except Exception as error:
        fail("failed", traceback.format_exc()[-600:])
json.dump(wrong, sys.stdout)
`;

/** Returns what differs between answers and xarray's selections: per difference the query, the format, and what was found and expected. */
export function differingAnswers(cases: readonly AnswerCase[]): readonly unknown[] {
  return JSON.parse(askPython(COMPARE, cases)) as unknown[];
}

/** Writes an answer to a file; of Arrow its columns as JSON: name, type, items as texts or null. */
export async function writeAnswer(path: string, form: string, bytes: Uint8Array): Promise<void> {
  await writeFile(path, form === "arrow" ? JSON.stringify(arrowColumns(bytes)) : bytes);
}

/** Returns the columns of a table: name, type, items as texts or null; of times their numbers. */
export function arrowColumns(
  bytes: Uint8Array,
): readonly (readonly [name: string, type: string, items: readonly (string | null)[]])[] {
  const table = tableFromIPC(bytes);
  return table.schema.fields.map(({ name, type }, index) => {
    const column = table.getChildAt(index)!;
    const isTime = /^(?:Timestamp|Duration)/.test(String(type));
    const items = column.data.flatMap((data) =>
      Array.from({ length: data.length }, (_, at) =>
        data.getValid(at) ? String((data.values as BigInt64Array)[at]) : null,
      ),
    );
    const texts = () =>
      Array.from(column, (each) =>
        typeof each === "boolean" ? `${Number(each)}` : each === null ? null : String(each),
      );
    return [name, String(type), isTime ? items : texts()];
  });
}
