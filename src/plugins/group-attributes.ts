import type { DatasetSnapshot, OverviewLevels } from "../dataset/dataset.js";
import { type Grid, listGrids, regularAxis } from "../dataset/overviews/level-grids.js";
import { geoMetadata, omeMultiscales, type RegularAxes } from "../dataset/overviews/level-metadata.js";
import type { JsonObject } from "../json/json-value.js";
import type { Group, Variable } from "../model/data-tree.js";
import { keepPromise } from "./documents.js";
import type { PluginContext } from "./plugin.js";

/**
 * Returns the attributes of a group as a store shows them. The root of overviews has multiscale metadata, which need the values of
 * coordinates; these are read at the first call.
 * @param version Version of the Zarr format.
 */
export function groupAttributes(
  context: PluginContext,
  snapshot: DatasetSnapshot,
  group: Group,
  version: 2 | 3,
): JsonObject | Promise<JsonObject> {
  const { levels } = snapshot;
  if (levels === undefined || group.path !== "/") return group.attrs;
  return keepPromise(context, snapshot, `overview attributes ${version}`, async () => {
    const grids = listGrids(levels.dataset.tree, levels.horizontal);
    const axes = await readAxes(context, levels, grids[0]);
    return version === 2 ? attributesOfV2(levels, grids, axes) : attributesOfV3(levels, grids, axes);
  });
}

/** Both conventions want the attribute `multiscales`, so that there is one of them. */
function attributesOfV2(levels: OverviewLevels, grids: readonly Grid[], axes: RegularAxes): JsonObject {
  if (levels.metadata === "geo") return geoMetadata(levels, grids[0], axes);
  const multiscales = omeMultiscales(levels, grids, axes, "0.4");
  return multiscales.length === 0 ? {} : { multiscales };
}

function attributesOfV3(levels: OverviewLevels, grids: readonly Grid[], axes: RegularAxes): JsonObject {
  const multiscales = omeMultiscales(levels, grids, axes, "0.5");
  const ome = multiscales.length === 0 ? {} : { ome: { version: "0.5", multiscales } };
  return { ...geoMetadata(levels, grids[0], axes), ...ome };
}

async function readAxes(
  context: PluginContext,
  { dataset }: OverviewLevels,
  grid: Grid | undefined,
): Promise<RegularAxes> {
  const read = async (coordinate: Variable | undefined) => {
    const array = coordinate && dataset.arrays.get(coordinate.path);
    const values = array && (await context.previews.numbers(array));
    return values && regularAxis(values);
  };
  const [y, x] = await Promise.all([read(grid?.yCoordinate), read(grid?.xCoordinate)]);
  return y && x && { y, x };
}
