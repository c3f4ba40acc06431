import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { defaultCacheDirectory } from "../../src/config/options.js";

/** To be raised with every change of what is made: data of another version is made anew. */
const VERSION = "3";

/** Locations of the demonstration's datasets. */
export interface DemoData {
  /** Flat, Zarr v2. */
  readonly air: string;
  /** A tree, Zarr v3. */
  readonly climate: string;
}

/** Default directory of the data: beside the chunk cache. */
export function defaultDemoDirectory(): string {
  return join(defaultCacheDirectory(process.env), "demo");
}

/**
 * Makes the demonstration's datasets, or finds them made already. They appear complete or not at all: a run that was
 * interrupted leaves nothing that the next one would believe.
 * @param onMake Called if they have to be made, which takes seconds.
 */
export async function makeDemoData(
  directory = defaultDemoDirectory(),
  onMake: () => void = () => {},
): Promise<DemoData> {
  const versionFile = join(directory, "version.txt");
  const data = { air: join(directory, "air.zarr"), climate: join(directory, "climate.zarr") };
  const isMade = async () => (await readFile(versionFile, "utf8").catch(() => "")).trim() === VERSION;
  if (await isMade()) return data;

  onMake();
  // Only here, since a start that finds the data should not wait for them.
  const [{ createAir }, { createClimate }, { writeV2Store, writeV3Store }] = await Promise.all([
    import("./air.js"),
    import("./climate.js"),
    import("./write-store.js"),
  ]);
  const unfinished = `${directory}.${process.pid}.unfinished`;
  try {
    await mkdir(unfinished, { recursive: true });
    await writeV2Store(join(unfinished, "air.zarr"), createAir());
    await writeV3Store(join(unfinished, "climate.zarr"), createClimate());
    await writeFile(join(unfinished, "version.txt"), `${VERSION}\n`);
    // Another program may have been quicker, and serve what it made.
    if (await isMade()) return data;
    await rm(directory, { recursive: true, force: true });
    await rename(unfinished, directory);
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
  return data;
}
