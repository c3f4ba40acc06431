/**
 * What plugins import: built-in ones from here, others from the package, which exports the same and more. Modules of plugins that run in
 * the pool load it there, so that it exports nothing that takes long to load.
 */

export {
  type CoordinateAxis,
  extentText,
  indexOf,
  indexRange,
  type LabelMethod,
  labelSelection,
  labelText,
  periodText,
  type Steps,
} from "./cf/axis-labels.js";
export type { CellBox, NearestCell } from "./cf/cell-search.js";
export { type DatasetFacts, datasetFacts, firstText, plainText, variableFacts } from "./cf/dataset-facts.js";
export { type Packing, packingOf } from "./cf/packing.js";
export { swapWords } from "./codec/item-reader.js";
export { type BoundedMap, createBoundedMap } from "./collections/bounded-map.js";
export { firstNotLess } from "./collections/sorted-lists.js";
export {
  COLOUR_SCALES,
  type ColourScaleName,
  colourTable,
} from "./colour/colour-scales.js";
export type { CacheConfig, EncodingConfig, OverviewsConfig, PluginConfig } from "./config/config.js";
export type {
  ArrayView,
  DatasetPath,
  Datasets,
  DatasetVersion,
  DatasetView,
  FileView,
} from "./dataset/dataset.js";
export { encodingOf, findArray, findGroup, idOfVersion, overviewsOf } from "./dataset/dataset.js";
export {
  FOLDER_END,
  type IdSelection,
  idFolderSteps,
  idPageSteps,
  selectIds,
} from "./dataset/id-page.js";
export { type ErrorCode, type ErrorDetails, ZpublishError } from "./errors.js";
export { type CooperativeTask, createSlice, runCooperatively } from "./event-loop/cooperative-task.js";
export { workThrough } from "./event-loop/work-through.js";
export { writeArrow } from "./export/arrow-writer.js";
export {
  type DatasetWriter,
  type ExportedDataset,
  type ExportedVariable,
  exportedByteLength,
  type FileBody,
  POINT,
  TEXT_TYPE,
} from "./export/exported-dataset.js";
export {
  bytesOfTexts,
  createColumn,
  createFileBody,
  type FileColumn,
  type FileRows,
} from "./export/file-body.js";
export { NC, type NcAttribute, type NcType, netcdfAttributes, netcdfStorage } from "./export/netcdf-types.js";
export { writeNetcdf } from "./export/netcdf-writer.js";
export { writeNpy } from "./export/npy-writer.js";
export {
  createDimNames,
  createSelectionPlan,
  type DimSelection,
  dimOf,
  groupPathOf,
  renamedReferences,
  type StepSelection,
} from "./export/selection-plan.js";
export { type TableRows, tableColumns, tableRows } from "./export/table.js";
export { jsonValues, writeCsv, writeJson } from "./export/text-writer.js";
export { queryToken } from "./http/access/authorize.js";
export { publicDetail } from "./http/error-reply.js";
export { chooseMediaType } from "./http/headers.js";
export { indexWithin, parseQuery, type QueryNames, readInteger, wrongParameter } from "./http/query.js";
export type {
  Body,
  BodyClient,
  BodyReply,
  ByteRange,
  Document,
  DocumentReply,
  ErrorFacts,
  ErrorReply,
  RedirectReply,
  Reply,
  RouteRequest,
  StreamReply,
} from "./http/reply.js";
export type { QueryParameter, Route, RouteOperation } from "./http/router.js";
export { type JsonObject, type JsonValue, objectSteps } from "./json/json-value.js";
export { pythonFloatText, shortestFloat, stringifyJson, stringifyJsonPieces } from "./json/stringify-json.js";
export {
  LEGEND_SIZE,
  type MapCategory,
  type MapCrs,
  type MapExtent,
  type MapFrame,
  type MapOptions,
  type MapPicture,
  type MapPlace,
  type MapSteps,
  type MapStyle,
  type Maps,
} from "./maps/maps.js";
export { placesOf, WEB_MERCATOR } from "./maps/sample-grid.js";
export {
  type DataTree,
  elementCount,
  type Group,
  nodeName,
  parentPath,
  type Variable,
} from "./model/data-tree.js";
export { type DataType, parseDataType } from "./model/data-type.js";
export type { Log, LogLevel } from "./observe/log.js";
export { packageVersion } from "./observe/versions.js";
export { openApiDocument } from "./openapi/openapi-document.js";
export type { DatasetSummary } from "./pages/dataset-summary.js";
export { assertNoColours, COLOUR_QUERY, parseColourRange, parseColours } from "./pages/pictures.js";
export { documentReply, jsonReply, keepPromise, pictureReply, xmlText } from "./plugins/documents.js";
export type {
  DatasetPages,
  Plugin,
  PluginContext,
  PluginDatasets,
  PluginModule,
  ProvidedDataset,
  ProviderContext,
} from "./plugins/plugin.js";
export type { ZarritaStoreOptions } from "./stores/zarrita-store.js";
export { type DataLink, dataLinks } from "./usage/data-links.js";
export type {
  AxisSelection,
  Coordinates,
  CoordinateValues,
  NumericArray,
  ReadCost,
  ReadValuesOptions,
  RunModuleOptions,
  StreamValuesOptions,
  ValueBlock,
  Values,
} from "./values/values.js";
export type { CodecSpec } from "./zarr/codec-step.js";
export { sliceOfAxis } from "./zarr/plan/cut-selection.js";
export type { CoarsenMethod, EncodingPlan } from "./zarr/plan/encoding-plan.js";
export { pickedLength } from "./zarr/plan/item-pick.js";
export type { NamedVersion } from "./zarr/stored-tree.js";
export type { ArrayDocument } from "./zarr/v2.js";
