/**
 * Python that makes random arrays: `items(dtype, shape)`, and attributes that say how they are packed: `packing(dtype, fill)`. It needs
 * `rng` (of `random`), `nprng` (of numpy) and `np`.
 */
export const RANDOM_ARRAYS = `
NUMBERS = ["i1", "u1", "<i2", ">i2", "<u2", ">u2", "<i4", ">i4", "<u4", "<i8", ">i8", "<u8", "<f2", ">f2", "<f4", ">f4", "<f8", ">f8"]
OTHERS = ["<c8", ">c16", "bool", "S5", "<U3", ">U2", "<M8[s]", ">M8[ns]", "<m8[D]", "O"]

def items(dtype, shape):
    size = int(np.prod(shape))
    dtype = np.dtype(dtype)
    if dtype.kind == "O":
        return np.array([rng.choice(["", "a", "déjà", "x" * 9, "b,\\"c\\""]) for _ in range(size)], dtype=object).reshape(shape)
    if dtype.kind in "SU":
        return np.array([rng.choice(["", "a", "xyz"]) for _ in range(size)]).astype(dtype).reshape(shape)
    if dtype.kind == "b":
        return nprng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "mM":
        return nprng.integers(-10**6, 10**6, shape).astype("i8").astype(dtype)
    small = nprng.integers(-5, 12, shape)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        wide = nprng.integers(info.min, info.max, shape, dtype=dtype.newbyteorder("="), endpoint=True)
        return np.where(nprng.random(shape) < 0.6, small.astype(dtype), wide).astype(dtype)
    values = np.where(nprng.random(shape) < 0.5, small, nprng.normal(0, 300, shape))
    values = np.where(nprng.random(shape) < 0.05, np.nan, values)
    values = np.where(nprng.random(shape) < 0.03, -0.0, values)
    if dtype.kind == "c":
        values = values + 1j * np.where(nprng.random(shape) < 0.5, small, values)
    return values.astype(dtype)

def packing(dtype, fill):
    kind = np.dtype(dtype).kind
    if kind not in "iuf":
        return {}
    attrs = {}
    if rng.random() < 0.5: attrs["scale_factor"] = rng.choice([0.01, 2.0, 1, 1e-9, float(np.float32(0.1))])
    if rng.random() < 0.4: attrs["add_offset"] = rng.choice([273.15, 0, -5, 1e6])
    if rng.random() < 0.4: attrs["missing_value"] = rng.choice([3, [3], [4, 5, -2]]) if fill else rng.choice([7, 0])
    if kind in "iu" and rng.random() < 0.3: attrs["_Unsigned"] = "true" if kind == "i" else "false"
    return attrs
`;
