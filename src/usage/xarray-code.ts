import { type CellRun, type CodeAxis, type CodeSelection, quoted } from "./code-selection.js";

/** Words that are no keyword arguments of `isel` and `sel`: Python's keywords, and names of their own arguments. */
const RESERVED = new Set(
  "False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield self indexers method tolerance drop missing_dims".split(
    " ",
  ),
);

/** Writes Python code that opens a store with xarray and reads a selection as `data`. */
export function xarrayCode({ url, variable }: CodeSelection): string {
  const segments = variable?.path.split("/") ?? [];
  const name = segments.pop();
  const group = segments.length > 0 ? `, group=${quoted(segments.join("/"))}` : "";
  const lines = ["import xarray as xr", "", `ds = xr.open_zarr(${quoted(url)}${group})`];
  if (variable !== undefined && name !== undefined)
    lines.push(`data = ds[${quoted(name)}]${selectionOf(variable.axes)}`);
  return lines.join("\n");
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

function pointText({ coordinate, length }: CodeAxis, index: number): string | undefined {
  if (coordinate === undefined) return undefined;
  if ("dates" in coordinate) return quoted(coordinate.dates[index] ?? "");
  const { numbers } = coordinate;
  const value = numbers[index] ?? Number.NaN;
  const gaps = [index - 1, index + 1]
    .filter((neighbour) => neighbour >= 0 && neighbour < length)
    .map((neighbour) => Math.abs((numbers[neighbour] as number) - value));
  return shortNumber(value, gaps.length === 0 ? 0 : Math.min(...gaps) / 4, 0);
}

/**
 * Both values of a slice are included, and follow the order of the axis, so that a descending one needs no care. Bounds are rounded
 * outwards by less than a quarter of a cell: a bound in float64 may lie just inside of a value that is a float32.
 */
function boundsText({ coordinate, length }: CodeAxis, [begin, end]: CellRun): string {
  if (coordinate === undefined || begin >= end) return `slice(${begin}, ${end})`;
  if ("dates" in coordinate)
    return `slice(${quoted(coordinate.dates[begin] ?? "")}, ${quoted(coordinate.dates[end - 1] ?? "")})`;
  const { numbers } = coordinate;
  const at = (index: number) => numbers[Math.min(Math.max(index, 0), length - 1)] as number;
  const rising = at(length - 1) >= at(0);
  const inner = length > 1 ? Math.abs(at(1) - at(0)) : 0;
  const gap = (index: number, outside: number) =>
    (outside < 0 || outside >= length ? inner : Math.abs(at(outside) - at(index))) / 4;
  const first = shortNumber(at(begin), gap(begin, begin - 1), rising ? -1 : 1);
  const last = shortNumber(at(end - 1), gap(end - 1, end), rising ? 1 : -1);
  return `slice(${first}, ${last})`;
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
