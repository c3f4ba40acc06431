import type { Config, PluginConfig } from "../config/config.js";
import type { GivenDataset } from "../dataset/dataset-handle.js";
import type { Plugin } from "../plugins/plugin.js";

/** A configuration in which datasets and plugins may be objects already, as the library's users have them. */
export interface ServerConfig extends Omit<Config, "datasets" | "plugins" | "processes"> {
  readonly datasets: readonly GivenDataset[];
  readonly plugins: readonly (PluginConfig | Plugin)[];
}
