import t from "tap";
import {
  cutVariable,
  cutVariables,
  parseDap2Query,
  parseDap4Query,
} from "../../../src/plugins/opendap/constraint.js";

const SHAPES = {
  ...{ t2m: [4, 3, 5], lat: [3], crs: [], "a/b": [2], "w%20s": [6], "a.b": [2], none: [0] },
  ...{ "x,y[0]": [2], "x;(y)|": [2], "50%": [2] },
};
const VARIABLES = new Map(Object.entries(SHAPES).map(([name, shape]) => [name, { name, shape }]));
const find = (name: string) => VARIABLES.get(name);

/** What a query asks for, in short: `t2m 0+2*2 1+1*1 …`, each axis as begin, count and step. */
function cut(query: string, protocol: "dap2" | "dap4" = "dap2"): string[] | string {
  try {
    const constraint = protocol === "dap2" ? parseDap2Query(query) : parseDap4Query(query).constraint;
    const separator = protocol === "dap2" ? "," : ";";
    const slices = cutVariables(constraint, separator, [], (name) => find(name.replace(/^\//, "")));
    if (slices.length === 0) return "all";
    return slices.map(({ variable, axes }) =>
      [variable.name, ...axes.map(({ begin, count, step }) => `${begin}+${count}*${step}`)].join(" "),
    );
  } catch (error) {
    return (error as Error).message;
  }
}

t.test("constraints of DAP2 are read as clients send them", async (t) => {
  for (const [query, expected] of [
    ["", "all"],
    ["token=secret", "all"],
    ["&token=secret", "all"],
    ["lat", ["lat 0+3*1"]],
    ["crs,lat[1]", ["crs", "lat 1+1*1"]],
    ["lat[1]&token=secret", ["lat 1+1*1"]],
    ["t2m[2][0:2][4]", ["t2m 2+1*1 0+3*1 4+1*1"]],
    ["t2m[0:3][0:2:2][1:3:4]", ["t2m 0+4*1 0+2*2 1+2*3"]],
    ["t2m%5B0:1:3%5D%5B2%5D%5B0%3A2%3A4%5D%2Clat", ["t2m 0+4*1 2+1*1 0+3*2", "lat 0+3*1"]],
    // pydap leaves out what is whole at the end.
    ["t2m[1:1:1]&", ["t2m 1+1*1 0+3*1 0+5*1"]],
    ["w%2520s,a.b[0]", ["w%20s 0+6*1", "a.b 0+1*1"]],
    ["none", ["none 0+0*1"]],
    ["x%2Cy%5B0%5D", ["x,y[0] 0+2*1"]],
    ["x%2Cy%5B0%5D[1],lat", ["x,y[0] 1+1*1", "lat 0+3*1"]],
    ["x%252Cy%255B0%255D%5B1%5D", ["x,y[0] 1+1*1"]],
    ["x%3B%28y%29%7C[0],50%25", ["x;(y)| 0+1*1", "50% 0+2*1"]],
    ["lat%2Ccrs", ["lat 0+3*1", "crs"]],
    // A stride beyond the end takes the first index.
    ["lat[0:999999999999999:2]", ["lat 0+1*999999999999999"]],
  ] as const)
    t.strictSame(cut(query), expected, query);
});

t.test("constraints that cannot be are refused", async (t) => {
  for (const [query, message] of [
    ["x", /name of a variable, received 'x'/],
    ["lat,lat", /each variable once/],
    ["lat,", /name of a variable, received ''/],
    [",lat", /name of a variable, received ''/],
    ["lat[3]", /indexes within 0 to 2 of axis 0 of 'lat'/],
    ["lat[2:1]", /ascending/],
    ["lat[0:0:2]", /stride of at least 1/],
    ["lat[-1]", /\[first:stride:last\], received '\[-1\]'/],
    ["lat[0:1:2:3]", /\[first:stride:last\]/],
    ["lat[0:]", /\[first:last\]/],
    ["lat[]", /\[index\]/],
    ["lat[0", /received '\[0'/],
    ["t2m[0]x[0]", /received '\[0\]x'/],
    ["[0]", /name of a variable, received '\[0\]'/],
    ["lat[0][0]", /indexes of 1 axes of 'lat', received 'those of 2'/],
    ["crs[0]", /indexes of 0 axes/],
    ["none[0]", /indexes within 0 to -1/],
    ["lat[9999999999999999]", /received '\[9999999999999999\]'/],
    ["lat [0]", /received 'lat '/],
    ["lat&lat>30", /no condition/],
    ["lat>30", /received 'lat>30'/],
    ["geogrid(t2m,62,206,56,210)", /received 'geogrid\(t2m'/],
    ["%ZZ", /percent escapes/],
    ["%ff", /percent escapes/],
  ] as const)
    t.match(cut(query), message, query);
});

t.test("constraints of DAP4 are read as clients send them", async (t) => {
  for (const [query, expected] of [
    ["", "all"],
    ["dap4.ce=", "all"],
    ["dap4.checksum=true", "all"],
    ["dap4.ce=/lat", ["lat 0+3*1"]],
    ["dap4.ce=/t2m[1:1:1][0:2][];lat[1:]", ["t2m 1+1*1 0+3*1 0+5*1", "lat 1+2*1"]],
    ["dap4.ce=%2Ft2m%5B0%3A2%3A3%5D;/a/b[1]", ["t2m 0+2*2 0+3*1 0+5*1", "a/b 1+1*1"]],
    ["dap4.ce=/t2m[][0:2:][4]&dap4.checksum=true&token=x", ["t2m 0+4*1 0+2*2 4+1*1"]],
    ["dap4.ce=/none[];/crs", ["none 0+0*1", "crs"]],
    ["dap4.ce=/x%3B(y)%7C[0];/50%25", ["x;(y)| 0+1*1", "50% 0+2*1"]],
    ["dap4.ce%3D/w%252520s", ["w%20s 0+6*1"]],
    ["dap4.ce=/lat[:1]", "Expected [index], [first:last] or [first:stride:last], received '[:1]'"],
    ["dap4.ce=/lat;", "Expected the name of a variable, received ''"],
    ["dap4.ce=/lat{a}", "Expected the name of a variable, received '/lat{a}'"],
    ["lat", "Expected dap4.ce=… or dap4.checksum=true|false, received 'lat'"],
    ["dap4.checksum=1", "Expected dap4.ce=… or dap4.checksum=true|false, received 'dap4.checksum=1'"],
  ] as const)
    t.strictSame(cut(query, "dap4"), expected, query);
  for (const [query, expected] of [
    ["", false],
    ["dap4.checksum=true", true],
    ["dap4.ce=/lat&dap4.checksum=FALSE", false],
  ] as const)
    t.equal(parseDap4Query(query).hasChecksums, expected, query);
});

t.test("a slice is whole if all of its axes are", async (t) => {
  const variable = { shape: [4, 3] };
  t.equal(cutVariable(variable).isWhole, true);
  t.equal(cutVariable(variable, ["[0:3]"]).isWhole, true);
  t.equal(cutVariable(variable, ["[0:2]"]).isWhole, false);
  t.strictSame(cutVariable(variable, ["[1:2:3]"]).shape, [2, 3]);
});
