import type { GivenDataset } from "./dataset-handle.js";

/**
 * Datasets that come and go while the server runs: those below a folder, or those of a plugin. The server asks for the list at start
 * and in every period of `--refresh`; a dataset is opened when it is first asked for.
 */
export interface DatasetProvider {
  /** Name for logs and metrics, unique in a server. */
  readonly name: string;
  /** Prefix of the ids of its datasets, such as `archive~`, so that ids of several providers differ. May be empty. */
  readonly prefix: string;
  /** Where it looks for datasets, for logs. Default: it does not say. */
  readonly place?: string;
  /**
   * Lists the ids of all datasets, without the prefix, in any order. It opens none. A dataset goes when the list does not have it.
   * Returns the same array object if nothing has changed.
   * @throws if it cannot be listed: the list before stays.
   */
  list(signal: AbortSignal): Promise<readonly string[]>;
  /**
   * Returns where a dataset is, and how it is to be served; its `id` is the one given here, without the prefix. Undefined if there is
   * none of that id any more.
   * @throws if that cannot be told: requests for the dataset fail, and are not answered with 404.
   */
  open(id: string): Promise<GivenDataset | undefined>;
  /**
   * Returns a text that changes whenever the content or the options of a dataset do, without opening it, so that a description of the
   * dataset can be kept. Undefined if there is none of that id. Default: datasets are described only while they are open.
   * @throws if that cannot be told now
   */
  readonly versionOf?: (id: string) => Promise<string | undefined>;
  /** Tells whether a dataset will offer its file once it is open. Default: that cannot be told before. */
  readonly offersFile?: (id: string) => boolean;
  /** True if reading a dataset takes requests to other machines: it is described only for a page. Default: false. */
  readonly isRemote?: boolean;
  /** Names what it found that cannot be published, each with the reason, for logs and `inspect`. Default: nothing. */
  readonly problems?: () => readonly { readonly name: string; readonly reason: string }[];
  /** Calls a function when the list has changed, so that the server asks for it before the period is over. Default: never. */
  readonly onChange?: (changed: () => void) => void;
  close(): Promise<void>;
}
