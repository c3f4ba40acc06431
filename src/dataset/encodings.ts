import type { DatasetConfig, EncodingConfig } from "../config/config.js";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import type { StoredArray } from "../zarr/stored-array.js";
import type { DatasetSnapshot, ServedArray } from "./dataset.js";
import { type LevelContext, servedChunksOf } from "./overviews/level-array.js";
import type { OverviewOptions } from "./overviews/overviews.js";

/** Returns the configuration of a dataset in one of its further encodings, which wins over all others, and has none beside it. */
export function configOfEncoding(config: DatasetConfig, name: string): DatasetConfig {
  const named = config.encodings?.[name] ?? {};
  const { chunks: _chunks, ...codecs } = named;
  const ofVariable = ({ chunks, ...own }: EncodingConfig): EncodingConfig => ({
    // Chunks of a variable have to fit it. Those of an encoding may name dimensions that not every variable has.
    ...(named.chunks === undefined && chunks !== undefined && { chunks }),
    ...own,
    ...codecs,
  });
  const variables = Object.entries(config.variables).map(([path, each]) => [path, ofVariable(each)]);
  return {
    ...config,
    encoding: { ...config.encoding, ...named },
    variables: Object.fromEntries(variables),
  };
}

/**
 * Adds further encodings to a snapshot, and their cuts to its arrays.
 * @param encodings The dataset in each of them, by name.
 * @param snapshot Returns the snapshot that the result becomes; called when chunks are read.
 */
export function* withEncodings(
  plain: DatasetSnapshot,
  encodings: ReadonlyMap<string, DatasetSnapshot>,
  { openLevelReader: openReader }: OverviewOptions,
  snapshot: () => DatasetSnapshot,
): CooperativeTask<DatasetSnapshot> {
  if (encodings.size === 0) return plain;
  const { immutable } = plain;
  const context = { store: `${plain.identity}\n${plain.id}`, snapshot, openReader, immutable };
  const arrays = new Map<string, ServedArray>();
  for (const [path, array] of plain.arrays) {
    yield;
    const cuts = [...encodings.values()].flatMap((each) => {
      const encoded = each.arrays.get(path);
      // Other codecs alone make no other cut.
      return encoded?.plan.kind === "rechunk" ? cutOf(encoded, context) : [];
    });
    arrays.set(path, Object.freeze({ ...array, cuts: cuts.length > 0 ? cuts : undefined }));
  }
  const warnings = [...encodings].flatMap(([name, { refused }]) =>
    refused.flatMap(({ path, reason }) => (arrays.has(path) ? `encoding '${name}': ${reason}` : [])),
  );
  return {
    ...plain,
    arrays,
    encodings: new Map([...encodings].map(([name, each]) => [name, encodedBy(each, snapshot)])),
    warnings: [...plain.warnings, ...warnings],
  };
}

/** Returns a snapshot that knows the dataset whose chunks it has. */
function encodedBy(encoded: DatasetSnapshot, dataset: () => DatasetSnapshot): DatasetSnapshot {
  return Object.freeze({
    ...encoded,
    get encoded() {
      return dataset();
    },
  });
}

/** Describes the chunks that are served of an array as stored ones, so that others are made of them, from the cache. */
function cutOf(array: ServedArray, context: LevelContext): StoredArray {
  const { stored, document, plan } = array;
  const { name, path, shape, dataType, fill, dimNames, attrs } = stored;
  const chunks = servedChunksOf({ path, below: stored.chunks, plan }, context, () => array);
  return Object.freeze({
    ...{ name, path, shape, dataType, fill, dimNames, attrs, chunks },
    chunkShape: document.chunks,
    axisOrder: plan.served.axisOrder,
    codecs: [...(document.filters ?? []), ...(document.compressor === null ? [] : [document.compressor])],
    compressorCount: document.compressor === null ? 0 : 1,
  });
}
