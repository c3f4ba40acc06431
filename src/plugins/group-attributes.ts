import type { DatasetSnapshot, OverviewLevels } from "../dataset/dataset.js";
import { type Grid, listGrids, regularAxis } from "../dataset/overviews/level-grids.js";
import { geoMetadata, omeMultiscales, type RegularAxes } from "../dataset/overviews/level-metadata.js";
import type { JsonObject } from "../json/json-value.js";
import type { Group, Variable } from "../model/data-tree.js";
import type { PluginContext } from "./plugin.js";

/** Version of the Zarr format. */
type ZarrFormat = 2 | 3;

/**
 * Calls a function with the attributes of a group as a store shows them: with the multiscale metadata, at the root of overviews. These
 * need the values of coordinates, which are read when they are first asked for.
 */
export function withGroupAttributes<R>(
  context: PluginContext,
  snapshot: DatasetSnapshot,
  group: Group,
  format: ZarrFormat,
  answer: (attrs: JsonObject) => R | Promise<R>,
): R | Promise<R> {
  if (snapshot.levels === undefined || group.path !== "/") return answer(group.attrs);
  const attrs = rootAttributes(context, snapshot, snapshot.levels, format);
  return attrs instanceof Promise ? attrs.then(answer) : answer(attrs);
}

function rootAttributes(
  context: PluginContext,
  snapshot: DatasetSnapshot,
  levels: OverviewLevels,
  format: ZarrFormat,
): JsonObject | Promise<JsonObject> {
  const name = `overview attributes ${format}`;
  const kept = context.memo(snapshot, name, (): { attrs?: JsonObject | Promise<JsonObject> } => ({}));
  if (kept.attrs !== undefined) return kept.attrs;
  const grids = listGrids(levels.dataset.tree, levels.horizontal);
  const making = readAxes(context, levels, grids[0]).then((axes) =>
    format === 2 ? attributesOfV2(levels, grids, axes) : attributesOfV3(levels, grids, axes),
  );
  kept.attrs = making;
  making.then(
    (attrs) => {
      kept.attrs = attrs;
    },
    // A source may be readable again at the next request.
    () => {
      delete kept.attrs;
    },
  );
  return making;
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
