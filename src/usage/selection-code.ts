/** The part of a dataset that code reads. Plain data. */
interface CodeSelection {
  /** URL of the Zarr store, or of a group in it, without a slash at its end. */
  readonly url: string;
  /** Zarr format of the store. */
  readonly version: 2 | 3;
  /** Undefined if the dataset has no variable to read. */
  readonly variable: CodeVariable | undefined;
}

/** A variable, and the part of it that is read. */
export interface CodeVariable {
  /** Below {@link CodeSelection.url}: `t2m`, or `a/b/t2m`. */
  readonly path: string;
  readonly axes: readonly CodeAxis[];
  /** Undefined if stored numbers are the values. */
  readonly packing?: CodePacking | undefined;
  /** Whether JavaScript reads its numbers as `bigint`. */
  readonly isBigInt?: boolean;
}

/** An axis of a variable, and the part of it that is read. */
export interface CodeAxis {
  readonly dim: string;
  readonly length: number;
  /** Cells of the axis. */
  readonly part: AxisPart;
  /** Undefined if cells are selected by index. */
  readonly coordinate?: CodeCoordinate | undefined;
  /** Whether its labels are times. */
  readonly isTime?: boolean;
}

/** All cells, one cell, or runs of cells: two if a map crosses the seam between the last longitude and the first. */
export type AxisPart = "all" | number | readonly CellRun[];

/** Cells from `begin` to before `end`. */
export type CellRun = readonly [begin: number, end: number];

/**
 * Values of an axis by which xarray finds its cells: numbers, or ISO dates that xarray reads as `datetime64`. Strictly ascending or
 * descending, without missing ones.
 */
type CodeCoordinate = { readonly numbers: ArrayLike<number> } | { readonly dates: readonly string[] };

/** How stored numbers become values: `stored * scale + offset`, unless they mean a missing value. */
export interface CodePacking {
  readonly missing: readonly number[];
  readonly scale: number;
  readonly offset: number;
}

/** Control characters and others that a page or a terminal does not show as they are. */
const UNSEEN = /[\p{Cc}\p{Bidi_Control}\u2028\u2029\ufdd0-\ufdef\ufeff\ufffe\uffff]/gu;

