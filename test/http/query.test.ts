import t from "tap";
import { chooseMediaType } from "../../src/http/headers.js";
import { parseQuery, wrongParameter } from "../../src/http/query.js";

t.test("a query is parsed into the values of its parameters", async (t) => {
  const names = { once: ["f", "isel.{dimension}"], repeated: ["var"] };
  const parse = (query: string) => Object.fromEntries(parseQuery(query, names));
  t.strictSame(parse(""), {});
  t.strictSame(parse("var=t2m&f=nc&var=u%2010&isel.time=0:2&token=secret"), {
    var: ["t2m", "u 10"],
    f: ["nc"],
    "isel.time": ["0:2"],
  });
  for (const [query, parameter, type, message] of [
    ["vars=a", "vars", "unknown_parameter", "Expected one of f, isel.{dimension}, var, received 'vars'"],
    ["isel.=1", "isel.", "unknown_parameter", "Expected one of f, isel.{dimension}, var, received 'isel.'"],
    ["f=nc&f=csv", "f", "repeated_parameter", "Expected the parameter once, received 'csv'"],
    ["isel.x=1&isel.x=2", "isel.x", "repeated_parameter", "Expected the parameter once, received '2'"],
  ] as const) {
    t.throws(() => parse(query), { code: "invalid-query", message, details: { parameter, type } }, query);
  }
  t.throws(() => parseQuery("a=1", {}), { message: "Expected no parameter, received 'a'" });
  t.match(wrongParameter("line 3", "float_parsing", "a number", "x".repeat(200), "body"), {
    code: "invalid-body",
    message: `Expected a number, received '${"x".repeat(100)}…'`,
  });
});

t.test("a media type is chosen by the greatest weight, the first of several", async (t) => {
  const offered = ["application/json", "text/csv", "application/x-netcdf"] as const;
  for (const [accept, chosen] of [
    [undefined, "application/json"],
    ["*/*", "application/json"],
    ["text/csv", "text/csv"],
    ["text/csv;charset=utf-8;q=0.5, application/x-netcdf", "application/x-netcdf"],
    ["text/*, */*;q=0.1", "text/csv"],
    ["application/*;q=0.5, application/json;q=0", "application/x-netcdf"],
    ["image/png", undefined],
    ["application/json;q=0", undefined],
    ["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "application/json"],
  ] as const)
    t.equal(chooseMediaType(accept, offered), chosen, `${accept}`);
});
