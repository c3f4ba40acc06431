/** Addresses of a dataset. */
interface DatasetPlace {
  readonly id: string;
  /** Absolute URL with a slash at its end. */
  readonly url: string;
  /** URL of its Zarr v2 store. */
  readonly store: string;
  /** Names of the plugins that the server has. */
  readonly plugins: ReadonlySet<string>;
  /** Content type of the file that the dataset offers; undefined if it offers none. */
  readonly fileType: string | undefined;
}

/** A way to read a dataset, or what describes it. */
export interface DataLink {
  /** Name of the plugin that answers. */
  readonly plugin: string;
  readonly href: string;
  readonly type: string;
  readonly title: string;
  readonly role: "data" | "references" | "metadata";
}

/** Lists the ways to read a dataset that the server has. */
export function dataLinks({ id, url, store, plugins, fileType }: DatasetPlace): DataLink[] {
  const row = (
    plugin: string,
    href: string,
    type: string,
    title: string,
    role: DataLink["role"] = "data",
  ) => {
    return { plugin, href, type, title, role };
  };
  const json = "application/json";
  return [
    row("zarr", store, "application/vnd.zarr; version=2", "Zarr v2 store"),
    row("zarr3", `${url}zarr3`, "application/vnd.zarr; version=3", "Zarr v3 store"),
    row("opendap", `${url}opendap/${encodeURIComponent(id)}.nc`, "application/x-netcdf", "OPeNDAP"),
    ...(fileType === undefined ? [] : [row("file", `${url}file`, fileType, "File")]),
    row("references", `${url}references.json`, json, "References of kerchunk", "references"),
    row("dataset_info", `${url}info`, json, "Dimensions, variables and attributes", "metadata"),
  ].filter(({ plugin }) => plugins.has(plugin));
}
