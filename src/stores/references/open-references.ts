import { ZpublishError } from "../../errors.js";
import { type CooperativeTask, runCooperatively } from "../../event-loop/cooperative-task.js";
import type { ByteStore, ObjectVersion } from "../byte-store.js";
import { childPlace } from "../child-place.js";
import { type ParsedReferences, parseReferences } from "./parse-references.js";
import {
  allowedUrl,
  createReferenceStore,
  type Reference,
  type ReferenceOptions,
  type ReferenceStore,
} from "./reference-store.js";

/** The longest string that V8 makes. */
const MAX_DOCUMENT_BYTES = 2 ** 29 - 24;

const DOCUMENT = /(?:^|\/)(?:\.z(?:group|array|attrs|metadata)|zarr\.json)$/;

const CHUNK_VALUE = /^(?:"base64:|\[\s*"[^"]*"\s*(?:,\s*\d+\s*,\s*\d+\s*)?\])/;

/**
 * Opens kerchunk references in JSON, of version 0 or 1.
 * @param key Name of the reference file in `container`.
 * @throws ZpublishError `source-unreadable` if there is no such file; `invalid-metadata`; `unsupported` for a Zarr document in a
 * place that is not allowed, for `gen`, and for templates that are not `{{name}}`.
 */
export async function openReferences(
  container: ByteStore,
  key: string,
  options: ReferenceOptions,
): Promise<ReferenceStore> {
  const { parsed, version } = await readReferences(container, key);
  await runCooperatively(checkDocuments(parsed, options));
  const find = (name: string): Reference | undefined => findExpanded(parsed, name);
  return createReferenceStore(
    {
      container,
      key,
      version,
      place: childPlace(container, key),
      find,
      findNow: find,
      list: (prefix) => parsed.table.keys.list(prefix),
    },
    options,
  );
}

/** Reads the file. A function of its own, so that the store does not retain its text. */
async function readReferences(
  container: ByteStore,
  key: string,
): Promise<{ readonly parsed: ParsedReferences; readonly version: ObjectVersion }> {
  const read = await container.read(key, { maxByteLength: MAX_DOCUMENT_BYTES });
  if (read === undefined)
    throw new ZpublishError("source-unreadable", `'${key}': expected references, found nothing`);
  const text = new TextDecoder().decode(read.bytes);
  return { parsed: await runCooperatively(parseReferences(text)), version: read.version };
}

function findExpanded({ table, expand }: ParsedReferences, key: string): Reference | undefined {
  const found = table.find(key);
  return found === undefined || "inline" in found ? found : { ...found, url: expand(found.url) };
}

/** Checks that all Zarr documents may be read, so that a dataset does not open in parts. */
function* checkDocuments(parsed: ParsedReferences, options: ReferenceOptions): CooperativeTask<void> {
  const { keys } = parsed.table;
  for (let number = 0; number < keys.size; number++) {
    yield;
    const key = keys.keyOf(number);
    if (!DOCUMENT.test(key)) continue;
    const reference = findExpanded(parsed, key);
    if (reference !== undefined && "url" in reference) allowedUrl(key, reference.url, options);
  }
}

/**
 * Tells if a file looks like kerchunk references.
 * @param bytes The file, or its first bytes.
 */
export function isReferences(bytes: Uint8Array): boolean {
  const text = new TextDecoder().decode(bytes.subarray(0, 4096));
  const [, key = "", value = ""] = /^\s*\{\s*"((?:[^"\\]|\\.)*)"\s*:\s*(.*)$/s.exec(text) ?? [];
  if (key === "version") return /^1\s*(?:$|,\s*"(?:refs|templates|gen)"\s*:)/.test(value);
  if (key === "refs" || key === "templates") return value.startsWith("{");
  if (key === "gen") return value.startsWith("[");
  // Version 0: a Zarr document, or a chunk as bytes or their URL.
  return DOCUMENT.test(key) || (key !== "" && CHUNK_VALUE.test(value));
}
