import { invalidFile } from "./byte-cursor.js";
import type { Hdf5Dataset, Hdf5Fill, Hdf5Layout } from "./hdf5-model.js";
import type { ObjectReader } from "./object-reader.js";
import { NO_FILL, parseFill, parseFilters, parseOldFill } from "./parse-dataset-messages.js";
import { parseDataspace } from "./parse-dataspace.js";
import { parseLayout } from "./parse-layout.js";
import { readAttributes } from "./read-attributes.js";
import { type HeaderMessage, MESSAGE } from "./read-object-header.js";
import { cursorOf } from "./shared-messages.js";

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
  const { shape, maxShape } = parseDataspace(cursorOf(space, "dataspace"));
  const found = shared.datatype(cursorOf(datatype, "datatype"), datatype.isShared);
  const type = found instanceof Promise ? await found : found;
  const fill = readFill(find(MESSAGE.fill), find(MESSAGE.oldFill), type.size);
  const filters = find(MESSAGE.filters);
  const place: Hdf5Layout =
    find(MESSAGE.externalFiles) === undefined
      ? parseLayout(input, cursorOf(layout, "layout"), { shape, type })
      : { kind: "unsupported", reason: "its data are in other files" };
  return {
    address: address + input.baseAddress,
    shape,
    maxShape,
    type,
    fill,
    layout: place,
    filters: filters === undefined ? [] : parseFilters(cursorOf(filters, "filters")),
    attributes: await readAttributes(reader, path, messages),
  };
}

/** Reads the fill value. Writers that want to be read by old libraries store both messages. */
function readFill(
  message: HeaderMessage | undefined,
  oldMessage: HeaderMessage | undefined,
  itemSize: number,
): Hdf5Fill {
  if (message !== undefined) return parseFill(cursorOf(message, "fill value"), itemSize);
  if (oldMessage !== undefined) return parseOldFill(cursorOf(oldMessage, "fill value"), itemSize);
  return NO_FILL;
}
