import { createHash } from "node:crypto";
import { LazyMap } from "../../collections/lazy-map.js";
import type { OverviewsConfig } from "../../config/config.js";
import { ZpublishError } from "../../errors.js";
import type { JsonObject } from "../../json/json-value.js";
import { stringifyJson } from "../../json/stringify-json.js";
import { elementCount, type Group, parentPath, type Variable } from "../../model/data-tree.js";
import type { Refusal } from "../../zarr/stored-tree.js";
import type { DatasetSnapshot, OverviewLevels, ServedArray } from "../dataset.js";
import {
  createLevelArray,
  createLevelTree,
  type LevelContext,
  type LevelRule,
  levelAttributes,
  levelCount,
  levelRule,
  MAX_LEVELS,
  withoutPlaces,
} from "./level-array.js";
import { horizontalDims, isGeographic, listGrids } from "./level-grids.js";

/** Options of level arrays. */
export interface OverviewOptions {
  /** Largest decoded size of a chunk that is not passed through. Default 1 GiB. */
  readonly maxChunkBytes?: number | undefined;
  /** As in `DatasetConfig.zarr3`. */
  readonly portable?: boolean | undefined;
  /** Opens the reader of the chunks of an array, which the server makes itself. Default: they cannot be read. */
  readonly openLevelReader?: LevelContext["openReader"];
}

/** Raised whenever other levels are made of the same dataset and configuration. */
const REVISION = 1;

/** Adds overviews to a snapshot, and freezes it. @param config False or undefined for none. */
export function withOverviews(
  snapshot: DatasetSnapshot,
  config: OverviewsConfig | false | undefined,
  options: OverviewOptions,
): DatasetSnapshot {
  if (config === undefined || config === false) return Object.freeze(snapshot);
  const dataset: { -readonly [K in keyof DatasetSnapshot]: DatasetSnapshot[K] } = { ...snapshot };
  dataset.overviews = createOverviews(dataset, config, options);
  return Object.freeze(dataset);
}

/**
 * Creates the overviews of a dataset. Nothing but the number of levels is found at once: a dataset may have 10,000 arrays, of which
 * clients ask for a few.
 */
function createOverviews(
  dataset: DatasetSnapshot,
  { levels: asked, method, metadata }: OverviewsConfig,
  options: OverviewOptions,
): DatasetSnapshot {
  const { tree } = dataset;
  const horizontal = horizontalDims(tree);
  const count = levelCount(tree, horizontal, asked);
  const levels: OverviewLevels = Object.freeze({
    dataset,
    count,
    horizontal,
    method,
    metadata: metadata ?? (isGeographic(tree) ? "geo" : "ome"),
  });
  const context: LevelContext = {
    store: `${dataset.identity}\n${dataset.id}`,
    snapshot: () => overviews,
    openReader: options.openLevelReader,
    immutable: dataset.immutable,
    maxChunkBytes: options.maxChunkBytes,
    portable: options.portable,
  };
  const numbers = Array.from({ length: count + 1 }, (_, level) => level);
  /** Reasons by path of arrays that a level has not. */
  const problems = new Map<string, string>();

  function make(path: string): ServedArray | undefined {
    const place = placeOf(path, count);
    const own = place && dataset.arrays.get(place.path);
    if (place === undefined || own === undefined || problems.has(path)) return undefined;
    const { name } = own.variable;
    const group = tree.groups.get(parentPath(`/${place.path}`)) as Group;
    const rule = ruleOf(group, own.variable);
    if (place.level === 0) return own;
    if (rule.kind === "same") return withAttributes(own, withoutPlaces(own.variable.attrs));
    const below = arrays.get(`${place.level - 1}/${place.path}`);
    if (rule.kind === "none") problems.set(path, rule.reason);
    if (rule.kind === "none" || below === undefined) return undefined;
    try {
      const { attrs } = below.variable;
      const isData = !group.coordinateNames.has(name);
      return createLevelArray(
        below,
        {
          ...{ name, path },
          ...{ method: rule.method, factors: rule.factors },
          attrs: levelAttributes(attrs, (other) => isLeftOut(group, other)),
          keepsType: isData && levels.metadata === "ome",
        },
        context,
      );
    } catch (error) {
      if (!(error instanceof ZpublishError)) throw error;
      problems.set(path, error.message);
      return undefined;
    }
  }

  function ruleOf(group: Group, variable: Variable): LevelRule {
    return levelRule(group, variable, horizontal, method);
  }

  function isLeftOut(group: Group, name: string): boolean {
    const variable = group.variables.get(name);
    return variable !== undefined && ruleOf(group, variable).kind === "none";
  }

  function* paths(): Iterable<string> {
    for (const level of numbers) for (const path of dataset.arrays.keys()) yield `${level}/${path}`;
  }

  const arrays = new LazyMap(paths, make);
  // Without an array that is refused now, there may be fewer levels than clients know.
  const inEachLevel = (path: string) =>
    Array.from({ length: MAX_LEVELS + 1 }, (_, level) => `${level}/${path}`);
  const refusedBefore = dataset.refused.flatMap(({ path, reason }) =>
    inEachLevel(path).map((each): Refusal => ({ path: each, reason })),
  );
  const overviews: DatasetSnapshot = Object.freeze({
    id: dataset.id,
    revision: revisionOf(levels),
    identity: dataset.identity,
    state: dataset.state,
    tree: createLevelTree(levels, arrays),
    arrays,
    /** Refused arrays of the dataset, and of levels that clients asked for. */
    get refused() {
      return [...refusedBefore, ...[...problems].map(([path, reason]): Refusal => ({ path, reason }))];
    },
    withdrawn: new Set([...dataset.withdrawn].flatMap(inEachLevel)),
    warnings: [],
    cacheControl: dataset.cacheControl,
    immutable: dataset.immutable,
    location: dataset.location,
    levels,
  });
  return overviews;
}

