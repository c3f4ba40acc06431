import fc from "fast-check";
import t from "tap";
import { isCategorical, packingOf } from "../../src/cf/packing.js";
import type { JsonObject } from "../../src/json/json-value.js";
import { parseJson } from "../../src/json/parse-json.js";

const NONE = {
  missing: [],
  validMin: Number.NEGATIVE_INFINITY,
  validMax: Number.POSITIVE_INFINITY,
  scale: 1,
  offset: 0,
  isUnsigned: undefined,
};

/** Attributes as a document has them, so that numbers are of every form. */
function attrsOf(text: string): JsonObject {
  return parseJson(text) as JsonObject;
}

t.test("attributes become a packing", async (t) => {
  t.same(packingOf({}), NONE);
  t.same(packingOf(attrsOf('{"scale_factor":1e-2,"add_offset":273.150}')), {
    ...NONE,
    scale: 0.01,
    offset: 273.15,
  });
  t.match(
    packingOf(attrsOf('{"_FillValue":-32768,"missing_value":[-1.0,9e99]}')).missing,
    [-32768, -1, 9e99],
  );
  t.same(packingOf(attrsOf('{"_FillValue":NaN,"missing_value":"none"}')), NONE, "NaN is missing anyway");
  t.match(packingOf({ valid_range: [0, 100] }), { validMin: 0, validMax: 100 });
  t.match(packingOf({ valid_min: 1, valid_max: 9, valid_range: [0, 100] }), { validMin: 1, validMax: 9 });
  t.match(packingOf({ valid_min: 3 }), { validMin: 3, validMax: Number.POSITIVE_INFINITY });
  t.equal(packingOf({ _Unsigned: "true" }).isUnsigned, true);
  t.equal(packingOf({ _Unsigned: "False" }).isUnsigned, false);
  t.match(packingOf({ scale_factor: "0.1", add_offset: null, valid_range: "0 1" }), NONE);
});

t.test("the array's fill value is a missing one, zero as well, and each is there once", async (t) => {
  t.same(packingOf({}, 0).missing, [0]);
  t.same(packingOf({}, null).missing, []);
  t.same(packingOf({ _FillValue: 0, missing_value: 0 }, 0).missing, [0]);
  t.same([...packingOf({ _FillValue: 1 }, 0).missing].sort(), [0, 1]);
  t.same(packingOf({}, "NaN").missing, []);
  t.same(packingOf({}, false).missing, []);
  t.same(packingOf({}, parseJson("-9223372036854775808")).missing, [-(2 ** 63)]);
});

t.test("every number of attributes is read, whatever its form", async () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer(), (scale, offset) => {
      const packing = packingOf(attrsOf(`{"scale_factor":${String(scale)},"add_offset":${offset}.0}`));
      return packing.scale === scale && packing.offset === offset;
    }),
  );
});

t.test("flags are categories", async (t) => {
  t.ok(isCategorical({ flag_values: [0, 1], flag_meanings: "sea land" }));
  t.ok(isCategorical({ flag_masks: [1, 2] }));
  t.notOk(isCategorical({ flag_meanings: "sea land" }));
});
