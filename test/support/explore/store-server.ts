import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Test } from "tap";

/** An array of a store: its values in C order, cut into chunks without a codec. */
export interface ServedArray {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly chunks: readonly number[];
  readonly dims: readonly string[];
  /** In C order, as many as the shape has. */
  readonly values: readonly number[];
  readonly order?: "C" | "F";
  readonly fill?: unknown;
  readonly attrs?: Readonly<Record<string, unknown>>;
  /** Keys of chunks that do not exist. */
  readonly absent?: readonly string[];
}

/** A store on a socket whose answers wait as long as a test wants. */
export type StoreServer = Awaited<ReturnType<typeof startStore>>;

/** Starts a server of one store. */
export async function startStore(t: Pick<Test, "teardown">, arrays: Readonly<Record<string, ServedArray>>) {
  /** Paths of all requests for chunks so far, and of those that clients gave up. */
  const requests: string[] = [];
  const aborted: string[] = [];
  const headers: NodeJS.Dict<string | string[]>[] = [];
  const held = new Map<ServerResponse, string>();
  const watchers = new Set<() => void>();
  let pattern: RegExp | undefined;
  let other: { pattern: RegExp; status: number; body: string; headers: Record<string, string> } | undefined;
  const reply = (response: ServerResponse, path: string) => {
    if (other?.pattern.test(path)) response.writeHead(other.status, other.headers).end(other.body);
    else {
      const body = bodyOf(arrays, path);
      if (body === undefined) response.writeHead(404).end('{"detail":"Chunk not found"}');
      else response.end(body);
    }
  };
  const server = createServer((request, response) => {
    const path = decodeURIComponent((request.url ?? "").slice(1));
    headers.push(request.headers);
    if (!path.startsWith(".z")) requests.push(path);
    response.once("close", () => {
      held.delete(response);
      if (!response.writableEnded) aborted.push(path);
      for (const watch of [...watchers]) watch();
    });
    if (pattern?.test(path)) {
      held.set(response, path);
      for (const watch of [...watchers]) watch();
    } else reply(response, path);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = async () => {
    server.closeAllConnections();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  t.teardown(close);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    requests,
    aborted,
    headers,
    /** Lets requests whose path matches wait; those that wait for another pattern are answered. */
    hold(next: RegExp | undefined): void {
      pattern = next;
      for (const [response, path] of [...held]) {
        if (pattern?.test(path)) continue;
        held.delete(response);
        reply(response, path);
      }
    },
    /** Waits until so many requests wait. */
    waiting: (count: number) =>
      new Promise<void>((resolve) => {
        const watch = () => {
          if (held.size !== count) return;
          watchers.delete(watch);
          resolve();
        };
        watchers.add(watch);
        watch();
      }),
    /** Answers requests whose path matches otherwise. */
    answer(matched: RegExp, status: number, body: string, more: Readonly<Record<string, string>> = {}): void {
      other = { pattern: matched, status, body, headers: { "content-type": "application/json", ...more } };
    },
    close,
  };
}

function bodyOf(arrays: Readonly<Record<string, ServedArray>>, path: string): Buffer | undefined {
  if (path === ".zmetadata") return Buffer.from(JSON.stringify({ metadata: documentsOf(arrays) }));
  const slash = path.lastIndexOf("/");
  const array = arrays[path.slice(0, slash)];
  const key = path.slice(slash + 1);
  if (array === undefined || array.absent?.includes(key)) return undefined;
  return chunkOf(array, key.split(".").map(Number));
}

function documentsOf(arrays: Readonly<Record<string, ServedArray>>): Record<string, unknown> {
  const documents: Record<string, unknown> = { ".zgroup": { zarr_format: 2 }, ".zattrs": {} };
  for (const [path, { dtype, shape, chunks, dims, order = "C", fill = null, attrs }] of Object.entries(
    arrays,
  )) {
    const rest = { filters: null, compressor: null, dimension_separator: ".", zarr_format: 2 };
    documents[`${path}/.zarray`] = { shape, chunks, dtype, order, fill_value: fill, ...rest };
    documents[`${path}/.zattrs`] = { ...attrs, _ARRAY_DIMENSIONS: dims };
  }
  return documents;
}

function chunkOf({ dtype, shape, chunks, values, order = "C" }: ServedArray, key: readonly number[]): Buffer {
  const coords = shape.length === 0 ? [] : key;
  const count = chunks.reduce((product, length) => product * length, 1);
  const size = Number(dtype.slice(2));
  const buffer = Buffer.alloc(count * size);
  for (let place = 0; place < count; place++) {
    let rest = place;
    const within = chunks.map(() => 0);
    const axes = chunks.map((_, axis) => axis);
    for (const axis of order === "C" ? axes.reverse() : axes) {
      within[axis] = rest % chunks[axis]!;
      rest = Math.floor(rest / chunks[axis]!);
    }
    let index = 0;
    let isInside = true;
    shape.forEach((length, axis) => {
      const at = coords[axis]! * chunks[axis]! + within[axis]!;
      isInside &&= at < length;
      index = index * length + at;
    });
    writeItem(buffer, place * size, dtype, isInside ? values[index]! : 77);
  }
  return buffer;
}

function writeItem(buffer: Buffer, place: number, dtype: string, value: number): void {
  const isBig = dtype.startsWith(">");
  const kind = dtype.slice(1);
  const view = new DataView(buffer.buffer, buffer.byteOffset + place);
  if (kind === "f4") view.setFloat32(0, value, !isBig);
  else if (kind === "f8") view.setFloat64(0, value, !isBig);
  else if (kind === "i2") view.setInt16(0, value, !isBig);
  else if (kind === "i4") view.setInt32(0, value, !isBig);
  else if (kind === "i8") view.setBigInt64(0, BigInt(value), !isBig);
  else view.setInt8(0, value);
}