/** Returns an array with other attributes; the same one if they are its own. */
function withAttributes(array: ServedArray, attrs: JsonObject): ServedArray {
  const { variable, describeV3 } = array;
  if (attrs === variable.attrs) return array;
  return Object.freeze({
    ...array,
    isOfOverviews: true,
    variable: Object.freeze({ ...variable, attrs }),
    zattrs: withoutPlaces(array.zattrs),
    describeV3() {
      const { document, plan } = describeV3();
      const attributes = withoutPlaces(document.attributes as JsonObject);
      return { document: { ...document, attributes }, plan };
    },
  });
}

/** Parses the path of an array in overviews; undefined if there is no such level. */
function placeOf(path: string, count: number): { readonly level: number; readonly path: string } | undefined {
  const match = /^(0|[1-9]\d?)\/(.+)$/.exec(path);
  const level = Number(match?.[1]);
  return match !== null && level <= count ? { level, path: match[2] as string } : undefined;
}

/** Hashes what levels are made of. */
function revisionOf({ dataset, count, horizontal, method, metadata }: OverviewLevels): string {
  const parts = [REVISION, dataset.revision, count, [...horizontal], method, metadata];
  return createHash("sha256").update(stringifyJson(parts)).digest("hex").slice(0, 24);
}

/** One level of the variable that a viewer should open first. */
interface LevelSummary {
  readonly level: number;
  /** The variable at that level. */
  readonly variable: Variable;
  readonly byteLength: number;
}

/** Describes the levels of overviews by their largest variable, the dataset itself included; empty if no variable is coarsened. */
export function describeLevels({ levels, arrays }: DatasetSnapshot): readonly LevelSummary[] {
  if (levels === undefined) return [];
  const [grid] = listGrids(levels.dataset.tree, levels.horizontal);
  if (grid === undefined) return [];
  const summaries: LevelSummary[] = [];
  for (let level = 0; level <= levels.count; level++) {
    const variable = arrays.get(`${level}/${grid.variable.path}`)?.variable;
    if (variable === undefined) break;
    summaries.push({
      level,
      variable,
      byteLength: elementCount(variable.shape) * variable.dataType.itemSize,
    });
  }
  return summaries;
}
