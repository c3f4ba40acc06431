import { ZpublishError } from "../../../errors.js";
import { runCooperatively } from "../../../event-loop/cooperative-task.js";
import { mapInLots } from "../../../event-loop/map-in-lots.js";
import { comparePaths, nameProblem, type Refusal, warnOfName } from "../../../zarr/stored-tree.js";
import type { FileBlocks } from "../../file-format.js";
import type { FileArray, FileGroup, FileIndex } from "../../file-index.js";
import type { Hdf5File } from "../hdf5-model.js";
import { mapArray } from "./map-array.js";
import { mapAttributes } from "./map-attributes.js";
import { axisSteps, pathOf } from "./name-axes.js";
import { type NetcdfGroup, type NetcdfVariable, netcdfFileSteps } from "./netcdf-file.js";

/** Variables whose chunks are looked for at a time: those of remote files wait for each other's blocks otherwise. */
const AT_ONCE = 16;

/** The input of a mapping, and what it says besides the arrays. */
interface Mapping {
  readonly file: FileBlocks;
  readonly refused: Refusal[];
  readonly warnings: string[];
}

/**
 * Maps a file to groups and arrays of Zarr, by netCDF's conventions if it follows them.
 * @throws ZpublishError `source-unreadable`, `source-changed`
 */
export async function mapFile(file: FileBlocks, model: Hdf5File): Promise<FileIndex> {
  const mapping: Mapping = { file, refused: [...model.refused], warnings: [...model.warnings] };
  const netcdf = await runCooperatively(netcdfFileSteps(model));
  mapping.warnings.push(...(await runCooperatively(axisSteps(netcdf))));
  const groups: FileGroup[] = [];
  for (const group of netcdf.groups) {
    const mapped = await mapGroup(mapping, group);
    if (mapped !== undefined) groups.push(mapped);
  }
  groups.sort((a, b) => comparePaths(a.path, b.path));
  const { refused, warnings } = mapping;
  return { format: formatName(netcdf.groups), groups, refused, warnings };
}

async function mapGroup(
  mapping: Mapping,
  { group, path: slashed, variables }: NetcdfGroup,
): Promise<FileGroup | undefined> {
  const path = slashed.slice(1);
  const problem = path === "" ? undefined : nameProblem(path);
  if (problem !== undefined) {
    mapping.refused.push({ path, reason: problem });
    return undefined;
  }
  if (path !== "") warnOfName(path, mapping.warnings);
  for (const [name, { shape }] of group.datasets) {
    const at = path === "" ? name : `${path}/${name}`;
    if (shape === null)
      mapping.refused.push({ path: at, reason: "a dataset without items (null dataspace)" });
  }
  const problems: string[] = [];
  const attrs = mapAttributes(group.attributes, problems);
  warn(mapping, path, problems);
  const mapped = await mapInLots(variables, AT_ONCE, (variable) => mapVariable(mapping, variable));
  const arrays = mapped.filter((array) => array !== undefined);
  arrays.sort((a, b) => (a.name < b.name ? -1 : 1));
  return { path: slashed, attrs, arrays };
}

/** Maps a variable; undefined if it is refused. */
async function mapVariable(mapping: Mapping, variable: NetcdfVariable): Promise<FileArray | undefined> {
  const path = pathOf(variable);
  const problem = nameProblem(path);
  if (problem !== undefined) {
    mapping.refused.push({ path, reason: problem });
    return undefined;
  }
  try {
    const problems: string[] = [];
    const array = await mapArray(mapping.file, variable, problems);
    warnOfName(path, mapping.warnings);
    warn(mapping, path, problems);
    return array;
  } catch (error) {
    const isOfArray =
      error instanceof ZpublishError && (error.code === "unsupported" || error.code === "invalid-metadata");
    if (!isOfArray) throw error;
    mapping.refused.push({ path, reason: error.message });
    return undefined;
  }
}

function warn({ warnings }: Mapping, path: string, problems: readonly string[]): void {
  for (const problem of problems) warnings.push(`'${path}': ${problem}`);
}

/** The format as people say it. */
function formatName(groups: readonly NetcdfGroup[]): string {
  const isNetcdf =
    groups[0]?.group.attributes.has("_NCProperties") === true ||
    groups.some(({ group }) =>
      [...group.datasets.values()].some(({ attributes }) => attributes.has("_Netcdf4Dimid")),
    );
  return isNetcdf ? "NetCDF-4" : "HDF5";
}
