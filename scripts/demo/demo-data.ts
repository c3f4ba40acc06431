import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** To be raised with every change of what is made: data of another version is made anew. */
const VERSION = "3";

/** Locations of the demonstration's datasets. */
export interface DemoData {
  /** Flat, Zarr v2. */
  readonly air: string;
  /** A tree, Zarr v3. */
  readonly climate: string;
}

/** `demo-data` beside the nearest package.json. */
export function defaultDemoDirectory(): string {
  let directory = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(directory, "package.json"))) {
    if (dirname(directory) === directory) return resolve("demo-data");
    directory = dirname(directory);
  }
  return join(directory, "demo-data");
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
  if ((await readFile(versionFile, "utf8").catch(() => "")).trim() === VERSION) return data;

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
    await rm(directory, { recursive: true, force: true });
    await rename(unfinished, directory);
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
  return data;
}

if (process.argv[1] !== undefined && pathToFileURL(process.argv[1]).href === import.meta.url) {
  const data = await makeDemoData(process.argv[2] === undefined ? undefined : resolve(process.argv[2]));
  process.stdout.write(`${data.air}\n${data.climate}\n`);
}
