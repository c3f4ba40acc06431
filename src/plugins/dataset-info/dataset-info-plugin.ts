import { type DatasetSnapshot, findGroup } from "../../dataset/dataset.js";
import type { CooperativeTask } from "../../event-loop/cooperative-task.js";
import type { RouteRequest } from "../../http/reply.js";
import type { Route, RouteOperation } from "../../http/router.js";
import type { JsonValue } from "../../json/json-value.js";
import type { Group } from "../../model/data-tree.js";
import { packageVersion } from "../../observe/versions.js";
import { listingPieces } from "../../pages/home-page.js";
import { documentReply, largeJsonReply } from "../document-reply.js";
import type { Plugin, PluginContext } from "../plugin.js";
import { overviewsOf } from "../store-place.js";
import { createDatasetList } from "./dataset-list.js";
import { datasetDictSteps, datasetSchemaSteps } from "./group-documents.js";
import { DICT_SCHEMA, INFO_SCHEMA, NAMES_SCHEMA } from "./json-schemas.js";
import { createPageReplies, storesOf } from "./page-replies.js";

const JSON_TYPE = "application/json";
const HTML_TYPE = "text/html; charset=utf-8";
const DATASET = "/datasets/{dataset_id}";
const GROUP = `${DATASET}/groups/{group_path:path}`;
const DATASET_PARAMETERS = { dataset_id: "Id of a dataset, as `/datasets` lists it" };
const GROUP_PARAMETERS = {
  ...DATASET_PARAMETERS,
  group_path: "Path of a group, as `groups` lists it: `/a/b` or `a/b`; empty for the root",
};

/** The plugin that describes datasets and their groups, as JSON and as pages. */
const datasetInfoPlugin = {
  name: "dataset_info",
  version: packageVersion,
  path: "zpublish/plugins/dataset-info",
  routes: createRoutes,
} satisfies Plugin;
export default datasetInfoPlugin;

/** A JSON document about a group, the root included. */
interface GroupDocument {
  readonly name: string;
  readonly summary: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly content: (group: Group) => CooperativeTask<JsonValue>;
}

const GROUP_DOCUMENTS: readonly GroupDocument[] = [
  {
    name: "keys",
    summary: "Names of the variables of a group, coordinates included",
    schema: NAMES_SCHEMA,
    content: (group) => listSteps(group.variables.keys()),
  },
  {
    name: "dict",
    summary: "A group as a dictionary without data, as xarray's Dataset.to_dict(data=False)",
    schema: DICT_SCHEMA,
    content: datasetDictSteps,
  },
  {
    name: "info",
    summary: "Schema of a group, near NCO-JSON",
    schema: INFO_SCHEMA,
    content: datasetSchemaSteps,
  },
];

function createRoutes(context: PluginContext): readonly Route[] {
  const { datasets } = context;
  const pages = createPageReplies(context);

  function snapshotOf({ params }: RouteRequest): DatasetSnapshot {
    return datasets.get(params.dataset_id as string);
  }

  const documentRoutes = GROUP_DOCUMENTS.flatMap(({ name, summary, schema, content }): Route[] => {
    const operation = { summary, schema, contentType: JSON_TYPE, ranged: true };
    const memoName = `dataset_info ${name}`;
    const groupReply = (snapshot: DatasetSnapshot, group: Group) =>
      largeJsonReply(context, snapshot, memoName, group.path, () => content(group));
    return [
      {
        path: `${DATASET}/${name}`,
        priority: "page",
        operation: { ...operation, description: "Of the root group.", parameters: DATASET_PARAMETERS },
        handler(request) {
          const snapshot = snapshotOf(request);
          return groupReply(snapshot, snapshot.tree.root);
        },
      },
      {
        path: `${GROUP}/${name}`,
        priority: "page",
        operation: { ...operation, parameters: GROUP_PARAMETERS },
        handler(request) {
          const snapshot = snapshotOf(request);
          return groupReply(snapshot, findGroup(snapshot, request.params.group_path as string));
        },
      },
    ];
  });

  return [
    createDatasetList(context),
    {
      path: DATASET,
      priority: "page",
      operation: page("Redirects to the dataset's page", DATASET_PARAMETERS),
      handler(request) {
        snapshotOf(request);
        return { kind: "redirect", to: "with-slash" };
      },
    },
    {
      path: `${DATASET}/`,
      priority: "page",
      operation: page("A dataset for people: its root group", DATASET_PARAMETERS),
      handler(request) {
        const snapshot = snapshotOf(request);
        return pages.reply(snapshot, snapshot.tree.root, false, request);
      },
    },
    {
      path: `${DATASET}/tree`,
      priority: "page",
      operation: page("A dataset for people: the whole tree of its groups", DATASET_PARAMETERS),
      handler(request) {
        const snapshot = snapshotOf(request);
        return pages.reply(snapshot, snapshot.tree.root, true, request);
      },
    },
    {
      path: `${DATASET}/groups`,
      priority: "page",
      operation: {
        summary: "Paths of all groups, root first, parents before children",
        contentType: JSON_TYPE,
        schema: NAMES_SCHEMA,
        parameters: DATASET_PARAMETERS,
        ranged: true,
      },
      handler(request) {
        const snapshot = snapshotOf(request);
        return largeJsonReply(context, snapshot, "dataset_info groups", "/", () =>
          listSteps(snapshot.tree.groups.keys()),
        );
      },
    },
    {
      path: `${DATASET}/overviews`,
      priority: "page",
      operation: page("Redirects to the list of the stores of overviews", DATASET_PARAMETERS),
      handler(request) {
        overviewsOf(snapshotOf(request));
        return { kind: "redirect", to: "with-slash" };
      },
    },
    {
      path: `${DATASET}/overviews/`,
      priority: "page",
      operation: page("Stores of a dataset's coarser levels, with relative links", DATASET_PARAMETERS),
      handler(request) {
        const overviews = overviewsOf(snapshotOf(request));
        return documentReply(context, overviews, "dataset_info overviews", "/", HTML_TYPE, () => {
          const entries = storesOf(context).map((prefix) => `${prefix}/`);
          return listingPieces({ title: `${context.datasetPath(overviews.id)}overviews/`, entries });
        });
      },
    },
    {
      path: GROUP,
      priority: "page",
      operation: page("One group for people", GROUP_PARAMETERS),
      handler(request) {
        const snapshot = snapshotOf(request);
        const group = findGroup(snapshot, request.params.group_path as string);
        return pages.reply(snapshot, group, false, request);
      },
    },
    ...documentRoutes,
  ];
}

function page(summary: string, parameters: Readonly<Record<string, string>>): RouteOperation {
  return { summary, contentType: HTML_TYPE, parameters };
}

function* listSteps(names: Iterable<string>): CooperativeTask<JsonValue> {
  const list: string[] = [];
  for (const name of names) {
    yield;
    list.push(name);
  }
  return list;
}
