import { createHash } from "node:crypto";
import {
  chooseMediaType,
  type DatasetWriter,
  elementCount,
  exportedByteLength,
  type Plugin,
  type PluginContext,
  packageVersion,
  type QueryParameter,
  type RouteRequest,
  type StreamReply,
  writeArrow,
  writeCsv,
  writeJson,
  writeNetcdf,
  writeNpy,
  ZpublishError,
} from "../../plugin-api.js";
import type { PointTable } from "./parse-points.js";
import { parseSelection } from "./parse-selection.js";
import { planSelection } from "./plan-selection.js";

/** Runs in the pool. */
const PARSE_POINTS = new URL("./parse-points.js", import.meta.url);

/** Greatest body of points: some hundred thousand of them. */
const MAX_BODY_BYTES = 16 * 2 ** 20;

/** Memory of a table or text that is sent: values that are read ahead, and their text. */
const HELD_BYTES = 24 * 2 ** 20;

/** Most bytes that a file has besides values of the sizes that a plan knows: its header, and gaps. */
const LAYOUT_BYTES = 64 * 2 ** 20;

/** A format of answers. */
interface Format {
  readonly contentType: string;
  /** Whether values are decoded unless the query says something else. */
  readonly isDecoded: boolean;
  /** Whether a browser shows the answer, rather than keeps it as a file. */
  readonly isShown?: true;
  /** Whether values are repeated in each row. */
  readonly isTable?: true;
  readonly write: DatasetWriter;
}

/** By name; the first one is that of clients that ask for none. */
const FORMATS: Readonly<Record<string, Format>> = {
  json: {
    contentType: "application/json",
    isDecoded: true,
    isShown: true,
    write: writeJson,
  },
  nc: {
    contentType: "application/x-netcdf",
    isDecoded: false,
    write: writeNetcdf,
  },
  csv: {
    contentType: "text/csv; charset=utf-8",
    isDecoded: true,
    isTable: true,
    write: writeCsv,
  },
  npy: {
    contentType: "application/x-npy",
    isDecoded: false,
    write: writeNpy,
  },
  arrow: {
    contentType: "application/vnd.apache.arrow.stream",
    isDecoded: true,
    isTable: true,
    write: writeArrow,
  },
};
const NAMES = Object.keys(FORMATS);

const TEXTS = { type: "array", items: { type: "string" } } as const;

const QUERY: Readonly<Record<string, QueryParameter>> = {
  var: {
    description:
      "Path of a variable, or of a group for all its data variables; several times for several. Default: all data variables that have a selected dimension",
    schema: { ...TEXTS, examples: [["t2m"]] },
  },
  "{dim}": {
    description:
      "Labels of a dimension: a value, `nearest::8.6`, `ffill::…`, `bfill::…`, or a range `a/b`, both ends included, `a/..`, `../b`; several times for several values. " +
      "Times are ISO 8601, `2020-01` is the whole month. `lat`, `lon` and `time` are the latitudes, longitudes and times of a dataset whatever their names",
    schema: { ...TEXTS, examples: [["2020-01-01/2020-01-31"]] },
  },
  "isel.{dim}": {
    description:
      "Indexes of a dimension: `begin:end:step` as in Python, or one index, which drops the dimension; several times for several indexes",
    schema: { ...TEXTS, examples: [["0:10"]] },
  },
  "step.{dim}": {
    description: "Takes every n-th of a range of labels",
    schema: { type: "integer", minimum: 1 },
  },
  f: {
    description:
      "Format. Default: by `Accept`, else `json`. `nc`: NetCDF. `json`: as xarray's `Dataset.to_dict()`. `csv`, `arrow`: the table of `to_dataframe().reset_index()`. `npy`: one variable",
    schema: { type: "string", enum: NAMES },
  },
  decode: {
    description:
      "Whether values are unpacked and missing ones NaN (1), or as stored (0). Default: 0 for `nc` and `npy`, else 1",
    schema: { type: "string", enum: ["0", "1"] },
  },
  max_values: {
    description: "Refuses a selection of more values, those of coordinates included, before any is read",
    schema: { type: "integer", minimum: 1 },
  },
  method: {
    description: "How labels of points are found",
    schema: { type: "string", enum: ["exact", "nearest", "ffill", "bfill"], default: "exact" },
  },
  tolerance: {
    description:
      "Greatest distance from the label that is found, in units of the coordinate, or a duration such as `PT6H`; values of farther points are missing",
    schema: { type: "string" },
  },
};

