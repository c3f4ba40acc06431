import t from "tap";
import { convertPiece } from "../../src/codec/convert-items.js";
import { OWN_MEMORY } from "../../src/codec/kernel/kernel-memory.js";
import { askPython } from "../support/clients/ask-python.js";
import { clientMissing } from "../support/clients/require-client.js";
import { type UnpackFields, unpackConversion } from "../support/codec/unpack-conversion.js";

/** Decodes random items with xarray: of each type, byte order and packing. */
const DECODE = `
import base64, json, numpy, xarray
random = numpy.random.default_rng(18)
out = []
for kind in ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]:
    for order in "<>":
        for attrs in [
            {"scale_factor": 0.1}, {"scale_factor": 0.01, "add_offset": 273.15}, {"add_offset": -7.3},
            {"scale_factor": 0.1, "_FillValue": 17}, {"_FillValue": 17, "missing_value": 99},
            {"scale_factor": 3.0, "add_offset": 1e-3, "missing_value": 99},
        ]:
            dtype = numpy.dtype(order + kind)
            if kind[0] == "f":
                items = (random.standard_normal(500) * 1000).astype(dtype)
            else:
                bounds = numpy.iinfo(dtype)
                items = random.integers(bounds.min, bounds.max, 500, dtype.newbyteorder("="), endpoint=True).astype(dtype)
            items[::7] = 17
            items[::11] = 99
            attrs = {name: dtype.type(value) if name in ("_FillValue", "missing_value") else value for name, value in attrs.items()}
            found = xarray.decode_cf(xarray.Dataset({"a": ("x", items, attrs)}))["a"].values
            out.append({
                "from": dtype.str,
                "to": found.dtype.newbyteorder("<").str,
                "scale": attrs.get("scale_factor"), "offset": attrs.get("add_offset"),
                "missing": [int(attrs[name]) for name in ("_FillValue", "missing_value") if name in attrs],
                "items": base64.b64encode(items.tobytes()).decode(),
                "values": base64.b64encode(found.astype(found.dtype.newbyteorder("<")).tobytes()).decode(),
            })
print(json.dumps(out))
`;

interface Decoded extends UnpackFields {
  readonly items: string;
  readonly values: string;
}

t.test("items are unpacked to the bits that xarray has", { skip: clientMissing("xarray") }, async (t) => {
  for (const { items, values, ...fields } of JSON.parse(askPython(DECODE)) as Decoded[]) {
    const bytes = new Uint8Array(Buffer.from(items, "base64"));
    const found = convertPiece(bytes, unpackConversion(fields), OWN_MEMORY);
    t.equal(Buffer.from(found).compare(Buffer.from(values, "base64")), 0, JSON.stringify(fields));
  }
});
