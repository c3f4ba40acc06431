import { firstText } from "../cf/dataset-facts.js";
import type { DatasetSnapshot, FileView } from "../dataset/dataset.js";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import type { Coverage } from "./coverage.js";
import { type PictureLook, picturedArray, pictureLook } from "./look-links.js";
import { shortened } from "./page.js";
import { hasMaps } from "./pictures.js";
import { isIndexCoordinate, variableByteLength } from "./variable-row.js";

/** What a list of datasets shows of one. Plain data, some hundred bytes. */
export interface DatasetSummary extends Coverage {
  /** Empty if the dataset has none but its id. */
  readonly title: string;
  readonly groups: number;
  /** Variables of all groups, and their bytes; undefined if there are too many groups to count. */
  readonly content: { readonly variables: number; readonly byteLength: number } | undefined;
  /** Dimensions of the root. */
  readonly dims: readonly SummaryDimension[];
  /** The picture that stands for the dataset, and whether its variable lies on the Earth; undefined if none of its variables has one. */
  readonly picture: (PictureLook & { readonly hasMaps?: boolean }) | undefined;
  /** The file that the dataset offers. Default: none. */
  readonly file?: FileView;
}

/** A dimension as lists show it. */
interface SummaryDimension {
  readonly name: string;
  readonly length: number;
  /** Whether it has a coordinate. */
  readonly isIndexed: boolean;
}

const MAX_TITLE_CHARS = 200;
/** Maximum of groups whose variables are counted for one line. */
const MAX_COUNTED_GROUPS = 200;
/** Dimensions that are named. Most datasets have fewer than five. */
const MAX_DIMENSIONS = 12;

/** Makes the summary of a dataset. */
export function* summarySteps(
  snapshot: DatasetSnapshot,
  coverage: Coverage,
): CooperativeTask<DatasetSummary> {
  const { id, tree, file } = snapshot;
  const { root, groups } = tree;
  const title = firstText(root.attrs, ["title", "long_name"]);
  let variables = 0;
  let byteLength = 0;
  const isCounted = groups.size <= MAX_COUNTED_GROUPS;
  for (const group of isCounted ? groups.values() : []) {
    for (const variable of group.variables.values()) {
      yield;
      variables++;
      byteLength += variableByteLength(variable) ?? 0;
    }
  }
  const dims = Array.from(root.dims, ([name, length]) => {
    const variable = root.variables.get(name);
    return { name, length, isIndexed: variable !== undefined && isIndexCoordinate(variable) };
  });
  yield;
  const pictured = picturedArray(snapshot, root);
  const look = pictured && pictureLook(snapshot, pictured.group, pictured.array);
  return {
    ...coverage,
    title: title === undefined || title === id ? "" : shortened(title, MAX_TITLE_CHARS),
    groups: groups.size,
    content: isCounted ? { variables, byteLength } : undefined,
    dims: dims.slice(0, MAX_DIMENSIONS),
    picture: look && { ...look, hasMaps: hasMaps(snapshot, pictured.array) },
    ...(file && { file: { name: file.name, byteLength: file.byteLength, contentType: file.contentType } }),
  };
}
