import { packageVersion } from "../observe/versions.js";
import type { CoreContext, Plugin } from "./plugin.js";

/** The plugin that serves the files of datasets whose configuration offers them. */
const filePlugin = {
  name: "file",
  version: packageVersion,
  path: "zpublish/plugins/file",
  routes: ({ datasets, chunks }: CoreContext) => [
    {
      path: "/datasets/{dataset_id}/file",
      priority: "chunk",
      operation: {
        summary: "The file that a dataset was read from",
        description: "404 unless the configuration of the dataset offers it by `file`.",
        contentType: "application/octet-stream",
        parameters: { dataset_id: "Id of the dataset" },
        ranged: true,
      },
      handler: ({ params }) => chunks.serveFile(datasets.get(params.dataset_id as string)),
    },
  ],
} satisfies Plugin;
export default filePlugin;
