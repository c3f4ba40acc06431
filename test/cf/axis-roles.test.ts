import fc from "fast-check";
import t from "tap";
import { type AxisRole, axisRole, isLatitude, isLongitude, planeOf } from "../../src/cf/axis-roles.js";
import type { JsonObject } from "../../src/json/json-value.js";

t.test("attributes tell the role of an axis, in the order of the conventions", async (t) => {
  const roles: readonly (readonly [JsonObject, AxisRole | undefined])[] = [
    [{ axis: "Z", standard_name: "latitude" }, "Z"],
    [{ axis: "x" }, "X"],
    [{ axis: "Q", standard_name: "time" }, "T"],
    [{ standard_name: "projection_y_coordinate", units: "m" }, "Y"],
    [{ standard_name: "air_pressure" }, "Z"],
    [{ standard_name: "toString" }, undefined],
    [{ units: "degrees_north" }, "Y"],
    [{ units: "degree_N" }, "Y"],
    [{ units: "degreeE" }, "X"],
    [{ units: "degrees" }, undefined],
    [{ units: "hours since 1900-01-01" }, "T"],
    [{ units: "since" }, undefined],
    [{ units: "hPa" }, "Z"],
    [{ units: "m", positive: "down" }, "Z"],
    [{ units: 5, axis: ["X"] }, undefined],
    [{}, undefined],
  ];
  for (const [attrs, role] of roles) t.equal(axisRole("some", attrs), role, JSON.stringify(attrs));
});

t.test("names of dimensions tell the role of axes without attributes", async (t) => {
  const names: Readonly<Record<string, AxisRole | undefined>> = {
    ...{ time: "T", Times: "T", lev: "Z", depth: "Z", south_north: "Y", LAT: "Y", nav_lon: "X", xi_rho: "X" },
    ...{ band: undefined, station: undefined, latitudes: undefined, xy: undefined },
  };
  for (const [name, role] of Object.entries(names)) t.equal(axisRole(name, undefined), role, name);
  t.equal(axisRole("lat", { units: "degrees_east" }), "X", "attributes are believed before names");
});

t.test("latitudes and longitudes are told from coordinates of rotated grids", async (t) => {
  t.ok(isLatitude({ standard_name: "latitude", units: "radian" }));
  t.ok(isLatitude({ units: "degrees_north" }));
  t.notOk(isLatitude({ standard_name: "grid_latitude", units: "degrees" }));
  t.ok(isLongitude({ units: "degrees_east" }));
  t.notOk(isLongitude({ units: "degrees_north" }));
});

t.test("a picture shows the axes with roles, else the last two", async (t) => {
  const plane = (...dims: string[]) => planeOf(dims, () => undefined);
  t.same(plane("time", "lat", "lon"), { y: 1, x: 2 });
  t.same(plane("lon", "lat", "time"), { y: 1, x: 0 }, "transposed");
  t.same(plane("a", "b", "c"), { y: 1, x: 2 });
  t.same(plane("lat", "a", "b"), { y: 0, x: 2 }, "one role: it and the last other one");
  t.same(plane("a", "b", "lon"), { y: 1, x: 2 });
  t.same(plane("time", "lev"), { y: 0, x: 1 });
  t.equal(plane("lat"), undefined);
  t.equal(plane(), undefined);
});

t.test("both axes of a picture differ and exist", async () => {
  const dims = fc.array(fc.constantFrom("t", "z", "y", "x", "a", "b", "lat", "lon"), {
    minLength: 2,
    maxLength: 6,
  });
  fc.assert(
    fc.property(dims, (names) => {
      const plane = planeOf(names, () => undefined);
      return plane !== undefined && plane.x !== plane.y && plane.x in names && plane.y in names;
    }),
  );
});
