import {
  FOLDER_END,
  idFolderSteps,
  idPageSteps,
  type Plugin,
  type PluginContext,
  packageVersion,
  parseQuery,
  type QueryParameter,
  type Reply,
  type Route,
  type RouteRequest,
  runCooperatively,
  xmlText,
  ZpublishError,
} from "../../plugin-api.js";

/** Datasets and folders of one catalog, some hundred kilobytes; further ones are in another catalog, to which it refers. */
const PAGE_ENTRIES = 1_000;
const XML_TYPE = "application/xml";

const QUERY: Readonly<Record<string, QueryParameter>> = {
  after: {
    description: "Id, or beginning of the ids of a folder, after which the catalog begins",
    schema: { type: "string" },
  },
};

/**
 * The plugin of catalogs as THREDDS writes them (Dataset Inventory Catalog Specification 1.0), for programs that browse those: one for
 * each folder of ids.
 */
const threddsPlugin = {
  name: "thredds",
  version: packageVersion,
  path: "zpublish/plugins/thredds",
  routes: (context: PluginContext): readonly Route[] => {
    const handler = (request: RouteRequest) => catalogReply(context, request);
    const operation = { contentType: XML_TYPE, query: QUERY, ranged: true };
    return [
      {
        path: "/catalog.xml",
        priority: "page",
        operation: { ...operation, summary: "Catalog of datasets and folders, as THREDDS writes it" },
        handler,
      },
      {
        path: "/catalog/{folder:path}/catalog.xml",
        priority: "page",
        operation: {
          ...operation,
          summary: "Catalog of the datasets in a folder",
          parameters: {
            folder: "Beginning of the ids of its datasets, with slashes for `~`: `archive/2024`",
          },
        },
        handler,
      },
    ];
  },
} satisfies Plugin;
export default threddsPlugin;

/** Makes the catalog of a folder. It says the same whether datasets are open or not, and opens none. */
async function catalogReply(
  context: PluginContext,
  { params, query, serviceUrl }: RouteRequest,
): Promise<Reply> {
  const { datasets, title } = context;
  const asked = (params.folder ?? "").replaceAll("/", FOLDER_END);
  const [after = ""] = parseQuery(query, { once: Object.keys(QUERY) }).get("after") ?? [];
  const steps = idFolderSteps(datasets.ids(), datasets.configuredCount, asked);
  const { folder, below, entries, configuredCount, counts } = await runCooperatively(steps);
  if (below.length === 0 && asked !== "") throw new ZpublishError("not-found", `Folder '${asked}' not found`);
  const listed = { filter: "", after, limit: PAGE_ENTRIES };
  const page = await runCooperatively(idPageSteps(entries, configuredCount, listed));
  const root = new URL(serviceUrl).pathname.replace(/\/$/, "");
  const services = createServices(context, root);
  const nameOf = (id: string) => (folder === "" ? id : id.slice(folder.length + 1));
  const name = folder === "" ? title : withSlashes(folder);
  const lines = [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<catalog xmlns="http://www.unidata.ucar.edu/namespaces/thredds/InvCatalog/v1.0" xmlns:xlink="http://www.w3.org/1999/xlink" name="${xmlText(name)}" version="1.0.2">`,
    ...services.elements,
    `  <dataset name="${xmlText(name)}">`,
    ...page.ids.flatMap((id) =>
      counts.has(id)
        ? folderElement(withSlashes(nameOf(id).slice(0, -FOLDER_END.length)), folderPath(root, id))
        : [
            `    <dataset name="${xmlText(nameOf(id))}" ID="${xmlText(id)}">`,
            ...services.accesses(id),
            "    </dataset>",
          ],
    ),
    ...(page.next === undefined
      ? []
      : folderElement(
          `more, after ${nameOf(page.next)}`,
          `catalog.xml?after=${encodeURIComponent(page.next)}`,
        )),
    "  </dataset>",
    "</catalog>",
    "",
  ];
  const document = context.createDocument(lines.join("\n"), XML_TYPE);
  return { kind: "document", document, quotesAddress: true };
}

/** Services by the plugins that answer for them, with their types (`serviceType`) and their paths below that of a dataset. */
const SERVICES = [
  { name: "opendap", type: "OPENDAP", pathOf: (id: string) => `opendap/${encodeURIComponent(id)}.nc` },
  { name: "file", type: "HTTPServer", pathOf: () => "file" },
  { name: "zarr", type: "Zarr", pathOf: () => "zarr" },
];

/** Returns the elements of the services that the server has, and what writes those of one dataset. @param root Path before all others. */
function createServices({ plugins, datasetPath, datasets }: PluginContext, root: string) {
  const names = new Set(plugins().map(({ name }) => name));
  const services = SERVICES.filter(({ name }) => names.has(name));
  const [base = "/"] = datasetPath("{dataset_id}").split("{dataset_id}");
  return {
    elements: services.map(
      ({ name, type }) => `  <service name="${name}" serviceType="${type}" base="${xmlText(root + base)}"/>`,
    ),
    accesses: (id: string) =>
      services
        .filter(({ name }) => name !== "file" || datasets.offersFile(id))
        .map(({ name, pathOf }) => {
          const path = datasetPath(encodeURIComponent(id)).slice(base.length) + pathOf(id);
          return `      <access serviceName="${name}" urlPath="${xmlText(path)}"/>`;
        }),
  };
}

/** @param id Beginning of the ids of the folder: `archive~2024~`. */
function folderPath(root: string, id: string): string {
  return `${root}/catalog/${id.split(FOLDER_END).map(encodeURIComponent).join("/")}catalog.xml`;
}

function folderElement(title: string, href: string): string[] {
  const text = xmlText(title);
  return [`    <catalogRef name="${text}" xlink:title="${text}" xlink:href="${xmlText(href)}"/>`];
}

function withSlashes(folder: string): string {
  return folder.replaceAll(FOLDER_END, "/");
}
