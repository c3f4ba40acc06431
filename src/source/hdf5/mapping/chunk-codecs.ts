import { ZpublishError } from "../../../errors.js";
import type { CodecSpec } from "../../../zarr/codec-spec.js";
import type { Hdf5Filter } from "../hdf5-model.js";
import type { MappedLayout } from "./map-layout.js";
import type { MappedType } from "./map-type.js";

/** Codecs of chunks that skipped the filters of a mask. */
export function chunkCodecs(
  filters: readonly Hdf5Filter[],
  mask: number,
  type: MappedType,
  _chunkByteLength: number,
): Pick<MappedLayout, "codecs" | "compressorCount" | "servedFilters" | "servedCompressor"> {
  const codecs: CodecSpec[] = type.repack === undefined ? [] : [type.repack];
  let compressorCount: 0 | 1 = 0;
  filters.forEach((filter, i) => {
    if ((mask >> i) & 1) return;
    if (filter.id === 1) {
      codecs.push({ id: "zlib", level: filter.values[0] ?? 4 });
      compressorCount = 1;
    } else if (filter.id === 2) codecs.push({ id: "shuffle", elementsize: filter.values[0] ?? 1 });
    else throw new ZpublishError("unsupported", `filter ${filter.id} ${filter.name}`);
  });
  return { codecs, compressorCount };
}
