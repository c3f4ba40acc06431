import { runServe } from "../../src/cli/serve.js";
import type { Config } from "../../src/config/config.js";
import { defaultDemoDirectory, makeDemoData } from "./demo-data.js";

/**
 * Runs `zpublish demo`: makes the data if it is not there, serves it as `zpublish serve` does, and writes what to try.
 * @param configOf Resolves the configuration of these locations and the options of the command line.
 * @throws ZpublishError as `runServe`.
 */
export async function runDemo(configOf: (locations: readonly string[]) => Config): Promise<void> {
  const directory = defaultDemoDirectory();
  const { air, climate } = await makeDemoData(directory, () => {
    process.stderr.write(`Making two invented datasets in ${directory} …\n`);
  });
  const { url } = await runServe(() => configOf([`air=${air}`, `climate=${climate}`]));
  process.stdout.write(whatToTry(url));
}

function whatToTry(url: string): string {
  return `
In a browser
  ${url}/datasets/air/explore              air temperature on a map, step by step
  ${url}/datasets/climate/tree             a tree of groups
  ${url}/docs                              every endpoint, to read and try

In a shell
  curl ${url}/datasets
  curl ${url}/datasets/climate/groups
  curl ${url}/datasets/air/zarr/.zmetadata
  ncdump -h ${url}/datasets/air/opendap/air.nc
  gdalinfo 'ZARR:"/vsicurl/${url}/datasets/air/zarr":/air:0'

A file of your own: zpublish FILE. Ctrl-C ends this.
`;
}
