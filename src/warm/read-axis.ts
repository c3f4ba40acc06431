import { cfTimeFormatter } from "../cf/cf-time.js";
import { packingOf } from "../cf/packing.js";
import type { ChunkOutcome } from "../codec/made-chunk.js";
import type { ServedArray } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import { formatDatetime, readNumbers } from "../pages/format-items.js";
import type { ChunkTask } from "../pool/chunk-task.js";
import { createEncodingPlan } from "../zarr/plan/create-encoding-plan.js";
import type { AxisValues } from "./dimension-range.js";

/** Makes a chunk in the pool. */
export type MakeChunk = (task: ChunkTask, signal?: AbortSignal) => Promise<ChunkOutcome>;

/** Bound of a coordinate, uncompressed. */
const MAX_BYTES = 256 * 2 ** 20;

/**
 * Reads all values of a coordinate of one dimension: dates if it counts time (CF section 4.4) or is a `datetime64`, else unpacked numbers.
 * @throws ZpublishError `unsupported` if its values are neither; what reading it throws
 */
export async function readAxis({ stored, variable }: ServedArray, makeChunk: MakeChunk): Promise<AxisValues> {
  const { dataType, attrs } = variable;
  const unsupported = () =>
    new ZpublishError(
      "unsupported",
      `'${variable.path}': expected numbers or times, received ${dataType.numpyStr}`,
    );
  if (!"iufM".includes(dataType.kind)) throw unsupported();
  const { kind, timeUnit = "generic" } = dataType;
  const items = await readItems(stored, makeChunk);
  const raw = readNumbers(items, kind === "M" ? { ...dataType, kind: "i" } : dataType);
  if (raw === undefined) throw unsupported();
  if (kind === "M")
    return {
      kind: "dates",
      values: raw.map((value) => withSeconds(formatDatetime(BigInt(value), timeUnit))),
    };
  const formatTime = cfTimeFormatter(attrs);
  if (formatTime !== undefined) return { kind: "dates", values: raw.map(formatTime) };
  const { missing, scale, offset } = packingOf(attrs);
  const values = raw.map(Number);
  return {
    kind: "numbers",
    values: values.map((value) => (missing.includes(value) ? Number.NaN : value * scale + offset)),
  };
}

/** Writes a date as precise as its unit to the second: `2000-01` → `2000-01-01T00:00:00`. */
function withSeconds(text: string): string {
  return /^\d{4}(-|$)/.test(text) ? text + "0000-01-01T00:00:00".slice(text.length) : text;
}

async function readItems(stored: ServedArray["stored"], makeChunk: MakeChunk): Promise<Uint8Array> {
  const [length = 0] = stored.shape;
  if (length === 0) return new Uint8Array(0);
  const { plan } = createEncodingPlan(
    stored,
    { chunkShape: [length], compressor: null, filters: null },
    { maxChunkBytes: MAX_BYTES },
  );
  // Filled if nothing is stored.
  const outcome = await makeChunk({ plan: { ...plan, absentIsAbsent: false }, chunkCoords: [0] });
  if (outcome.status === "encoded") return outcome.bytes;
  const reason = outcome.status === "failed" ? outcome.error.message : "its chunks are absent";
  throw new ZpublishError("source-unreadable", `'${plan.path}' cannot be read: ${reason}`);
}
