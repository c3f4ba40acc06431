import {
  type CellRun,
  type CodeAxis,
  type CodeSelection,
  type CodeVariable,
  quoted,
  rectanglesOf,
  shellWord,
} from "./code-selection.js";

/** Code that reads a selection with GDAL. */
export interface GdalCode {
  readonly language: "shell" | "python";
  readonly code: string;
}

type Rectangle = readonly ("all" | number | CellRun)[];

/**
 * Writes shell code that makes a raster of a selection with `gdal_translate`, or Python code that reads one that is no raster. Each of
 * several rectangles has a file.
 */
export function gdalCode({ url, variable }: CodeSelection): GdalCode {
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

/** A raster of GDAL has two dimensions, the last ones of the array, and an index for each of the others. */
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
    const view = rectangle.map((part) => {
      if (part === "all") return ":";
      return typeof part === "number" ? String(part) : `${part[0]}:${part[1]}`;
    });
    const part = view.every((each) => each === ":") ? "" : `.GetView("[${view.join(",")}]")`;
    return `array${part}${packing === undefined ? "" : ".GetUnscaled()"}.ReadAsArray()`;
  });
  const [only = ""] = reads;
  return `from osgeo import gdal

store = gdal.OpenEx('${store}', gdal.OF_MULTIDIM_RASTER)
array = store.GetRootGroup().OpenMDArrayFromFullname(${quoted(`/${path}`)})
${reads.length === 1 ? `data = ${only}` : `parts = [\n${reads.map((read) => `    ${read},\n`).join("")}]`}`;
}
