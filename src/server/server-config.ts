import type { Config, PluginConfig } from "../config/config.js";
import type { GivenDataset } from "../dataset/dataset-handle.js";
import type { Plugin } from "../plugins/plugin.js";
import type { PluginDatasets } from "../plugins/plugin-datasets.js";

/** A configuration in which datasets and plugins may be objects already, as the library's users have them. */
export interface ServerConfig extends Omit<Config, "datasets" | "plugins" | "processes"> {
  readonly datasets: readonly GivenDataset[];
  readonly plugins: readonly (PluginConfig | Plugin)[];
  /** Further datasets that come and go. Their ids begin with the name and `~`. Default: none. */
  readonly providers?: readonly { readonly name: string; readonly datasets: PluginDatasets }[];
}
