/** What is published, as far as URLs go. */
export interface ModelDataset {
  /** Paths of groups, the root as an empty one. */
  readonly groups: ReadonlySet<string>;
  /** By path: how many chunks along each axis, and the keys of those that are absent. */
  readonly arrays: ReadonlyMap<
    string,
    { readonly grid: readonly number[]; readonly absent: readonly string[] }
  >;
}

/** What a path alone decides: the status of a GET without conditions, and what kind of answer that is. */
export interface Prediction {
  readonly status: 200 | 301 | 404 | 422;
  readonly kind: "document" | "page" | "chunk" | "none";
}

const SERVICE: Readonly<Record<string, "document" | "page">> = {
  "": "page",
  datasets: "document",
  plugins: "document",
  versions: "document",
  "openapi.json": "document",
  docs: "page",
};

const NOTHING: Prediction = { status: 404, kind: "none" };
const REFUSED: Prediction = { status: 422, kind: "none" };
const REDIRECT: Prediction = { status: 301, kind: "none" };
const MAX_PARAMETER_BYTES = 1_024;

/** A segment as it is meant; undefined where it is no valid string. */
function decoded(segment: string): string | undefined {
  const bytes: number[] = [];
  for (let i = 0; i < segment.length; i++) {
    if (segment[i] !== "%") {
      bytes.push(segment.charCodeAt(i));
      continue;
    }
    const digits = segment.slice(i + 1, i + 3);
    if (!/^[0-9a-fA-F]{2}$/.test(digits)) return undefined;
    bytes.push(Number.parseInt(digits, 16));
    i += 2;
  }
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes));
  } catch {
    return undefined;
  }
  for (const character of text) {
    const code = character.codePointAt(0)!;
    if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return undefined;
  }
  return text;
}

/** The parameters of a route, each as its segments; what is no valid string among them is refused before anything else. */
type Parameters = readonly (readonly (string | undefined)[])[];

function isRefused(parameters: Parameters): boolean {
  return parameters.some(
    (segments) =>
      segments.includes(undefined) || Buffer.byteLength(segments.join("/"), "utf8") > MAX_PARAMETER_BYTES,
  );
}

function nodePath(segments: readonly (string | undefined)[]): string {
  return segments.filter((segment) => segment !== "").join("/");
}

/**
 * Says what a path is answered with, from the contract alone.
 * @param path ASCII, percent-encoded, without a query; begins with a slash.
 */
export function predict(path: string, datasets: ReadonlyMap<string, ModelDataset>): Prediction {
  const segments = path.slice(1).split("/").map(decoded);
  // A slash that is hidden belongs to no name; and nothing is called by dots.
  if (segments.some((segment) => segment?.includes("/"))) return NOTHING;
  if (segments.some((segment) => segment === "." || segment === "..")) return NOTHING;
  const [first, id, area, ...rest] = segments;
  if (segments.length === 1) {
    const kind = first === undefined ? undefined : Object.hasOwn(SERVICE, first) ? SERVICE[first] : undefined;
    return kind === undefined ? NOTHING : { status: 200, kind };
  }
  if (first !== "datasets" || id === "") return NOTHING;
  const dataset = id === undefined ? undefined : datasets.get(id);
  const answer = (parameters: Parameters, found: (dataset: ModelDataset) => Prediction): Prediction => {
    if (isRefused([[id], ...parameters])) return REFUSED;
    return dataset === undefined ? NOTHING : found(dataset);
  };
  const document: Prediction = { status: 200, kind: "document" };
  const page: Prediction = { status: 200, kind: "page" };

  if (segments.length === 2) return answer([], () => REDIRECT);
  if (segments.length === 3) {
    if (["keys", "dict", "info", "groups"].includes(area!)) return answer([], () => document);
    if (area === "" || area === "tree") return answer([], () => page);
    if (area === "zarr") return answer([], () => REDIRECT);
    return NOTHING;
  }
  if (area === "groups") {
    const isDocument = ["keys", "dict", "info"].includes(rest.at(-1)!);
    const group = isDocument ? rest.slice(0, -1) : rest;
    return answer([group], ({ groups }) =>
      groups.has(nodePath(group)) ? (isDocument ? document : page) : NOTHING,
    );
  }
  if (area !== "zarr") return NOTHING;
  const last = rest.at(-1);
  const before = rest.slice(0, -1);
  const node = nodePath(before);
  switch (last) {
    case "":
      return answer([before], ({ groups, arrays }) =>
        groups.has(node) || arrays.has(node) ? page : NOTHING,
      );
    case ".zmetadata":
    case ".zgroup":
      return answer([before], ({ groups }) => (groups.has(node) ? document : NOTHING));
    case ".zattrs":
      return answer([before], ({ groups, arrays }) =>
        groups.has(node) || arrays.has(node) ? document : NOTHING,
      );
    case ".zarray":
      return answer([before], ({ arrays }) => (arrays.has(node) ? document : NOTHING));
    default:
      return answer([before, [last]], ({ groups, arrays }) => {
        const array = arrays.get(node);
        if (array !== undefined) {
          const isThere = keysOf(array.grid).includes(last!) && !array.absent.includes(last!);
          return isThere ? { status: 200, kind: "chunk" } : NOTHING;
        }
        const whole = nodePath([...before, last]);
        return groups.has(whole) || arrays.has(whole) ? REDIRECT : NOTHING;
      });
  }
}

