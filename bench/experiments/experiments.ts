import { browserHttp2 } from "./browser-http2.js";
import { codecs } from "./codecs.js";
import { coldStart } from "./cold-start.js";
import { collections } from "./collections.js";
import type { Experiment } from "./experiment.js";
import { explore } from "./explore.js";
import { files } from "./files.js";
import { infoUnderEncodes } from "./info-under-encodes.js";
import { joined } from "./joined.js";
import { loopBlocking } from "./loop-blocking.js";
import { memory } from "./memory.js";
import { overviews } from "./overviews.js";
import { profileStages } from "./profile-stages.js";
import { remote } from "./remote.js";
import { scaleDatasets } from "./scale-datasets.js";
import { scaleVariables } from "./scale-variables.js";
import { scaleWorkers } from "./scale-workers.js";
import { singleFlight } from "./single-flight.js";
import { slowClients } from "./slow-clients.js";
import { thumbnails } from "./thumbnails.js";
import { transcodeCold } from "./transcode-cold.js";
import { zarr3 } from "./zarr3.js";

/** By name, in the order of the report. */
export const EXPERIMENTS: Readonly<Record<string, Experiment>> = {
  codecs,
  "transcode-cold": transcodeCold,
  overviews,
  thumbnails,
  explore,
  zarr3,
  remote,
  files,
  "single-flight": singleFlight,
  "info-under-encodes": infoUnderEncodes,
  memory,
  "slow-clients": slowClients,
  "cold-start": coldStart,
  "scale-workers": scaleWorkers,
  "scale-datasets": scaleDatasets,
  "scale-variables": scaleVariables,
  collections,
  joined,
  "loop-blocking": loopBlocking,
  "profile-stages": profileStages,
  "browser-http2": browserHttp2,
};
