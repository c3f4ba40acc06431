import {
  type CellRun,
  type CodeAxis,
  type CodeSelection,
  rectanglesOf,
  shellWord,
} from "./code-selection.js";

/**
 * Writes shell code that reads a selection with GDAL: `gdal_translate` writes a raster of the last two axes, `gdalmdimtranslate` a
 * NetCDF file of other axes. Of several rectangles, each has a file.
 */
export function gdalCode({ url, variable }: CodeSelection): string {
  const store = `ZARR:"/vsicurl/${url}"`;
  if (variable === undefined) return `gdalmdiminfo ${shellWord(store)}`;
  const { path, axes } = variable;
  const name = (path.split("/").at(-1) ?? path).replace(/[^\w.-]+/g, "_");
  const rectangles = rectanglesOf(axes);
  return rectangles
    .map((rectangle, index) => {
      const file = rectangles.length === 1 ? name : `${name}-${index + 1}`;
      return isRaster(rectangle)
        ? rasterText(`${store}:/${path}`, axes, rectangle, file)
        : arrayText(store, path, rectangle, file);
    })
    .join("\n");
}

type Rectangle = readonly ("all" | number | CellRun)[];

/** A raster of GDAL has two dimensions, the last ones of the array, and an index for each of the others. */
function isRaster(rectangle: Rectangle): boolean {
  const plane = rectangle.length - 2;
  return plane >= 0 && rectangle.every((part, axis) => (typeof part === "number") === axis < plane);
}

function rasterText(array: string, axes: readonly CodeAxis[], rectangle: Rectangle, file: string): string {
  const indices = rectangle.filter((part) => typeof part === "number");
  const source = shellWord([array, ...indices].join(":"));
  const [rows, columns] = rectangle.slice(-2).map((part, index) => runOf(part, axes.at(index - 2))) as [
    CellRun,
    CellRun,
  ];
  const isWhole = rectangle.slice(-2).every((part) => part === "all");
  const window = `-srcwin ${columns[0]} ${rows[0]} ${columns[1] - columns[0]} ${rows[1] - rows[0]} `;
  return `gdal_translate ${isWhole ? "" : window}${source} ${shellWord(`${file}.tif`)}`;
}

function runOf(part: "all" | number | CellRun, axis: CodeAxis | undefined): CellRun {
  if (part === "all") return [0, axis?.length ?? 0];
  return typeof part === "number" ? [part, part + 1] : part;
}

function arrayText(store: string, path: string, rectangle: Rectangle, file: string): string {
  const view = rectangle.map((part) => {
    if (part === "all") return ":";
    return typeof part === "number" ? String(part) : `${part[0]}:${part[1]}`;
  });
  const isWhole = view.every((part) => part === ":");
  const array = `name=/${path}${isWhole ? "" : `,view=[${view.join(",")}]`}`;
  return `gdalmdimtranslate -array ${shellWord(array)} ${shellWord(store)} ${shellWord(`${file}.nc`)}`;
}
