import type { RunningServer } from "../servers/start-server.js";
import type { At, Change } from "./icechunk-program.js";
import type { Repository } from "./open-icechunk.js";

/** A change that makes a group, or sets its attributes. */
export function group(path: string, attributes: object = {}): Change {
  return setDocument(path, { zarr_format: 3, node_type: "group", attributes });
}

/**
 * A change that makes an array of int32 without compression, so that a chunk's bytes are its values. Its dimensions have no names, so that
 * absent chunks are served as absent.
 */
export function array(
  path: string,
  shape: readonly number[],
  chunkShape: readonly number[],
  more: object = {},
): Change {
  return setDocument(path, {
    ...{ zarr_format: 3, node_type: "array", shape, data_type: "int32", fill_value: -1 },
    chunk_grid: { name: "regular", configuration: { chunk_shape: chunkShape } },
    chunk_key_encoding: { name: "default", configuration: { separator: "/" } },
    codecs: [{ name: "bytes", configuration: { endian: "little" } }],
    attributes: {},
    ...more,
  });
}

function setDocument(path: string, document: object): Change {
  return { set: path === "" ? "zarr.json" : `${path}/zarr.json`, text: JSON.stringify(document) };
}

/** A change that sets a chunk to so many equal numbers. */
export function chunk(key: string, count: number, value: number): Change {
  return { set: key, base64: Buffer.from(new Int32Array(count).fill(value).buffer).toString("base64") };
}

/** Reads the status of an answer, and its numbers; none unless it is 200. */
export async function numbersOf(
  answer: Response,
): Promise<{ readonly status: number; readonly numbers: readonly number[] }> {
  const bytes = await answer.arrayBuffer();
  return { status: answer.status, numbers: answer.status === 200 ? [...new Int32Array(bytes)] : [] };
}

/** A dataset of a configuration. */
export function dataset(id: string, location: string, more: object = {}) {
  return { id, location, immutable: false, encoding: {}, variables: {}, ...more };
}

/**
 * Asks for everything that Icechunk itself has in a state of a repository, below `zarr3/`, and for all chunks that it has not.
 * @returns A line for each answer that differs, and how many chunks were there.
 */
export async function compareWithIcechunk(
  { get }: Pick<RunningServer, "get">,
  id: string,
  repository: Repository,
  at: At,
): Promise<{ readonly differences: string[]; readonly chunks: number }> {
  const values = await repository.read(at);
  const differences: string[] = [];
  let chunks = 0;
  for (const [key, value] of Object.entries(values)) {
    const answer = await get(`/datasets/${id}/zarr3/${key}`);
    const bytes = Buffer.from(await answer.arrayBuffer());
    if (key.endsWith("zarr.json")) {
      if (answer.status !== 200) differences.push(`${key}: ${answer.status}`);
      else for (const absent of absentKeys(key, value!, values)) await expectAbsent(absent);
    } else {
      chunks++;
      if (answer.status !== 200) differences.push(`${key}: ${answer.status} ${bytes}`);
      else if (!bytes.equals(value!)) differences.push(`${key}: other bytes than Icechunk's`);
    }
  }
  async function expectAbsent(key: string): Promise<void> {
    const { status } = await get(`/datasets/${id}/zarr3/${key}`);
    if (status !== 404) differences.push(`${key}: ${status}, though Icechunk has no such chunk`);
  }
  return { differences, chunks };
}

/** Keys of chunks that an array could have and has not, where chunks lie below `c/`. */
function absentKeys(
  key: string,
  document: Buffer,
  values: Readonly<Record<string, Buffer | null>>,
): string[] {
  const { node_type, shape, chunk_grid } = JSON.parse(document.toString());
  if (node_type !== "array") return [];
  const chunkShape = chunk_grid.configuration.chunk_shape as number[];
  let keys = [key.replace(/zarr\.json$/, "c")];
  for (const [axis, length] of (shape as number[]).entries()) {
    const count = Math.ceil(length / chunkShape[axis]!);
    keys = keys.flatMap((before) => Array.from({ length: count }, (_, at) => `${before}/${at}`));
  }
  return keys.filter((each) => !(each in values));
}
