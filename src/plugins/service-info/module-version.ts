import { type Plugin, packageVersion, stringifyJson } from "../../plugin-api.js";

/** The plugin of `/versions`: versions of this package, its dependencies, Node.js and the system. */
const moduleVersionPlugin = {
  name: "module_version",
  version: packageVersion,
  path: "zpublish/plugins/module-version",
  routes(context) {
    const document = context.createDocument(stringifyJson(context.versions), "application/json");
    return [
      {
        path: "/versions",
        priority: "page",
        operation: {
          summary: "Versions of zpublish, its dependencies, Node.js and the operating system",
          contentType: "application/json",
          schema: { type: "object", additionalProperties: { type: "string" } },
          ranged: true,
        },
        handler: () => ({ kind: "document", document }),
      },
    ];
  },
} satisfies Plugin;
export default moduleVersionPlugin;
