import { createHash } from "node:crypto";
import {
  type ErrorFacts,
  type ErrorReply,
  type FileBody,
  keepPromise,
  NC,
  type Plugin,
  type PluginContext,
  packageVersion,
  queryToken,
  type Reply,
  type RouteRequest,
  xmlText,
  ZpublishError,
} from "../../plugin-api.js";
import type { AsciiTask } from "./ascii-text.js";
import { cutVariables, parseDap2Query, parseDap4Query } from "./constraint.js";
import { createDap, createDods } from "./dap-body.js";
import { type DapDataset, dapName, describeForDap } from "./dap-dataset.js";
import {
  columnOf,
  type DapColumn,
  type DapSlice,
  heldBytesOf,
  type Protocol,
  readTexts,
  type ValuesOf,
  valuesByteLength,
} from "./dap-values.js";
import { declarationOf, writeDas, writeDds } from "./dap2-documents.js";
import { inDmrOrder, writeDmr } from "./dmr.js";

const FORMATTER = new URL("./ascii-text.js", import.meta.url);
const TEXT = "text/plain; charset=utf-8";

/** Bytes of values up to which they are compressed for clients that accept it. Larger answers have a length, and go on after a break. */
const MAX_COMPRESSED_BYTES = 8 * 2 ** 20;
const MIN_COMPRESSED_BYTES = 2 ** 10;

/** Bytes of values that are written as text at once. */
const ASCII_BYTES = 2 ** 18;
/** Memory of their texts, besides that of reading them. */
const ASCII_HELD_BYTES = 2 ** 22;

/** What an answer is made of. */
interface Question {
  readonly context: PluginContext;
  readonly request: RouteRequest;
  readonly dataset: DapDataset;
  /** Name of the dataset in documents. */
  readonly fileName: string;
}

/** One of the answers about a dataset. */
interface Answer {
  readonly contentType: string;
  /** As in the header `Content-Description`, by which libdap tells answers apart. */
  readonly description: string;
  /** A document in pieces, or a body that is streamed. */
  readonly reply: (question: Question) => Iterable<string> | FileBody | Promise<FileBody>;
}

const ASCII: Answer = { contentType: TEXT, description: "dods-ascii", reply: answerDap2(createAscii) };
const DMR = {
  description: "dap4-dmr",
  reply: (question: Question) => writeDmr(question.dataset, dap4Slices(question)[0], question.fileName),
};

/** By the ending of the URL. */
const ANSWERS: Readonly<Record<string, Answer>> = {
  dds: {
    contentType: TEXT,
    description: "dods-dds",
    reply: (question) => writeDds(dap2Slices(question), question.fileName),
  },
  das: { contentType: TEXT, description: "dods-das", reply: ({ dataset }) => writeDas(dataset) },
  dods: {
    contentType: "application/octet-stream",
    description: "dods-data",
    reply: answerDap2((_, ...parts) => createDods(...parts)),
  },
  ascii: ASCII,
  asc: ASCII,
  ver: {
    contentType: TEXT,
    description: "dods-version",
    reply: () => [`Core version: DAP2/3.7\nServer version: zpublish/${packageVersion}\n`],
  },
  html: { contentType: "text/html; charset=utf-8", description: "dods-form", reply: writePage },
  dmr: { ...DMR, contentType: "application/vnd.opendap.dap4.dataset-metadata+xml" },
  "dmr.xml": { ...DMR, contentType: "text/xml; charset=utf-8" },
  dap: { contentType: "application/vnd.opendap.dap4.data", description: "dap4-data", reply: answerDap },
};

/** The plugin of OPeNDAP: DAP2 and DAP4, for programs that know no Zarr. */
const opendapPlugin = {
  name: "opendap",
  version: packageVersion,
  path: "zpublish/plugins/opendap",
  routes: (context) => [
    {
      path: "/datasets/{dataset_id}/opendap/{file}",
      priority: "page",
      errors: errorReply,
      operation: {
        summary: "The dataset as OPeNDAP serves it, for programs that know no Zarr",
        description:
          "DAP2: `.dds` (types and dimensions), `.das` (attributes), `.dods` (values), `.ascii` (values as text), `.ver`, `.html`, with a constraint as query: " +
          "`t2m[0:9][2:3:8],lat`, that is `[first:last]` or `[first:stride:last]`, the last index included. " +
          "DAP4: `.dmr`, `.dmr.xml`, `.dap`, with `dap4.ce=/group/t2m[0:9][2:3:8];/lat` and `dap4.checksum=true`.",
        contentType: ANSWERS.dods!.contentType,
        alternatives: [...new Set(Object.values(ANSWERS).map(({ contentType }) => contentType))],
        parameters: { dataset_id: "Id of the dataset", file: "The id, `.nc` and one of the endings" },
        ranged: true,
      },
      handler: (request) => answer(context, request),
    },
  ],
} satisfies Plugin;
export default opendapPlugin;

