import {
  type AxisPart,
  type CellRun,
  type CodePacking,
  type CodeSelection,
  quoted,
  rectanglesOf,
} from "./code-selection.js";

/**
 * Writes JavaScript code that reads a selection with zarrita as `data` and `shape`: one cell as `data`, several rectangles as `parts`.
 * Packed numbers become `values`.
 */
export function zarritaCode({ url, version, variable }: CodeSelection): string {
  const head = `import * as zarr from "zarrita";\n\nconst store = new zarr.FetchStore(${quoted(url)});\n`;
  if (variable === undefined)
    return `${head}const group = await zarr.open.v${version}(store, { kind: "group" });`;
  // zarrita appends paths to the URL as they are.
  const path = variable.path.split("/").map(encodeURIComponent).join("/");
  const open = `const array = await zarr.open.v${version}(
  zarr.root(store).resolve(${quoted(path)}),
  { kind: "array" },
);
`;
  const reads = rectanglesOf(variable.axes).map(readText);
  const { axes, packing, isBigInt = false } = variable;
  const unpack = packing && unpackText(packing, isBigInt);
  if (reads.length > 1) {
    const values = unpack && `\nconst values = parts.map(({ data }) => Array.from(data, ${unpack}));`;
    return `${head}${open}const parts = await Promise.all([\n${reads.map((read) => `  ${read},\n`).join("")}]);${values ?? ""}`;
  }
  const isCell = axes.every(({ part }) => typeof part === "number");
  const values = unpack && `\nconst values = Array.from(${isCell ? "[data]" : "data"}, ${unpack});`;
  return `${head}${open}const ${isCell ? "data" : "{ data, shape }"} = await ${reads[0]};${values ?? ""}`;
}

function readText(rectangle: readonly ("all" | number | CellRun)[]): string {
  if (rectangle.every((part) => part === "all")) return "zarr.get(array)";
  return `zarr.get(array, [${rectangle.map(indexText).join(", ")}])`;
}

function indexText(part: Exclude<AxisPart, readonly CellRun[]> | CellRun): string {
  if (part === "all") return "null";
  return typeof part === "number" ? String(part) : `zarr.slice(${part[0]}, ${part[1]})`;
}

/** `(stored) => (stored === -32767 ? NaN : stored * 0.01 + 273.15)`. */
function unpackText({ missing, scale, offset }: CodePacking, isBigInt: boolean): string {
  const suffix = isBigInt ? "n" : "";
  const tests = missing.map((each) => `stored === ${each}${suffix}`).join(" || ");
  const number = isBigInt ? "Number(stored)" : "stored";
  const scaled = scale === 1 ? number : `${number} * ${scale}`;
  const value = offset === 0 ? scaled : `${scaled} ${offset < 0 ? "-" : "+"} ${Math.abs(offset)}`;
  return `(stored) => (${tests === "" ? value : `${tests} ? Number.NaN : ${value}`})`;
}
