import { cfDecodingOf, isDecoded } from "../cf/decoded-type.js";
import { missingMarkOf } from "../cf/image-data.js";
import type { ServedArray } from "../dataset/dataset.js";
import { pythonString } from "../json/stringify-json.js";
import { elementCount } from "../model/data-tree.js";
import type { Values } from "../values/values.js";
import { formatDecoded, formatItems } from "./format-items.js";
import { shortened } from "./page.js";

/** Values shown from the beginning and from the end. */
const FIRST_COUNT = 6;
const LAST_COUNT = 3;

/** Maximum bytes of a chunk that is decoded for a preview. */
const MAX_CHUNK_BYTES = 64 * 2 ** 20;
/** Maximum length of a text. Longer texts are cut, because a preview is one line of a page. */
const MAX_TEXT_LENGTH = 200;

/** Creates a preview service over what reads values. */
export function createPreviewService(values: Pick<Values, "cost" | "read" | "readPoints">): PreviewService {
  return {
    async values(array) {
      try {
        const count = elementCount(array.stored.shape);
        const firstCount = Math.min(FIRST_COUNT, count);
        const lastCount = Math.min(LAST_COUNT, count - firstCount);
        const wanted = Array.from({ length: firstCount + lastCount }, (_, index) =>
          index < firstCount ? index : count - lastCount + index - firstCount,
        );
        const texts = await readTextsAt(array, wanted, values);
        const parted = (all: readonly string[]) => {
          const short = all.map((text) => shortened(text, MAX_TEXT_LENGTH));
          return { first: short.slice(0, firstCount), last: short.slice(firstCount) };
        };
        if (texts === undefined) return undefined;
        const { shown, asStored } = texts;
        return { ...parted(shown), ...(asStored !== undefined && { stored: parted(asStored) }) };
      } catch {
        // Requests for the data report the error; a page is shown without the values.
        return undefined;
      }
    },
  };
}

/** Values as texts, and as they are stored if that is something else. */
interface ItemTexts {
  readonly shown: readonly string[];
  readonly asStored?: readonly string[] | undefined;
}

/** @param wanted Positions in the flattened array (C order). */
async function readTextsAt(
  array: ServedArray,
  wanted: readonly number[],
  values: Pick<Values, "cost" | "read" | "readPoints">,
): Promise<ItemTexts | undefined> {
  const { shape, dataType, attrs, fill } = array.stored;
  const one = shape.map((length) => ({ begin: 0, count: Math.min(1, length), step: 1 }));
  if (values.cost(array, one).chunkBytes > MAX_CHUNK_BYTES) return undefined;
  const points = wanted.flatMap((position) => coordsOf(position, shape));
  const read = (decode: boolean) =>
    shape.length === 0
      ? values.read(undefined, array, [], { decode })
      : values.readPoints(undefined, array, points, { decode });
  const stored = await read(false);
  if (dataType.kind === "O") {
    const prefix = array.document?.filters?.[0]?.id === "vlen-bytes" ? "b" : "";
    const texts = Array.from((stored.values ?? []) as readonly string[]);
    return { shown: texts.map((text) => prefix + pythonString(text)) };
  }
  const asStored = formatItems(stored.bytes, stored.dataType);
  const decoding = cfDecodingOf(dataType, attrs, missingMarkOf(array.stored, fill.served) ?? null);
  if (asStored === undefined || !isDecoded(decoding)) return asStored && { shown: asStored };
  const decoded = (await read(true)).values ?? [];
  const numbers = Array.from(decoded as ArrayLike<number | bigint>);
  return { shown: formatDecoded(numbers, decoding, attrs), asStored };
}

/** Returns the coordinates of a position in C order. */
function coordsOf(position: number, shape: readonly number[]): number[] {
  const coords: number[] = [];
  let rest = position;
  for (const length of shape.toReversed()) {
    coords.unshift(rest % length);
    rest = Math.floor(rest / length);
  }
  return coords;
}

/** Decodes a few values for people. Chunks are never served this way. */
export interface PreviewService {
  /**
   * Returns the first and last values of a variable in C order, decoded as CF says, and formatted as numpy prints them (`1.5`, `nan`,
   * `2000-01-01T00:00:00`, `'abc'`). CF times (`units: "hours since …"`) and `M8` are ISO dates. Undefined if the type or codec
   * cannot be decoded or the source failed.
   */
  values(array: ServedArray): Promise<PreviewValues | undefined>;
}

/** The first and last values of a variable. */
export interface PreviewValues extends FirstAndLast {
  /** The same values as they are stored: packed numbers, times as numbers. Undefined if they are stored as they are. */
  readonly stored?: FirstAndLast;
}

interface FirstAndLast {
  readonly first: readonly string[];
  /** Empty if `first` has all values. */
  readonly last: readonly string[];
}
