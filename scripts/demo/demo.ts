import { EXIT_CODES, exitCodeOf, reportError } from "../../src/cli/output.js";
import { runServe } from "../../src/cli/serve.js";
import { resolveConfig } from "../../src/config/resolve-config.js";
import { defaultDemoDirectory, makeDemoData } from "./demo-data.js";

/** What `npm start` runs: makes the data, then serves it as `zpublish serve` would, with the same options. */
async function runDemo(argv: readonly string[]): Promise<void> {
  const directory = defaultDemoDirectory();
  const { air, climate } = await makeDemoData(directory, () => {
    process.stderr.write(`Making two invented datasets in ${directory} …\n`);
  });
  const datasets = [`air=${air}`, `climate=${climate}`];
  const input = { argv: [...datasets, ...argv], env: process.env, cwd: process.cwd() };
  const { url } = await runServe(() => resolveConfig(input));
  process.stdout.write(whatToTry(url));
}

function whatToTry(url: string): string {
  return `
In a browser
  ${url}/                                  what is published here
  ${url}/datasets/air/explore              air temperature on a map, step by step
  ${url}/datasets/air/                     a dataset
  ${url}/datasets/climate/tree             a tree of groups
  ${url}/docs                              every endpoint, to read and try

In a shell
  curl ${url}/datasets
  curl ${url}/datasets/climate/groups
  curl ${url}/datasets/air/zarr/.zmetadata
  ncdump -h ${url}/datasets/air/opendap/air.nc
  gdalinfo 'ZARR:"/vsicurl/${url}/datasets/air/zarr":/air:0'

Ctrl-C ends it.
`;
}

try {
  await runDemo(process.argv.slice(2));
} catch (error) {
  reportError(error);
  process.exit(exitCodeOf(error) || EXIT_CODES.failed);
}
