import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { INSTALLED_PACKAGES, nodeProgram } from "../servers/installed-node.js";
import { commandOf, type Generation, generationProblem } from "./client-generation.js";

/** Debian's Python: another `python3` that knows none of the packages may come first on PATH. */
export const PYTHON = "/usr/bin/python3";

/**
 * How each client is asked whether it is there: a command that really loads it, quick, and ends with 0.
 * All of them are installed by `scripts/install/clients.sh`, servers of remote data by `scripts/install/origins.sh`, and Icechunk, which
 * runs in the Debian 13 root alone, by `scripts/install/nodes.sh`.
 */
const PROBES = {
  xarray: [PYTHON, "-c", "import xarray"],
  zarr: [PYTHON, "-c", "import zarr"],
  numcodecs: [PYTHON, "-c", "import numcodecs"],
  fsspec: [PYTHON, "-c", "import fsspec, aiohttp, fsspec.implementations.http"],
  requests: [PYTHON, "-c", "import requests"],
  dask: [PYTHON, "-c", "import dask.array"],
  h5netcdf: [PYTHON, "-c", "import h5netcdf"],
  h5py: [PYTHON, "-c", "import h5py"],
  netcdf4: [PYTHON, "-c", "import netCDF4"],
  rasterio: [PYTHON, "-c", "import rasterio"],
  rioxarray: [PYTHON, "-c", "import rioxarray"],
  scipy: [PYTHON, "-c", "import scipy.io"],
  tifffile: [PYTHON, "-c", "import tifffile"],
  gdal: [PYTHON, "-c", "from osgeo import gdal; assert gdal.GetDriverByName('Zarr') is not None"],
  gdalinfo: ["gdalinfo", "--version"],
  owslib: [PYTHON, "-c", "import owslib.wms"],
  // It brings OGC's schemas of WMS.
  mapproxy: [
    PYTHON,
    "-c",
    "import lxml.etree; open('/usr/share/python3-mapproxy/test/schemas/wms/1.3.0/capabilities_1_3_0.xsd')",
  ],
  qgis: ["env", "QT_QPA_PLATFORM=offscreen", PYTHON, "-c", "import qgis.core"],
  tiffcp: ["sh", "-c", "command -v tiffcp"],
  chromium: ["chromium", "--version"],
  nginx: ["/usr/sbin/nginx", "-v"],
  radosgw: ["sh", "-c", "radosgw --version && ceph-mon --version && ceph-osd --version && ceph --version"],
  haproxy: ["/usr/sbin/haproxy", "-v"],
  wrk: ["wrk", "-v"],
  systemd: ["systemd-analyze", "--version"],
  promtool: ["promtool", "--version"],
  yaml: [PYTHON, "-c", "import yaml"],
  ncdump: ["sh", "-c", "command -v ncdump"],
  nco: ["ncks", "--version"],
  cdo: ["cdo", "--version"],
  ncview: ["sh", "-c", "command -v ncview"],
  ferret: ["sh", "-c", "command -v ferret_c"],
  grads: ["sh", "-c", "command -v grads"],
  octave: ["octave-cli", "--no-gui", "--eval", "pkg load netcdf"],
  ncdf4: ["Rscript", "-e", "library(ncdf4)"],
  getdap: ["sh", "-c", "command -v getdap && command -v getdap4"],
  stac: [PYTHON, "-c", "import pystac, pystac_client, rdflib, stac_validator"],
  xvfb: ["sh", "-c", "command -v Xvfb && command -v xvfb-run"],
  imagemagick: ["identify", "-version"],
  icechunk: [
    nodeProgram(24),
    "-e",
    `require(${JSON.stringify(join(INSTALLED_PACKAGES, "@earthmover/icechunk"))})`,
  ],
} as const satisfies Record<string, readonly [string, ...string[]]>;

/** wrk prints its version and its usage, and calls that an error. */
const SUCCESS_STATUS: Partial<Record<ClientName, number>> = { wrk: 1 };

/** A program or a Python package that tests of real clients run. */
export type ClientName = keyof typeof PROBES;

const answers = new Map<string, string | false>();

/**
 * Why a test that needs these clients is to be skipped, or false if all of them are there: made for tap's
 * `t.test(name, { skip: clientMissing("xarray") }, …)`. Each client is run once per process to find out.
 * @throws Error if one is missing though `ZPUBLISH_REQUIRE_CLIENTS=1` says that none may be, as on CI.
 */
export function clientMissing(...names: readonly [ClientName, ...ClientName[]]): string | false {
  return clientMissingIn("system", ...names);
}

/** The same for clients of one generation. */
export function clientMissingIn(
  generation: Generation,
  ...names: readonly [ClientName, ...ClientName[]]
): string | false {
  for (const name of names) {
    const key = `${generation} ${name}`;
    const answer = answers.get(key) ?? generationProblem(generation) ?? probe(generation, name);
    answers.set(key, answer);
    if (answer === false) continue;
    if (process.env.ZPUBLISH_REQUIRE_CLIENTS === "1") {
      throw new Error(
        `ZPUBLISH_REQUIRE_CLIENTS=1, but ${answer}; scripts/install/clients.sh, origins.sh or nodes.sh installs it`,
      );
    }
    return `skipped, because ${answer}`;
  }
  return false;
}

function probe(generation: Generation, name: ClientName): string | false {
  const [program, ...args] = PROBES[name];
  const run = spawnSync(...commandOf(generation, program, args), {
    encoding: "utf8",
    timeout: 60_000,
    stdio: ["ignore", "pipe", "pipe"],
  });
  if (run.error !== undefined) return `${name} cannot be run: ${run.error.message}`;
  if (run.status === (SUCCESS_STATUS[name] ?? 0)) return false;
  const lastLine = run.stderr.trim().split("\n").at(-1) ?? "";
  return `${name} is not there: ${[program, ...args].join(" ")} ended with ${run.status ?? run.signal}: ${lastLine}`;
}
