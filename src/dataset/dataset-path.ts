/**
 * Returns the path of a dataset's endpoints below the root path, with a slash at both ends: `/datasets/air/`; `/` if the server
 * publishes that dataset alone.
 * @param id As the path is to have it: percent-encoded, as it is for a decoded path, or `{dataset_id}` in a template.
 */
export type DatasetPath = (id: string) => string;

/** Path of each dataset of several. */
export const severalDatasets: DatasetPath = (id) => `/datasets/${id}/`;

const oneDataset: DatasetPath = () => "/";

/** Returns the paths of datasets in a configuration. */
export function datasetPathOf({ single }: { readonly single: boolean }): DatasetPath {
  return single ? oneDataset : severalDatasets;
}
