import { createHash } from "node:crypto";
import type { DatasetSnapshot } from "../dataset/dataset.js";
import type { RouteRequest, StreamReply } from "../http/reply.js";
import { packageVersion } from "../observe/versions.js";
import { encodePath, encodeSegment } from "../pages/page.js";
import { type ReferenceRules, referencePieces } from "../references/dataset-references.js";
import type { CoreContext, Plugin } from "./plugin.js";

/** The plugin of kerchunk's references: where the chunks of a dataset are stored, for clients that read them there. */
const referencesPlugin = {
  name: "references",
  version: packageVersion,
  path: "zpublish/plugins/references",
  routes(context: CoreContext) {
    // References lead to chunks of the store if they are nowhere else.
    if (!context.plugins().some(({ name }) => name === "zarr")) return [];
    return [
      {
        path: "/datasets/{dataset_id}/references.json",
        priority: "page",
        operation: {
          summary: "Where all chunks are stored, as kerchunk's references (version 1)",
          description:
            "The Zarr v2 store as one document, for fsspec, xarray and GDAL. Chunks that lie as they are served in a store to which clients are redirected are read from there, " +
            "others from this service; small arrays are in the document.",
          contentType: "application/json",
          schema: { type: "object" },
          parameters: { dataset_id: "Id of the dataset" },
        },
        handler: (request: RouteRequest) => reply(context, request),
      },
    ];
  },
} satisfies Plugin;
export default referencesPlugin;

async function reply(context: CoreContext, { params, serviceUrl }: RouteRequest): Promise<StreamReply> {
  const snapshot = context.datasets.get(params.dataset_id as string);
  const dataset = serviceUrl + context.datasetPath(encodeSegment(snapshot.id));
  const file = await offeredFile(context, snapshot);
  const etag = etagOf(snapshot, dataset, file);
  const rules: Omit<ReferenceRules, "signal"> = {
    chunks: context.chunks,
    // Whatever only the service can read is read through it: files of this machine, stores behind it.
    urlOf({ location, isPublic }) {
      if (isPublic) return location;
      return location === file ? `${dataset}file` : undefined;
    },
    chunkUrl: (path, key) => `${dataset}zarr/${encodePath(path)}/${key}`,
  };
  return {
    kind: "stream",
    contentType: "application/json",
    cacheControl: snapshot.cacheControl,
    quotesAddress: true,
    ...(etag && { etag }),
    pieces: (_range, { signal }) => referencePieces(snapshot, { ...rules, signal }),
  };
}

/**
 * Finds where the file lies that a dataset offers; undefined if it offers none. Neither does one whose file may be replaced: references
 * that a client keeps would lead to other bytes then.
 */
async function offeredFile(
  { plugins }: CoreContext,
  { file, immutable }: DatasetSnapshot,
): Promise<string | undefined> {
  if (!immutable || !plugins().some(({ name }) => name === "file")) return undefined;
  return (await file?.place())?.location;
}

/**
 * Returns the ETag of the references; undefined if chunks of the dataset may come and go while its metadata stay the same, as those of
 * Zarr stores do.
 */
function etagOf(snapshot: DatasetSnapshot, dataset: string, file: string | undefined): string | undefined {
  const { format, immutable, state, revision } = snapshot;
  if (format === undefined && !immutable) return undefined;
  const hash = createHash("sha256").update([packageVersion, state, revision, dataset, file].join("\n"));
  return `"${hash.digest("base64url").slice(0, 22)}"`;
}