async function answer(context: PluginContext, request: RouteRequest): Promise<Reply> {
  const snapshot = context.datasets.get(request.params.dataset_id as string);
  const fileName = `${snapshot.id}.nc`;
  const file = request.params.file as string;
  // People open the address itself in browsers.
  if (file === fileName) {
    const url = `${request.serviceUrl}${request.rawPath}.html${request.query && `?${request.query}`}`;
    return { kind: "redirect", to: { url, status: 302 } };
  }
  const ending = file.startsWith(`${fileName}.`) ? file.slice(fileName.length + 1) : "";
  if (!Object.hasOwn(ANSWERS, ending)) {
    const endings = Object.keys(ANSWERS).join(", ");
    throw new ZpublishError("not-found", `Expected '${fileName}' and one of ${endings}, received '${file}'`);
  }
  const { contentType, description, reply } = ANSWERS[ending]!;
  const describe = () => describeForDap(snapshot, context.values);
  const dataset = await keepPromise(context, snapshot, "opendap", describe);
  const body = await reply({ context, request, fileName, dataset });
  const { cacheControl } = snapshot;
  const headers = [protocolHeader(file), ["Content-Description", description]] as const;
  if (!("pieces" in body)) {
    // The page has the address of the service.
    const quotesAddress = ending === "html";
    const document =
      request.query === "" && !quotesAddress
        ? await context.document(snapshot, `opendap ${ending}`, contentType, () => body)
        : context.createDocument([...body].join(""), contentType);
    return { kind: "document", document, cacheControl, headers, quotesAddress };
  }
  const { pieces, byteLength, heldByteLength } = body;
  const parts = [packageVersion, snapshot.revision, snapshot.state, description, request.query];
  const hash = createHash("sha256").update(JSON.stringify(parts)).digest("base64url");
  return {
    ...{ kind: "stream", contentType, cacheControl, headers, byteLength, heldByteLength },
    etag: `"${hash.slice(0, 22)}"`,
    isCompressible:
      byteLength === undefined || (byteLength >= MIN_COMPRESSED_BYTES && byteLength <= MAX_COMPRESSED_BYTES),
    pieces: (range, { signal }) => pieces(range, signal),
  };
}

function protocolHeader(file: string): readonly [name: string, value: string] {
  return /\.(?:dmr|dmr\.xml|dap)$/.test(file) ? ["X-DAP", "4.0"] : ["XDODS-Server", "dods/3.7"];
}

function dap2Slices({ dataset: { byName }, request }: Question): DapSlice[] {
  const find = (name: string) => byName.get(name) ?? byName.get(dapName(name));
  return cutVariables(parseDap2Query(request.query), ",", byName.values(), find);
}