/** Writes a text as a string of Python and of JavaScript. */
export function quoted(text: string): string {
  return JSON.stringify(text).replace(
    UNSEEN,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Writes a text as one word of a POSIX shell. What a terminal does not show becomes U+FFFD. */
export function shellWord(text: string): string {
  return `'${text.replace(UNSEEN, "\ufffd").replaceAll("'", "'\\''")}'`;
}

/** Returns the lists of runs that one read each can give: the product of the axes' runs, in order. */
function rectanglesOf(axes: readonly CodeAxis[]): ("all" | number | CellRun)[][] {
  let rectangles: ("all" | number | CellRun)[][] = [[]];
  for (const { part } of axes) {
    const choices = part === "all" || typeof part === "number" ? [part] : part;
    rectangles = rectangles.flatMap((rectangle) => choices.map((choice) => [...rectangle, choice]));
  }
  return rectangles;
}

/** Code that reads a selection with GDAL. */
interface GdalCode {
  readonly language: "shell" | "python";
  readonly code: string;
}

type Rectangle = readonly ("all" | number | CellRun)[];

/**
 * Writes shell code that makes a raster of a selection with `gdal_translate`, or Python code that reads one that is no raster. Each of
 * several rectangles has a file.
 */
function gdalCode({ url, variable }: CodeSelection): GdalCode {
  const store = `ZARR:"/vsicurl/${url}"`;
  if (variable === undefined) return { language: "shell", code: `gdalmdiminfo ${shellWord(store)}` };
  const rectangles = rectanglesOf(variable.axes);
  if (!rectangles.every(isRaster))
    return { language: "python", code: arrayCode(store, variable, rectangles) };
  const { path, axes } = variable;
  const name = (path.split("/").at(-1) ?? path).replace(/[^\w.-]+/g, "_");
  const code = rectangles
    .map((rectangle, index) => {
      const file = rectangles.length === 1 ? name : `${name}-${index + 1}`;
      return rasterCode(`${store}:/${path}`, axes, rectangle, file);
    })
    .join("\n");
  return { language: "shell", code };
}

/** A raster of GDAL has the last two dimensions of the array, and an index for each leading dimension. */
function isRaster(rectangle: Rectangle): boolean {
  const plane = rectangle.length - 2;
  return plane >= 0 && rectangle.every((part, axis) => (typeof part === "number") === axis < plane);
}

function rasterCode(array: string, axes: readonly CodeAxis[], rectangle: Rectangle, file: string): string {
  const indices = rectangle.filter((part) => typeof part === "number");
  const source = shellWord([array, ...indices].join(":"));
  const plane = rectangle.slice(-2);
  const [rows = [0, 0], columns = [0, 0]] = plane.map(
    (part, index): CellRun => (typeof part === "object" ? part : [0, axes.at(index - 2)?.length ?? 0]),
  );
  const window = `-srcwin ${columns[0]} ${rows[0]} ${columns[1] - columns[0]} ${rows[1] - rows[0]} `;
  return `gdal_translate ${plane.every((part) => part === "all") ? "" : window}${source} ${shellWord(`${file}.tif`)}`;
}

/** Writes Python code: `gdalmdimtranslate` of GDAL 3.6 loses the length of a range along an axis with a coordinate. */
function arrayCode(store: string, { path, packing }: CodeVariable, rectangles: readonly Rectangle[]): string {
  const reads = rectangles.map((rectangle) => {
    const view = rectangle.map(sliceText);
    const part = view.every((each) => each === ":") ? "" : `.GetView("[${view.join(",")}]")`;
    return `array${part}${packing === undefined ? "" : ".GetUnscaled()"}.ReadAsArray()`;
  });
  const [only = ""] = reads;
  return `from osgeo import gdal

store = gdal.OpenEx('${store}', gdal.OF_MULTIDIM_RASTER)
array = store.GetRootGroup().OpenMDArrayFromFullname(${quoted(`/${path}`)})
${reads.length === 1 ? `data = ${only}` : `parts = [\n${reads.map((read) => `    ${read},\n`).join("")}]`}`;
}

/** Words that are no keyword arguments of `isel` and `sel`: Python's keywords, and names of their own arguments. */
const RESERVED = new Set(
  "False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield self indexers method tolerance drop missing_dims".split(
    " ",
  ),
);

/** Writes Python code that opens a store with xarray and reads a selection as `data`. */
function xarrayCode({ url, variable }: CodeSelection): string {
  const segments = variable?.path.split("/") ?? [];
  const name = segments.pop();
  const group = segments.length > 0 ? `, group=${quoted(segments.join("/"))}` : "";
  const lines = ["import xarray as xr", "", `ds = xr.open_zarr(${quoted(storeName(url))}${group})`];
  if (variable !== undefined && name !== undefined)
    lines.push(`data = ds[${quoted(name)}]${selectionOf(variable.axes)}`);
  return lines.join("\n");
}

/**
 * Returns the name of a Zarr v2 store that ends in `.zarr`: `https://data.example/datasets/air.zarr`. By it, `xr.open_dataset` of xarray
 * 2026 knows the engine as well; before, it takes every URL for one of OPeNDAP if netCDF4 is installed.
 */
function storeName(url: string): string {
  return url.replace(/(\/datasets\/[^/]+)\/zarr(?=\/|$)/, "$1.zarr");
}

/** `.isel(…)` for cells by index, `.sel(…, method="nearest")` for one cell by its value, `.sel(…)` for runs by their values. */
function selectionOf(axes: readonly CodeAxis[]): string {
  const byIndex: [string, string][] = [];
  const nearest: [string, string][] = [];
  const between: [string, string][] = [];
  for (const axis of axes) {
    const { dim, part, coordinate } = axis;
    if (part === "all") continue;
    if (typeof part === "number") {
      const text = coordinate && pointText(axis, part);
      if (text === undefined) byIndex.push([dim, String(part)]);
      else nearest.push([dim, text]);
      continue;
    }
    const [run] = part;
    if (part.length === 1 && run !== undefined) {
      if (coordinate === undefined) byIndex.push([dim, `slice(${run[0]}, ${run[1]})`]);
      else between.push([dim, boundsText(axis, run)]);
    } else byIndex.push([dim, `[${part.map(([begin, end]) => `*range(${begin}, ${end})`).join(", ")}]`]);
  }
  return callText("isel", byIndex) + callText("sel", nearest, 'method="nearest"') + callText("sel", between);
}

/** `.sel(lat=40, method="nearest")`; a dictionary if a dimension is no keyword: `.sel({"my lat": 40}, method="nearest")`. */
function callText(method: string, entries: readonly (readonly [string, string])[], option?: string): string {
  if (entries.length === 0) return "";
  const areKeywords = entries.every(([dim]) => /^[A-Za-z_]\w*$/.test(dim) && !RESERVED.has(dim));
  const texts = areKeywords
    ? entries.map(([dim, text]) => `${dim}=${text}`)
    : [`{${entries.map(([dim, text]) => `${quoted(dim)}: ${text}`).join(", ")}}`];
  return `.${method}(${[...texts, ...(option === undefined ? [] : [option])].join(", ")})`;
}

function pointText(axis: CodeAxis, index: number): string | undefined {
  const label = labelOf(axis, index);
  return axis.coordinate !== undefined && "dates" in axis.coordinate ? quoted(label ?? "") : label;
}

function boundsText(axis: CodeAxis, run: CellRun): string {
  const { coordinate } = axis;
  if (coordinate === undefined || run[0] >= run[1]) return `slice(${run.join(", ")})`;
  const bounds = boundsOf(axis, run);
  return `slice(${("dates" in coordinate ? bounds.map(quoted) : bounds).join(", ")})`;
}

/** Returns a label to which a cell is the nearest one; undefined without a coordinate. */
export function labelOf({ coordinate, length }: CodeAxis, index: number): string | undefined {
  if (coordinate === undefined) return undefined;
  if ("dates" in coordinate) return coordinate.dates[index] ?? "";
  const { numbers } = coordinate;
  const value = numbers[index] ?? Number.NaN;
  const gaps = [index - 1, index + 1]
    .filter((neighbour) => neighbour >= 0 && neighbour < length)
    .map((neighbour) => Math.abs(numbers[neighbour]! - value));
  return shortNumber(value, gaps.length === 0 ? 0 : Math.min(...gaps) / 4, 0);
}

/**
 * Returns the labels between which a run of cells lies, both included, in the order of the axis, so that a descending one needs no care.
 * Bounds are rounded outwards by less than a quarter of a cell: a bound in float64 may lie just inside of a value that is a float32.
 */
export function boundsOf({ coordinate, length }: CodeAxis, [begin, end]: CellRun): readonly [string, string] {
  if (coordinate === undefined) throw new Error("expected an axis with a coordinate");
  if ("dates" in coordinate) return [coordinate.dates[begin] ?? "", coordinate.dates[end - 1] ?? ""];
  const { numbers } = coordinate;
  const at = (index: number) => numbers[Math.min(Math.max(index, 0), length - 1)]!;
  const rising = at(length - 1) >= at(0);
  const inner = length > 1 ? Math.abs(at(1) - at(0)) : 0;
  const gap = (index: number, outside: number) =>
    (outside < 0 || outside >= length ? inner : Math.abs(at(outside) - at(index))) / 4;
  return [
    shortNumber(at(begin), gap(begin, begin - 1), rising ? -1 : 1),
    shortNumber(at(end - 1), gap(end - 1, end), rising ? 1 : -1),
  ];
}

/**
 * Writes a number with as few decimals as keep it within a tolerance.
 * @param side -1: not above the value; 1: not below it; 0: on either side.
 */
function shortNumber(value: number, tolerance: number, side: -1 | 0 | 1): string {
  // Only one that is no float32 in disguise is that short: 0.1 as a float32 is 0.10000000149011612.
  if (String(value).length <= 8) return String(value);
  const round = side === 0 ? Math.round : side < 0 ? Math.floor : Math.ceil;
  for (let decimals = 0; decimals <= 12; decimals++) {
    const short = round(value * 10 ** decimals) / 10 ** decimals;
    // Multiplying may have rounded to the wrong side.
    if (Math.abs(short - value) <= tolerance && (short - value) * side >= 0) return String(short);
  }
  return String(value);
}

/**
 * Writes Python code that reads a selection with zarr-python as `data`, several rectangles as `parts`. Packed numbers become `values`.
 */
function zarrPythonCode({ url, variable }: CodeSelection): string {
  const open = `root = zarr.open_group(${quoted(url)}, mode="r")`;
  if (variable === undefined) return `import zarr\n\n${open}`;
  const { path, axes, packing } = variable;
  const reads = rectanglesOf(axes).map(
    (rectangle) =>
      `array[${rectangle.every((part) => part === "all") ? "..." : rectangle.map(sliceText).join(", ")}]`,
  );
  const imports = packing === undefined ? "import zarr" : "import numpy as np\nimport zarr";
  const head = `${imports}\n\n${open}\narray = root[${quoted(path)}]\n`;
  if (reads.length === 1) {
    const values = packing && `\nvalues = ${numpyUnpackText("data", packing)}`;
    return `${head}data = ${reads[0]}${values ?? ""}`;
  }
  const values = packing && `\nvalues = [${numpyUnpackText("data", packing)} for data in parts]`;
  return `${head}parts = [\n${reads.map((read) => `    ${read},\n`).join("")}]${values ?? ""}`;
}

function sliceText(part: "all" | number | CellRun): string {
  if (part === "all") return ":";
  return typeof part === "number" ? String(part) : `${part[0]}:${part[1]}`;
}

/** `np.where(np.isin(data, [-32767]), np.nan, data * 0.01 + 273.15)`. */
function numpyUnpackText(data: string, { missing, scale, offset }: CodePacking): string {
  const value = scaledText(data, scale, offset);
  return missing.length === 0
    ? value
    : `np.where(np.isin(${data}, [${missing.join(", ")}]), np.nan, ${value})`;
}

/** `stored * 0.01 + 273.15`. */
function scaledText(stored: string, scale: number, offset: number): string {
  const scaled = scale === 1 ? stored : `${stored} * ${scale}`;
  return offset === 0 ? scaled : `${scaled} ${offset < 0 ? "-" : "+"} ${Math.abs(offset)}`;
}

/**
 * Writes JavaScript code that reads a selection with zarrita as `data` and `shape`: one cell as `data`, several rectangles as `parts`.
 * Packed numbers become `values`.
 */
function zarritaCode({ url, version, variable }: CodeSelection): string {
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
  const value = scaledText(number, scale, offset);
  return `(stored) => (${tests === "" ? value : `${tests} ? Number.NaN : ${value}`})`;
}

/** Code for one client, complete: it can be run as it is. */
export interface ClientCode {
  readonly client: "xarray" | "zarr-python" | "zarrita" | "GDAL" | "NetCDF" | "CSV";
  readonly language: "python" | "javascript" | "shell";
  readonly code: string;
}

/**
 * Writes the code that reads a selection with each client: the same cells with all of them.
 *
 * ```python
 * import xarray as xr
 *
 * ds = xr.open_zarr("https://data.example/datasets/air.zarr")
 * data = ds["air"].sel(time="2013-01-01T06:00:00", method="nearest").sel(lat=slice(60, 30))
 * ```
 *
 * xarray selects by values, which stay right if a dataset grows; all others know indices only. zarr-python and zarrita give numbers as
 * they are stored, so packed ones are unpacked by a further line.
 */
export function selectionCode(selection: CodeSelection): ClientCode[] {
  return [
    { client: "xarray", language: "python", code: xarrayCode(selection) },
    { client: "zarr-python", language: "python", code: zarrPythonCode(selection) },
    { client: "zarrita", language: "javascript", code: zarritaCode(selection) },
    { client: "GDAL", ...gdalCode(selection) },
  ];
}
