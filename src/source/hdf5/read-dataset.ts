import { invalidFile } from "./byte-cursor.js";
import type { Hdf5Dataset, Hdf5Fill, Hdf5Layout } from "./hdf5-model.js";
import type { ObjectReader } from "./object-reader.js";
import { NO_FILL, parseFill, parseFilters, parseOldFill } from "./parse-dataset-messages.js";
import { parseDataspace } from "./parse-dataspace.js";
import { parseLayout } from "./parse-layout.js";
import { readAttributes } from "./read-attributes.js";
import { type HeaderMessage, MESSAGE } from "./read-object-header.js";

/**
 * Reads a dataset.
 * @param address Its address in the file.
 * @param path For warnings.
 * @throws ZpublishError `invalid-metadata`, `unsupported`, `source-unreadable`, `source-changed`
 */
export async function readDataset(
  reader: ObjectReader,
  address: number,
  path: string,
  messages: readonly HeaderMessage[],
): Promise<Hdf5Dataset> {
  const { shared, input } = reader;
  const find = (type: number): HeaderMessage | undefined => messages.find((message) => message.type === type);
  const [space, datatype, layout] = [find(MESSAGE.dataspace), find(MESSAGE.datatype), find(MESSAGE.layout)];
  if (space === undefined || datatype === undefined || layout === undefined) {
    throw invalidFile("dataset: expected a dataspace, a datatype and a layout, received less");
  }
  const { shape, maxShape } = parseDataspace(await shared.resolve(space, "dataspace"));
  const type = await shared.datatypeOf(datatype);
  const fill = await readFill(reader, find(MESSAGE.fill), find(MESSAGE.oldFill), type.size);
  const filters = find(MESSAGE.filters);
  const place: Hdf5Layout =
    find(MESSAGE.externalFiles) === undefined
      ? parseLayout(input, await shared.resolve(layout, "layout"), { shape, type })
      : { kind: "unsupported", reason: "its data are in other files" };
  return {
    address: address + input.baseAddress,
    shape,
    maxShape,
    type,
    fill,
    layout: place,
    filters: filters === undefined ? [] : parseFilters(await shared.resolve(filters, "filters")),
    attributes: await readAttributes(reader, path, messages),
  };
}

/** Reads the fill value. Writers that want to be read by old libraries store both messages. */
async function readFill(
  reader: ObjectReader,
  message: HeaderMessage | undefined,
  oldMessage: HeaderMessage | undefined,
  itemSize: number,
): Promise<Hdf5Fill> {
  const { shared } = reader;
  if (message !== undefined) return parseFill(await shared.resolve(message, "fill value"), itemSize);
  if (oldMessage !== undefined) return parseOldFill(await shared.resolve(oldMessage, "fill value"), itemSize);
  return NO_FILL;
}
