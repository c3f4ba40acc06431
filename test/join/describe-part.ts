import type { PartArray, PartDescription } from "../../src/join/describe-part.js";
import type { JoinedArray } from "../../src/join/join-arrays.js";
import type { JoinedTree } from "../../src/join/join-parts.js";
import { type Item, itemsOfValues, writeItems } from "../../src/join/join-values.js";
import type { JsonObject, JsonValue } from "../../src/json/json-value.js";
import { parseDataType } from "../../src/model/data-type.js";
import { parseFillValue } from "../../src/model/fill-value.js";
import type { CodecSpec } from "../../src/zarr/codec-step.js";

/** An array of a part, in few words. */
export interface ArrayInput {
  readonly dims: readonly string[];
  readonly shape?: readonly number[];
  readonly chunks?: readonly number[];
  readonly dtype?: string;
  readonly attrs?: JsonObject;
  readonly fill?: JsonValue;
  readonly values?: readonly Item[];
  readonly codecs?: readonly CodecSpec[];
  readonly axisOrder?: readonly number[];
}

/** Describes a part by its arrays' paths. */
export function describePart(
  name: string,
  arrays: Readonly<Record<string, ArrayInput>>,
  attrs: JsonObject = {},
): PartDescription {
  const groups = new Set(["/"]);
  for (const path of Object.keys(arrays)) {
    for (let at = path.indexOf("/"); at >= 0; at = path.indexOf("/", at + 1))
      groups.add(`/${path.slice(0, at)}`);
  }
  return {
    name,
    groups: [...groups].map((path) => ({ path, attrs: path === "/" ? attrs : {} })),
    arrays: Object.entries(arrays).map(([path, input]) => describeArray(path, input)),
    refused: [],
  };
}

function describeArray(path: string, input: ArrayInput): PartArray {
  const { dims, values, dtype = "<f8", attrs = {}, codecs = [] } = input;
  const shape = input.shape ?? (dims.length === 0 ? [] : [values?.length ?? 0]);
  const dataType = parseDataType(dtype);
  const fill = parseFillValue(input.fill ?? null, dataType);
  return {
    dims,
    stored: {
      name: path.slice(path.lastIndexOf("/") + 1),
      path,
      shape,
      chunkShape: input.chunks ?? shape.map((length) => Math.max(1, length)),
      dataType,
      axisOrder: input.axisOrder ?? shape.map((_, axis) => axis),
      codecs,
      compressorCount: codecs.length > 0 ? 1 : 0,
      fill: { served: fill.json, item: fill.item, absentIsServed: true },
      dimNames: dims,
      attrs,
    },
    ...(values && { values: writeItems(values, dataType) }),
  };
}

/** Finds an array of a joined tree by its path. */
export function arrayOf(tree: JoinedTree, path: string): JoinedArray | undefined {
  return tree.groups.flatMap((group) => group.arrays).find(({ stored }) => stored.path === path);
}

/** Returns the values of an array that is kept in memory. */
export function valuesOf(tree: JoinedTree, path: string): Item[] {
  const array = arrayOf(tree, path);
  if (array?.kind !== "values") throw new Error(`expected values of ${path}, received ${array?.kind}`);
  return Array.from(itemsOfValues(array.values, array.stored.dataType) as Iterable<Item>);
}