function dap4Slices({
  dataset: { byPath },
  request,
}: Question): readonly [DapSlice[], hasChecksums: boolean] {
  const { constraint, hasChecksums } = parseDap4Query(request.query);
  const find = (name: string) => byPath.get(name.replace(/^\//, ""));
  return [inDmrOrder(cutVariables(constraint, ";", byPath.values(), find)), hasChecksums];
}

/** Returns what answers with values by DAP2. @param create Makes the body. */
function answerDap2(
  create: (source: ValuesOf, ...parts: Parameters<typeof createDods>) => FileBody,
): Answer["reply"] {
  return async (question) => {
    const slices = dap2Slices(question);
    const dds = [...writeDds(slices, question.fileName)].join("");
    return create(sourceOf(question), dds, slices, await columnsOf(question, slices, "dap2"));
  };
}

async function answerDap(question: Question): Promise<FileBody> {
  const [slices, hasChecksums] = dap4Slices(question);
  const dmr = [...writeDmr(question.dataset, slices, question.fileName)].join("");
  return createDap(dmr, await columnsOf(question, slices, "dap4"), hasChecksums);
}

function sourceOf({ context: { values }, dataset: { snapshot }, request }: Question): ValuesOf {
  return { snapshot, values, signal: request.signal };
}

/** Makes the columns of slices. @throws ZpublishError `too-large` */
async function columnsOf(
  question: Question,
  slices: readonly DapSlice[],
  protocol: Protocol,
): Promise<DapColumn[]> {
  const { context, request } = question;
  const { values } = context;
  const guessed = slices.reduce((sum, slice) => sum + valuesByteLength(values, slice, protocol), 0);
  assertSize(context, guessed);
  // Texts are read for their length. A request waits for room once: here for that of all its variables.
  if (slices.some(({ variable }) => variable.text !== undefined))
    await request.reserve(Math.max(...slices.map((slice) => heldBytesOf(values, slice))));
  const columns: DapColumn[] = [];
  let byteLength = 0;
  for (const slice of slices) {
    const column = await columnOf(sourceOf(question), slice, protocol);
    columns.push(column);
    byteLength += column.byteLength;
    // Texts may be longer than was guessed.
    assertSize(context, byteLength);
  }
  return columns;
}

/** @throws ZpublishError `too-large` */
function assertSize({ maxSelectionBytes }: PluginContext, byteLength: number): void {
  if (byteLength <= maxSelectionBytes) return;
  const expected = `at most ${maxSelectionBytes} bytes of values (--max-selection)`;
  throw new ZpublishError("too-large", `Expected ${expected}, received a request for ${byteLength} bytes`);
}

function createAscii(
  source: ValuesOf,
  dds: string,
  slices: readonly DapSlice[],
  columns: readonly DapColumn[],
): FileBody {
  const { snapshot, values } = source;

  /** What is written before values is sent with them: an error in reading the first ones is answered as any other. */
  async function* pieces(signal: AbortSignal): AsyncGenerator<Uint8Array> {
    let before = `${dds}${"-".repeat(45)}\n`;
    for (const slice of slices) {
      const { array, name, text, type } = slice.variable;
      const { axes, shape } = slice;
      before +=
        shape.length === 0 ? `${name}, ` : `${name}${shape.map((length) => `[${length}]`).join("")}\n`;
      const { kind, itemSize } = array.variable.dataType;
      const floatBytes = kind === "f" ? itemSize : undefined;
      let firstItem = 0;
      const format = async (items: AsciiTask["values"]) => {
        const task: AsciiTask = { before, values: items, floatBytes, shape, firstItem };
        firstItem += items.length;
        before = "";
        return values.run<Uint8Array>(FORMATTER, task, { signal });
      };
      if (text !== undefined)
        for await (const texts of readTexts({ ...source, signal }, slice))
          yield format(texts.map((each) => Buffer.from(each).toString(text.encoding)));
      else
        for await (const block of values.stream(snapshot, array, axes, { signal, pieceBytes: ASCII_BYTES }))
          yield format(type === NC.ubyte ? block.bytes : block.values!);
      before += "\n";
    }
    yield Buffer.from(before);
  }
  const held = columns.map((column) => column.heldBytes(ASCII_BYTES));
  return { heldByteLength: ASCII_HELD_BYTES + Math.max(0, ...held), pieces: (_, signal) => pieces(signal) };
}

function* writePage({ dataset, fileName, request }: Question): Generator<string> {
  const url = xmlText(`${request.serviceUrl}${request.rawPath}`.replace(/\.html$/, ""));
  const file = encodeURIComponent(fileName);
  const token = queryToken(request.query);
  const link = (ending: string, text: string, query = "") => {
    const asked = token === undefined ? query : `${query}&token=${encodeURIComponent(token)}`;
    return `<a href="${file}.${ending}${asked && xmlText(`?${asked}`)}">${text}</a>`;
  };
  yield `<!doctype html><html lang="en"><meta charset="utf-8"><title>OPeNDAP: ${xmlText(fileName)}</title><h1>${xmlText(fileName)}</h1>\n`;
  yield `<p>Open <code>${url}</code> with any program that knows OPeNDAP: <code>xr.open_dataset("${url}", engine="netcdf4")</code>. `;
  yield `${link("dds", "DDS")}, ${link("das", "DAS")}, ${link("dmr.xml", "DMR")}</p>\n<table>\n`;
  for (const variable of dataset.byName.values()) {
    const links = `${link("ascii", "text", variable.name)} ${link("dods", "values", variable.name)}`;
    yield `<tr><td><code>${xmlText(declarationOf(variable, variable.shape))}</code></td><td>${links}</td></tr>\n`;
  }
  yield "</table>\n";
  for (const [path, reason] of dataset.leftOut)
    yield `<p><code>${xmlText(path)}</code> is left out: ${xmlText(reason)}</p>\n`;
  yield "</html>\n";
}

/** Writes an error as its protocol does. */
function errorReply({ status: line, code, detail, path }: ErrorFacts): ErrorReply {
  const status = code === "invalid-query" ? 400 : Number.parseInt(line, 10);
  const header = protocolHeader(path);
  if (header[0] === "X-DAP") {
    const message = `<Message>${xmlText(detail)}</Message>`;
    const body = `<?xml version="1.0" encoding="UTF-8"?>\n<Error xmlns="http://xml.opendap.org/ns/DAP/4.0#" httpcode="${status}">${message}</Error>\n`;
    return { status, contentType: "application/vnd.opendap.dap4.error+xml", body, headers: [header] };
  }
  const message = detail.replace(/["\\]/g, "\\$&");
  const body = `Error {\n    code = ${status};\n    message = "${message}";\n};\n`;
  return { status, contentType: TEXT, body, headers: [header, ["Content-Description", "dods-error"]] };
}