/** Every key of a grid, spelled the one way there is. */
export function keysOf(grid: readonly number[]): string[] {
  if (grid.length === 0) return ["0"];
  const rest = grid.length === 1 ? [""] : keysOf(grid.slice(1)).map((key) => `.${key}`);
  return Array.from({ length: grid[0]! }, (_, i) => rest.map((key) => `${i}${key}`)).flat();
}

/** How a list of ETags relates to the one that is there. */
export type AskedTag = "same" | "weak" | "other" | "any" | "among others";

/** First and last byte; without the first one, how many of the last. */
export interface AskedRange {
  readonly first?: number;
  readonly last?: number;
}

/** What the headers of a request ask for, as the generator knows them without reading them. */
export interface Asked {
  readonly method: "GET" | "HEAD";
  readonly ifMatch: AskedTag | undefined;
  readonly ifNoneMatch: AskedTag | undefined;
  /** First and last byte; an empty part is left out, and `null` is a range that is none. */
  readonly range: AskedRange | null | undefined;
  readonly ifRange: "same" | "other" | "date" | undefined;
}

/** What is sent of a body of a length. */
export type Sent =
  | { readonly status: 200 | 304 | 412 | 416 }
  | { readonly status: 206; readonly first: number; readonly last: number };

/** Whether a range is looked at at all: then nothing is compressed. */
export function isRanged({ method, range, ifRange }: Asked): boolean {
  return method === "GET" && isUnderstood(range) && (ifRange === undefined || ifRange === "same");
}

function isUnderstood(range: Asked["range"]): range is AskedRange {
  if (range === undefined || range === null) return false;
  const { first, last } = range;
  if (first === undefined) return last !== undefined;
  return last === undefined || first <= last;
}

/** What RFC 9110 and the contract make of the conditions, for something that is there. */
export function predictSent(asked: Asked, byteLength: number): Sent {
  const { ifMatch, ifNoneMatch, range } = asked;
  if (ifMatch === "other" || ifMatch === "weak") return { status: 412 };
  if (ifNoneMatch !== undefined && ifNoneMatch !== "other") return { status: 304 };
  if (!isRanged(asked) || !isUnderstood(range)) return { status: 200 };
  const { first, last } = range;
  if (first === undefined) {
    if (last === 0 || byteLength === 0) return { status: 416 };
    return { status: 206, first: Math.max(0, byteLength - last!), last: byteLength - 1 };
  }
  if (first >= byteLength) return { status: 416 };
  return { status: 206, first, last: Math.min(last ?? byteLength - 1, byteLength - 1) };
}
