/** The public interface of zpublish. What is not exported here is free to change. */

export type { GroupInput, VariableInput } from "./dataset/in-memory-tree.js";
export {
  type CreateDataTreeOptions,
  createDataTree,
  openDataTree,
  type ServableTree,
  zarrStoreSource,
} from "./dataset/in-memory-tree.js";
export { createServer, type Server } from "./library/create-server.js";
export type { CollectionOptions, DatasetOptions, ServerOptions } from "./library/server-options.js";
export * from "./plugin-api.js";