/** The plugin of selections: a piece of a dataset by one URL. */
const selectPlugin = {
  name: "select",
  version: packageVersion,
  path: "zpublish/plugins/select",
  routes: (context) => [
    {
      path: "/datasets/{dataset_id}/select",
      priority: "page",
      methods: ["GET", "POST"],
      maxBodyBytes: MAX_BODY_BYTES,
      operation: {
        summary: "A piece of a dataset, as NetCDF, CSV, JSON, npy or Arrow",
        description:
          "Values equal those of xarray's `sel` and `isel`. Its size is known before anything is read; larger ones than `--max-selection` are answered 413. " +
          "`POST` sends points instead, as CSV with columns named after dimensions or coordinates, or as GeoJSON; other columns and properties are carried along. " +
          "Dimensions that points do not name stay: a series at each of them.",
        contentType: "application/json",
        parameters: { dataset_id: "Id of the dataset" },
        query: QUERY,
        alternatives: NAMES.slice(1).map((name) => FORMATS[name]!.contentType),
        requestBody: {
          description: "Points, with columns or properties named after dimensions or coordinates",
          content: {
            "text/csv": { example: "station,time,lat,lon\nA,2020-01-01,50.1,8.6\n" },
            "application/geo+json": { schema: { type: "object" } },
          },
        },
        ranged: true,
        isBounded: true,
      },
      handler: (request) => serveSelection(context, request),
    },
  ],
} satisfies Plugin;
export default selectPlugin;

async function serveSelection(context: PluginContext, request: RouteRequest): Promise<StreamReply> {
  const snapshot = context.datasets.get(request.params.dataset_id as string);
  const { signal } = request;
  const contentType = request.header("content-type");
  const body = request.method === "POST" ? await request.body() : undefined;
  const query = parseSelection(request.query, NAMES, body !== undefined);
  const points =
    body && (await context.values.run<PointTable>(PARSE_POINTS, { body, contentType }, { signal }));
  const name = query.format ?? acceptedFormat(request.header("accept"));
  const format = FORMATS[name]!;
  const isDecoded = query.isDecoded ?? format.isDecoded;
  const axes = [...query.axes].toSorted(([one], [other]) => (one < other ? -1 : 1));
  const { revision, state } = snapshot;
  const parts = [packageVersion, revision, state, { ...query, axes }, name, isDecoded, points?.digest];
  const hash = createHash("sha256").update(JSON.stringify(parts));
  const etag = `"${hash.digest("base64url").slice(0, 22)}"`;
  const file = fileName([snapshot.id, ...(query.variables.length < 4 ? query.variables : [])], name);
  const reply = {
    kind: "stream",
    contentType: format.contentType,
    etag,
    cacheControl: snapshot.cacheControl,
    headers: [
      ["Content-Disposition", `${format.isShown ? "inline" : "attachment"}; filename="${file}"`],
      ...(query.format === undefined ? [["Vary", "Accept"] as const] : []),
    ],
  } as const;
  const make = async (): Promise<StreamReply> => {
    const answer = { isDecoded, keepsTexts: name === "csv" };
    const plan = await planSelection(context.values, snapshot, query, answer, points);
    const needed = exportedByteLength(plan, format.isTable);
    assertSize(needed, context);
    const count = plan.variables.reduce((sum, { shape }) => sum + elementCount(shape), 0);
    if (count > (query.maxValues ?? count))
      throw new ZpublishError(
        "too-large",
        `Expected at most ${query.maxValues} values, received a selection of ${count}`,
      );
    const { pieces, byteLength, heldByteLength } = await format.write(plan, context.values, signal);
    // Texts are as long as the longest of them.
    assertSize(byteLength ?? 0, context, LAYOUT_BYTES);
    const inMemory = plan.variables.filter(({ source }) => "block" in source);
    const held = heldByteLength ?? Math.min(HELD_BYTES, 2 * needed + 2 ** 20);
    const ofClient: StreamReply["pieces"] = (range, client) => pieces(range, client.signal);
    const memory = held + exportedByteLength({ ...plan, variables: inMemory });
    return { ...reply, heldByteLength: memory, byteLength, pieces: ofClient };
  };
  // 304 without reading coordinates, whatever the content coding. If it is another answer after all, it is made then.
  if (body !== undefined || !request.header("if-none-match")?.includes(etag.slice(0, -1))) return make();
  return {
    ...{ ...reply, heldByteLength: HELD_BYTES },
    async *pieces(_range, client) {
      yield* (await make()).pieces(undefined, client);
    },
  };
}

/** @throws ZpublishError `too-large` */
function assertSize(byteLength: number, { maxSelectionBytes }: PluginContext, spare = 0): void {
  if (byteLength <= maxSelectionBytes + spare) return;
  throw new ZpublishError(
    "too-large",
    `Expected a selection of at most ${maxSelectionBytes} bytes (--max-selection), received one of ${byteLength} bytes`,
  );
}

function fileName(parts: readonly string[], ending: string): string {
  const text = parts
    .join("_")
    .replace(/[^A-Za-z0-9.-]+/g, "_")
    .replace(/^[._]+/, "");
  return `${text.slice(0, 100) || "selection"}.${ending}`;
}

/** Returns the format that a client likes best; `json` if it says nothing about any. */
function acceptedFormat(accept: string | undefined): string {
  const types = NAMES.map((name) => FORMATS[name]!.contentType.split(";", 1)[0]!);
  const type = chooseMediaType(accept, types);
  return NAMES[type === undefined ? 0 : types.indexOf(type)]!;
}
