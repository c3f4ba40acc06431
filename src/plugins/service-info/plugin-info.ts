import {
  type Document,
  type JsonObject,
  type Plugin,
  type PluginContext,
  packageVersion,
  stringifyJson,
} from "../../plugin-api.js";

/** The plugin of `/plugins`: name, origin and version of every loaded plugin. */
const pluginInfoPlugin = {
  name: "plugin_info",
  version: packageVersion,
  path: "zpublish/plugins/plugin-info",
  routes(context) {
    let document: Document | undefined;
    return [
      {
        path: "/plugins",
        priority: "page",
        operation: {
          summary: "Names, versions and origins of all plugins",
          contentType: "application/json",
          schema: PLUGINS_SCHEMA,
          ranged: true,
        },
        // Made at the first request: other plugins may still load when this one returns its routes.
        handler() {
          document ??= context.createDocument(stringifyJson(pluginTable(context)), "application/json");
          return { kind: "document", document };
        },
      },
    ];
  },
} satisfies Plugin;
export default pluginInfoPlugin;

const PLUGINS_SCHEMA = {
  type: "object",
  additionalProperties: {
    type: "object",
    required: ["path", "version"],
    properties: {
      path: { type: "string", description: "Module the plugin's code comes from" },
      version: { type: "string" },
    },
  },
};

function pluginTable(context: PluginContext): JsonObject {
  return Object.fromEntries(
    context.plugins().map(({ name, path, version }): [string, JsonObject] => [name, { path, version }]),
  );
}
