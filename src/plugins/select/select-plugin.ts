import { createHash } from "node:crypto";
import {
  type ArrayView,
  type AxisSelection,
  type Coordinates,
  chooseMediaType,
  countOf,
  type DatasetView,
  type DatasetWriter,
  type DimSelection,
  type ExportedDataset,
  exportedByteLength,
  type Plugin,
  type PluginContext,
  packageVersion,
  type QueryParameter,
  type RouteRequest,
  type StreamReply,
  type Values,
  type Variable,
  writeArrow,
  writeCsv,
  writeJson,
  writeNetcdf,
  writeNpy,
  wrongParameter,
  ZpublishError,
} from "../../plugin-api.js";
import type { PointTable } from "./parse-points.js";
import { type AxisQuery, parseSelection, type SelectionQuery } from "./parse-selection.js";
import { placePoints, readPointPlan } from "./plan-points.js";
import {
  candidateVariables,
  everyNth,
  type GridQuestion,
  gridQuestion,
  labelledVariables,
  type PlanContext,
  planSelection,
} from "./plan-selection.js";

const PARSE_POINTS = new URL("./parse-points.js", import.meta.url);

/** Greatest body of points: some hundred thousand of them. */
const MAX_BODY_BYTES = 16 * 2 ** 20;

/** Memory of an answer that is sent: values that are read ahead, and their text. */
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
          "`POST` sends points instead, as CSV with columns named after dimensions or coordinates, or as GeoJSON; other columns and properties are carried along.",
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
  const parts = [packageVersion, snapshot.revision, { ...query, axes }, name, isDecoded, points?.digest];
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
    const { plan, columns } = await planRequest(context, snapshot, query, isDecoded, points);
    const needed = exportedByteLength(plan, format.isTable);
    assertSize(needed, context);
    const read = { values: context.values, signal };
    const readable =
      points === undefined ? plan : await readPointPlan(plan, points, columns, name === "csv", read);
    const heldByteLength = Math.min(HELD_BYTES, 2 * needed + 2 ** 20);
    const { pieces, ...length } = await format.write(readable, context.values, signal);
    // Texts are as long as the longest of them.
    assertSize(length.byteLength ?? 0, context, LAYOUT_BYTES);
    const ofClient: StreamReply["pieces"] = (range, client) => pieces(range, client.signal);
    return { ...reply, heldByteLength, ...length, pieces: ofClient };
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

/** Reads the coordinates that a query needs, and plans it. */
async function planRequest(
  { values }: PluginContext,
  snapshot: DatasetView,
  query: SelectionQuery,
  isDecoded: boolean,
  points: PointTable | undefined,
): Promise<{ readonly plan: ExportedDataset; readonly columns: ReadonlySet<string> }> {
  const candidates = candidateVariables(snapshot, query);
  const isByLabel = ({ kind }: AxisQuery) => kind === "labels" || kind === "range";
  const labels = [...query.axes].filter(([, asked]) => isByLabel(asked.query));
  const names = [...labels.map(([name]) => name), ...(points?.names ?? [])];
  const coordinates = new Map<Variable, Coordinates>();
  const cells = new Map<Variable, readonly [DimSelection, DimSelection]>();
  if (names.length > 0)
    for (const variable of labelledVariables(candidates, names)) {
      const array = snapshot.arrays.get(variable.path)!;
      const own = await values.coordinates(snapshot, array);
      coordinates.set(variable, own);
      const question = gridQuestion(query.axes, variable, own);
      if (question !== undefined) cells.set(variable, await askGrid(values, snapshot, array, question));
    }
  const context: PlanContext = {
    snapshot,
    coordinatesOf: (variable) => coordinates.get(variable),
    cellsOf: (variable) => cells.get(variable),
    dataTypeOf: (array) => values.dataType(array, isDecoded),
  };
  const placed = points && (await placePoints(context, values, query, candidates, points));
  const plan = planSelection(context, query, candidates, isDecoded, placed?.selections);
  return { plan, columns: placed?.columns ?? new Set() };
}

/** Finds the rows and columns of a curvilinear grid. @throws ZpublishError `invalid-query` if there are none */
async function askGrid(
  values: Values,
  snapshot: DatasetView,
  array: ArrayView,
  { lat, lon, latitudes, longitudes }: GridQuestion,
): Promise<readonly [DimSelection, DimSelection]> {
  const isBox = lat.query.kind === "range" && lon.query.kind === "range";
  const [north, north2] = latitudes;
  const [east, east2] = longitudes;
  let [y, x]: AxisSelection[] = [];
  if (isBox) ({ y, x } = await values.cellBox(snapshot, array, [north, north2], [east, east2]));
  else {
    const [{ cell } = { cell: -1 }] = await values.nearestCells(snapshot, array, [[north!, east!]]);
    const width = array.variable.shape[(await values.coordinates(snapshot, array)).grid!.x]!;
    const count = cell < 0 ? 0 : 1;
    [y, x] = [Math.floor(cell / width), cell % width].map((begin) => ({ begin, count, step: 1 }));
  }
  const received = `${north}/${north2 ?? ""}, ${east}/${east2 ?? ""}`;
  if (y === undefined || x === undefined || countOf(y) === 0 || countOf(x) === 0)
    throw wrongParameter(lat.parameter, "empty_selection", "a region with cells of the grid", received);
  const stepOf = ({ query }: typeof lat) => (query.kind === "range" ? query.step : 1);
  return [
    { parameter: lat.parameter, selection: everyNth(y, stepOf(lat)), isDropped: !isBox },
    { parameter: lon.parameter, selection: everyNth(x, stepOf(lon)), isDropped: !isBox },
  ];
}
