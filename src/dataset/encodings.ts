import type { DatasetConfig, EncodingConfig } from "../config/config.js";
import { ZpublishError } from "../errors.js";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import type { ChunkReader, ServedChunks } from "../zarr/chunk-reader.js";
import { growthOf } from "../zarr/plan/encoding-plan.js";
import type { StoredArray } from "../zarr/stored-array.js";
import type { DatasetSnapshot, ServedArray } from "./dataset.js";
import type { OverviewOptions } from "./overviews/overviews.js";

/** Returns the configuration of a dataset in one of its further encodings, which wins over all others, and has none beside it. */
export function configOfEncoding(config: DatasetConfig, name: string): DatasetConfig {
  const named = config.encodings?.[name] ?? {};
  const ofVariable = ({ chunks, ...codecs }: EncodingConfig): EncodingConfig => ({
    // Chunks of a variable have to fit it. Those of an encoding may name dimensions that not every variable has.
    ...(named.chunks === undefined && chunks !== undefined && { chunks }),
    ...codecs,
    ...withoutChunks(named),
  });
  const variables = Object.entries(config.variables).map(([path, each]) => [path, ofVariable(each)]);
  return {
    ...config,
    encoding: { ...config.encoding, ...named },
    variables: Object.fromEntries(variables),
  };
}

function withoutChunks({ chunks: _chunks, ...codecs }: EncodingConfig): EncodingConfig {
  return codecs;
}

/**
 * Adds further encodings to a snapshot, and their cuts to its arrays.
 * @param encodings The dataset in each of them, by name.
 * @param snapshot Returns the snapshot that the result becomes; called when chunks are read.
 */
export function* withEncodings(
  plain: DatasetSnapshot,
  encodings: ReadonlyMap<string, DatasetSnapshot>,
  { openLevelReader = noReader }: OverviewOptions,
  snapshot: () => DatasetSnapshot,
): CooperativeTask<DatasetSnapshot> {
  if (encodings.size === 0) return plain;
  const arrays = new Map<string, ServedArray>();
  const store = `${plain.identity}\n${plain.id}`;
  const open = (array: ServedArray) => openLevelReader(snapshot(), array);
  for (const [path, array] of plain.arrays) {
    yield;
    const cuts = [...encodings.values()].flatMap((each) => {
      const encoded = each.arrays.get(path);
      // Other codecs alone make no other cut.
      return encoded?.plan.kind === "rechunk" ? cutOf(encoded, store, plain.immutable, open) : [];
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

function noReader(): never {
  throw new ZpublishError("internal", "expected a server to read chunks of encodings");
}

/**
 * Describes the chunks that are served of an array as stored ones, so that others are made of them, from the cache.
 * @param store As in `ServedChunks`.
 */
function cutOf(
  array: ServedArray,
  store: string,
  immutable: boolean,
  open: (array: ServedArray) => ChunkReader,
): StoredArray {
  const { stored, document, plan } = array;
  const { name, path, shape, dataType, fill, dimNames, attrs } = stored;
  let reader: ChunkReader | undefined;
  const chunks: ServedChunks = {
    kind: "served",
    ...{ store, path, plan: plan.id },
    ...(!immutable && { joined: growthOf(stored.chunks, plan) }),
    level: 1,
    openReader() {
      reader ??= open(array);
      return reader;
    },
  };
  return Object.freeze({
    ...{ name, path, shape, dataType, fill, dimNames, attrs, chunks },
    chunkShape: document.chunks,
    axisOrder: plan.served.axisOrder,
    codecs: [...(document.filters ?? []), ...(document.compressor === null ? [] : [document.compressor])],
    compressorCount: document.compressor === null ? 0 : 1,
  });
}
