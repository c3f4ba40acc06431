import { requestCost } from "../capacity/request-cost.js";
import type { BenchTable } from "../harness/harness.js";
import { codecs } from "./codecs.js";
import { collections } from "./collections.js";
import { dap } from "./dap.js";
import { explore } from "./explore.js";
import { files } from "./files.js";
import { icechunk } from "./icechunk.js";
import { JOINED_TABLES } from "./joined.js";
import { latency } from "./latency.js";
import { overviews, transcodeCold, warm } from "./made-chunks.js";
import { memory } from "./memory.js";
import { peers } from "./peers.js";
import { references } from "./references.js";
import { remote } from "./remote.js";
import { select } from "./select.js";
import { start } from "./start.js";
import { thumbnails } from "./thumbnails.js";
import { tileServers } from "./tile-servers.js";
import { tiles } from "./tiles.js";
import { wms } from "./wms.js";

/** Benchmarks besides the rows, by name, in the order of the report. */
export const TABLES: Readonly<Record<string, BenchTable>> = {
  codecs,
  "transcode-cold": transcodeCold,
  overviews,
  thumbnails,
  tiles,
  "tile-servers": tileServers,
  wms,
  explore,
  warm,
  remote,
  files,
  latency,
  memory,
  start,
  "request-cost": requestCost,
  collections,
  ...JOINED_TABLES,
  references,
  icechunk,
  select,
  dap,
  peers,
};
