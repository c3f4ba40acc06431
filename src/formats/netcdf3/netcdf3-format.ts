import { type CooperativeTask, runCooperatively } from "../../event-loop/cooperative-task.js";
import { sortCooperatively } from "../../event-loop/sort-cooperatively.js";
import { comparePaths, printablePath, type Refusal } from "../../zarr/stored-tree.js";
import type { FileFormat } from "../file-format.js";
import type { FileArray, FileGroup, FileIndex } from "../file-index.js";
import { gatherRecords, type RecordsRecipe } from "./gather-records.js";
import { type Netcdf3Header, type Netcdf3Variable, readHeader, versionOf } from "./read-header.js";
import { recordLayout } from "./record-layout.js";
import { attributesSteps, variableArraySteps } from "./variable-array.js";

/** Names of the versions, as netCDF's documentation has them. */
const FORMAT_NAMES = { 1: "NetCDF-3", 2: "NetCDF-3 (64-bit offset)", 5: "NetCDF-3 (64-bit data)" } as const;

/**
 * NetCDF-3 in its three versions, CDF-1, CDF-2 and CDF-5 (NetCDF Classic Format Specification). Values are big-endian and not
 * compressed, so all chunks are served as they are stored.
 */
export const netcdf3Format: FileFormat = {
  id: "netcdf3",
  revision: 1,
  recognizes: (head) => versionOf(head) !== undefined,
  async readIndex(file) {
    return runCooperatively(indexSteps(await readHeader(file), file.byteLength));
  },
  makeChunk: (file, recipe, [chunkNumber = 0]) => gatherRecords(file, recipe as RecordsRecipe, chunkNumber),
};

/** @throws ZpublishError `invalid-metadata` */
function* indexSteps(header: Netcdf3Header, fileLength: number): CooperativeTask<FileIndex> {
  const records = recordLayout(header, fileLength);
  const counts = new Map<string, number>();
  for (const { name } of header.variables) counts.set(name, (counts.get(name) ?? 0) + 1);
  const arrays: FileArray[] = [];
  const refused: Refusal[] = [];
  for (const variable of header.variables) {
    yield;
    const isDouble = counts.get(variable.name) !== 1;
    const reason = isDouble ? "several variables have this name" : problemOf(variable, header.byteLength);
    if (reason === undefined) arrays.push(yield* variableArraySteps(variable, records));
    else refused.push({ path: printablePath(variable.name), reason });
  }
  const root: FileGroup = {
    path: "/",
    attrs: yield* attributesSteps(header.attributes),
    arrays: yield* sortCooperatively(arrays, (a, b) => comparePaths(a.name, b.name)),
  };
  return { format: FORMAT_NAMES[header.version], groups: [root], refused, warnings: [] };
}

/** Returns why a variable cannot be served; undefined if it can. */
function problemOf({ dimensions, begin }: Netcdf3Variable, headerBytes: number): string | undefined {
  const tooLong = dimensions.find(({ length }) => !Number.isSafeInteger(length));
  if (tooLong !== undefined) return `expected dimensions below 2^53, received ${tooLong.length}`;
  return begin < headerBytes
    ? `expected its data behind the header of ${headerBytes} bytes, received an offset of ${begin}`
    : undefined;
}
