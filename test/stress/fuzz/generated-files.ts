import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CDF_TYPES, type CdfType, type CdfVariable, cdfFile } from "../../support/cdf-file.js";
import { PACKAGE_ROOT } from "../../support/clients/client-generation.js";
import { PYTHON } from "../../support/clients/require-client.js";

/** Scripts of `test/fixtures` that write files into a folder, with the libraries of their format. */
const WRITERS = [
  ["write_netcdf3.py"],
  ["write_hdf5.py"],
  ["write_small_files.py", "hdf5"],
  ["write_small_files.py", "netcdf4"],
  ["write_small_files.py", "tiff"],
] as const;
const WRITER_TIMEOUT_MS = 120_000;

/** Writes good files of every format, once. @returns Notes for the report: which ones could not be written. */
export function writeGeneratedFiles(folder: string): string[] {
  mkdirSync(folder, { recursive: true });
  for (const version of [1, 2, 5] as const)
    for (const recordCount of [0, 3]) {
      const name = `generated_${version}_${recordCount}.nc`;
      writeFileSync(join(folder, name), generatedCdf(version, recordCount));
    }
  const notes: string[] = [];
  for (const [writer, ...formats] of WRITERS) {
    const script = join(PACKAGE_ROOT, "test", "fixtures", writer);
    const name = [writer.replace(".py", ""), ...formats].join("-");
    const target = join(folder, name);
    if (existsSync(join(target, "whole"))) continue;
    mkdirSync(target, { recursive: true });
    const args = ["-B", "-W", "ignore", script, target, ...formats];
    const run = spawnSync(PYTHON, args, { encoding: "utf8", timeout: WRITER_TIMEOUT_MS, maxBuffer: 2 ** 28 });
    if (run.status === 0) writeFileSync(join(target, "whole"), "");
    else notes.push(`${name} wrote no files: ${run.error?.message ?? run.stderr.trim().split("\n").at(-1)}`);
  }
  return notes;
}

/** A file with a variable of each type, with and without records. */
function generatedCdf(version: 1 | 2 | 5, recordCount: number): Uint8Array {
  const types = (Object.keys(CDF_TYPES) as CdfType[]).filter(
    (type) => version === 5 || CDF_TYPES[type].number < 7,
  );
  const bytes = (length: number) => Uint8Array.from({ length }, (_, i) => i * 37 + length);
  const variables = types.flatMap((type): CdfVariable[] => {
    const { itemSize } = CDF_TYPES[type];
    const attributes = [
      { name: "_FillValue", type, bytes: bytes(itemSize) },
      { name: "units", type: "char" as const, bytes: Buffer.from("metres") },
    ];
    return [
      { name: `${type}_fixed`, type, dimensions: [1, 2], attributes, bytes: bytes(15 * itemSize) },
      {
        name: `${type}_record`,
        type,
        dimensions: [0, 1],
        attributes,
        bytes: bytes(3 * recordCount * itemSize),
      },
    ];
  });
  return cdfFile({
    ...{ version, recordCount, variables },
    dimensions: [
      { name: "time", length: 0 },
      { name: "x", length: 3 },
      { name: "y", length: 5 },
    ],
    attributes: [{ name: "title", type: "char", bytes: Buffer.from("generated") }],
  });
}
