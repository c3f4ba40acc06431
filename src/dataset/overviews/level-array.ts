import { packingOf } from "../../cf/packing.js";
import { encoderRevision } from "../../codec/encoder-revision.js";
import { isNumeric } from "../../codec/item-rows.js";
import type { JsonObject } from "../../json/json-value.js";
import type { ChunkReader, ServedChunks } from "../../zarr/chunk-source.js";
import { type CodecSpec, DEFAULT_COMPRESSOR } from "../../zarr/codec-spec.js";
import { codecRule, completeCodec, encodeProblem } from "../../zarr/plan/codec-rules.js";
import { createSteps } from "../../zarr/plan/codec-steps.js";
import type { LevelMethod } from "../../zarr/plan/compute-step.js";
import { createComputePlan } from "../../zarr/plan/create-compute-plan.js";
import { createEncodingPlan } from "../../zarr/plan/create-encoding-plan.js";
import { growthOf } from "../../zarr/plan/growth-of.js";
import { encodedCodec } from "../../zarr/plan/served-codecs.js";
import { unservable } from "../../zarr/plan/unservable.js";
import type { StoredArray } from "../../zarr/stored-array.js";
import { createServedArray } from "../create-served-array.js";
import type { DatasetSnapshot, ServedArray } from "../dataset.js";
import { levelValues } from "./level-values.js";

/** Changed whenever other values are made of the same ones. */
const REVISION = "1";

/** A coarser level of an array. */
export interface LevelRequest {
  readonly name: string;
  /** Without a leading slash: `1/t2m`. */
  readonly path: string;
  /** Cells per axis that become one: 1 or 2. */
  readonly factors: readonly number[];
  readonly method: LevelMethod;
  /** Attributes before those go that means make wrong: packing, missing values. Default: those of the level below. */
  readonly attrs?: JsonObject;
  /**
   * Whether means of integers are integers, packed as they are, as OME-Zarr demands: it has one type for all levels, and no missing
   * values but those that attributes name. Default false.
   */
  readonly keepsType?: boolean;
}

/** The dataset that a level belongs to. */
export interface LevelContext {
  /** Name of the dataset and of the place of its data. */
  readonly store: string;
  /** Returns the snapshot that has the level; called when chunks are read for the level above. */
  readonly snapshot: () => DatasetSnapshot;
  /** Opens the reader of a level's chunks: `ChunkService.openReader`. */
  readonly openReader: (snapshot: DatasetSnapshot, array: ServedArray) => ChunkReader;
  /** As in `DatasetSnapshot`. */
  readonly immutable: boolean;
  /** As in `SnapshotOptions`. */
  readonly maxChunkBytes?: number | undefined;
}

/**
 * Makes a coarser level of an array. Its chunks are as long as those of the array below, and made of its stored ones; those of a
 * level that was made here are got from the chunk service.
 * @throws ZpublishError `unsupported`, naming the array, if it has no such values, or its chunks cannot be decoded or made
 */
export function createLevelArray(
  below: ServedArray,
  request: LevelRequest,
  context: LevelContext,
): ServedArray {
  const { name, path, factors, method, keepsType = false } = request;
  const { stored, document, variable } = below;
  const { dataType } = stored;
  if (dataType.kind === "O" || (method !== "nearest" && !isNumeric(dataType)))
    throw unservable({ path }, `expected numbers to take the ${method} of, received ${dataType.numpyName}`);
  const packing = packingOf(stored.attrs, keepsType ? null : document.fill_value);
  const values = levelValues(stored, packing, method, keepsType);
  const shape = stored.shape.map((length, axis) => Math.ceil(length / factors[axis]!));
  const chunkShape = shape.map((length, axis) => Math.max(1, Math.min(document.chunks[axis]!, length)));
  const codecs = codecsOf(below, values.dataType.itemSize);
  const fields: StoredArray = {
    ...{ name, path, shape, chunkShape, codecs },
    dataType: values.dataType,
    axisOrder: shape.map((_, axis) => axis),
    compressorCount: document.compressor === null ? 0 : 1,
    fill: values.fill,
    dimNames: variable.dims,
    attrs: values.attributesOf(request.attrs ?? stored.attrs),
    chunks: stored.chunks,
  };
  const options = { encoderRevision, maxChunkBytes: context.maxChunkBytes };
  const planned = createEncodingPlan(fields, {}, options);
  const plan = createComputePlan(
    stored,
    {
      path,
      box: chunkShape.map((length, axis) => length * factors[axis]!),
      compute: {
        ...{ kind: "coarsen", method, factors, packing },
        from: dataType,
        to: values.dataType,
        missingItem: values.missingItem,
        fillItem: values.fill.item,
        revision: REVISION,
      },
      encode: createSteps(fields, codecs, chunkShape, planned.plan.maxFilledByteLength),
      absentIsAbsent: values.absentIsAbsent,
    },
    options,
  );
  let reader: ChunkReader | undefined;
  const chunks: ServedChunks = {
    kind: "served",
    store: context.store,
    path,
    plan: stored.chunks.kind === "served" ? `${stored.chunks.plan}.${plan.id}` : plan.id,
    ...(!context.immutable && { joined: growthOf(stored.chunks, plan) }),
    level: stored.chunks.kind === "served" ? stored.chunks.level + 1 : 1,
    openReader() {
      reader ??= context.openReader(context.snapshot(), level);
      return reader;
    },
  };
  const level = createServedArray({ ...fields, chunks }, { ...planned, plan }, variable.dims, false);
  return level;
}

/** Returns the codecs of a level: those of the array below as far as they suit other values and can be encoded. */
function codecsOf({ document: { compressor, filters } }: ServedArray, itemSize: number): CodecSpec[] {
  const shuffle = filters?.find(({ id }) => id === "shuffle");
  const codecs: CodecSpec[] = shuffle === undefined ? [] : [{ id: "shuffle", elementsize: itemSize }];
  if (compressor !== null) codecs.push(compressorOf(compressor));
  return codecs;
}

function compressorOf(codec: CodecSpec): CodecSpec {
  const encoded = encodedCodec(codec);
  const isAskable = codecRule(encoded.id)?.askedAs === "compressor";
  return isAskable && encodeProblem(completeCodec(encoded)) === undefined ? encoded : DEFAULT_COMPRESSOR;
}
