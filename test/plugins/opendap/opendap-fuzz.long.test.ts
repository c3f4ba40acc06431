import { request } from "node:http";
import fc from "fast-check";
import t from "tap";
import { ZpublishError } from "../../../src/errors.js";
import { createMemorySource, type MemoryArray } from "../../../src/open/memory-source.js";
import { cutVariables, parseDap2Query, parseDap4Query } from "../../../src/plugins/opendap/constraint.js";
import { datasetOf } from "../../support/datasets/sample-tree.js";
import { effort } from "../../support/effort.js";
import { startServer } from "../../support/servers/start-server.js";

t.setTimeout(600_000);

const SHAPES: Readonly<Record<string, readonly number[]>> = {
  ...{
    t2m: [4, 3, 5],
    lat: [3],
    crs: [],
    none: [0, 3],
    text: [2],
    "a/v": [2],
    "odd name": [1],
    "a,b[1]": [2],
  },
};

const index = fc.oneof(
  fc.integer({ min: -2, max: 7 }).map(String),
  fc.constantFrom(
    "",
    "*",
    "1e3",
    "0x1",
    "007",
    "4294967296",
    "9007199254740993",
    "9".repeat(40),
    "NaN",
    " 1",
  ),
);
const range = fc
  .array(index, { minLength: 0, maxLength: 4 })
  .chain((parts) =>
    fc.constantFrom(`[${parts.join(":")}]`, `%5B${parts.join("%3A")}%5D`, `[${parts.join(":")}`),
  );
const name = fc.oneof(
  fc.constantFrom(...Object.keys(SHAPES), "a_v", "/a/v", "//a/v/", "odd%20name", "odd%2520name", "t2m.t2m"),
  fc.constantFrom("", "%", "%ff", "%00", "__proto__", "constructor", "a".repeat(500), "t2m()", "{", "\u00e9"),
);
/** A name with a range within each axis, or nearly. */
const likely = fc
  .constantFrom(...Object.entries(SHAPES))
  .chain(([each, shape]) =>
    fc
      .tuple(
        ...shape.map((length) =>
          fc.array(fc.integer({ min: 0, max: length }), { minLength: 1, maxLength: 3 }),
        ),
      )
      .map(
        (parts) =>
          encodeURIComponent(each) +
          parts.map((numbers) => `[${numbers.toSorted((one, other) => one - other).join(":")}]`).join(""),
      ),
  );
const unlikely = fc
  .tuple(name, fc.array(range, { maxLength: 5 }))
  .map(([each, ranges]) => each + ranges.join(""));
const projection = fc.oneof({ weight: 4, arbitrary: likely }, { weight: 1, arbitrary: unlikely });
const clause = fc.constantFrom("", "&", "&lat>3", "&token=x", "&dap4.checksum=true", "&dap4.checksum=2", "#");
const constraint = fc
  .tuple(
    fc.constantFrom("", "dap4.ce=", "dap4.ce=/", "?"),
    fc.array(projection, { maxLength: 4 }),
    fc.constantFrom(",", ",", ";", ";", ",,", "&", " "),
    fc.oneof(fc.constant(""), clause),
    fc.oneof({ weight: 3, arbitrary: fc.constant("") }, fc.string({ maxLength: 3 })),
  )
  .map(([begin, parts, separator, end, noise]) => begin + parts.join(separator) + noise + end);

t.test("no constraint leaves the axes of its variables, or throws anything but a refusal", async (t) => {
  const variables = new Map(Object.entries(SHAPES).map(([each, shape]) => [each, { shape }]));
  let answered = 0;
  const check = (query: string): void => {
    for (const separator of [",", ";"] as const)
      try {
        const constraint = separator === "," ? parseDap2Query(query) : parseDap4Query(query).constraint;
        const find = (each: string) => variables.get(each.replace(/^\//, ""));
        const slices = cutVariables(constraint, separator, variables.values(), find);
        for (const { variable, axes, shape } of slices)
          for (const [axis, { begin, count, step }] of axes.entries()) {
            const length = variable.shape[axis]!;
            const isInside =
              Number.isSafeInteger(begin + count + step) && begin >= 0 && step >= 1 && count === shape[axis]!;
            if (!isInside || (count === 0 ? length > 0 : begin + (count - 1) * step >= length))
              throw new Error(`${query}: axis ${axis} of ${length} is cut ${begin}+${count}*${step}`);
          }
        answered += 1;
      } catch (error) {
        if (!(error instanceof ZpublishError) || error.code !== "invalid-query") throw error;
      }
  };
  fc.assert(fc.property(constraint, check), { numRuns: effort(100_000) });
  t.ok(answered > effort(5_000), `${answered} constraints are answered`);
});

t.test("no constraint makes the server fail, hang or answer half", async (t) => {
  const numbers = (count: number) => Int16Array.from({ length: count }, (_, at) => at);
  const arrays: MemoryArray[] = [
    { name: "t2m", data: numbers(60), shape: [4, 3, 5], dims: ["time", "lat", "lon"], chunks: [3, 2, 2] },
    { name: "lat", data: Float64Array.of(1, 2, 3), shape: [3], dims: ["lat"] },
    { name: "crs", data: numbers(1), shape: [] },
    { name: "none", data: numbers(0), shape: [0, 3], dims: ["empty", "lat"] },
    { name: "text", data: Buffer.from("ab\0cde"), dtype: "|S3", shape: [2], dims: ["two"] },
    { name: "odd name", data: numbers(1), shape: [1], dims: ["one"] },
    { name: "a,b[1]", data: numbers(2), shape: [2], dims: ["two"] },
  ];
  const inner: MemoryArray[] = [{ name: "v", data: numbers(2), shape: [2], dims: ["two"] }];
  const groups = [
    { path: "/", arrays },
    { path: "/a", arrays: inner },
  ];
  const { url, lines } = await startServer(t, {
    datasets: [datasetOf("d", createMemorySource({ location: "d", groups }))],
  });
  const statuses = new Map<number, number>();
  const ask = (path: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const sent = request(`${url}/`, { path, timeout: 20_000 }, (response) => {
        let length = 0;
        response.on("data", (part: Buffer) => {
          length += part.length;
        });
        response.on("error", reject);
        response.on("end", () => {
          const status = response.statusCode ?? 0;
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
          const announced = response.headers["content-length"];
          const isWhole = announced === undefined || Number(announced) === length;
          const isAnswer = [200, 400, 404, 414].includes(status) && response.complete && isWhole;
          if (isAnswer) resolve();
          else reject(new Error(`${path}: ${status}, ${length} of ${announced} bytes`));
        });
      });
      sent.on("timeout", () => sent.destroy(new Error(`${path}: no answer`)));
      sent.on("error", reject);
      sent.end();
    });
  const ending = fc.constantFrom(
    "dds",
    "das",
    "dods",
    "ascii",
    "html",
    "dmr",
    "dmr.xml",
    "dap",
    "ver",
    "x",
    "dods.x",
  );
  await fc.assert(
    fc.asyncProperty(ending, constraint, (kind, query) =>
      // What no client can send in the line of a request is percent-encoded.
      ask(
        `/datasets/d/opendap/d.nc.${kind}?${query.replace(/[^!-~]/gu, (character) => encodeURIComponent(character))}`,
      ),
    ),
    { numRuns: effort(4_000) },
  );
  t.ok((statuses.get(200) ?? 0) > effort(400), JSON.stringify([...statuses]));
  t.notOk(
    lines.some((line) => Number(line.level) >= 50),
    "nothing failed",
  );
});
