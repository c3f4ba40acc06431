/** The keys of one object of a JSON text, in the order they are written. */
export interface JsonObjectKeys {
  /** Place of the object: `[]` for the whole, `["datasets"]`, `["a", 0, "b"]`. */
  readonly path: readonly (string | number)[];
  readonly keys: readonly { readonly key: string; readonly line: number }[];
}

interface OpenContainer {
  readonly path: readonly (string | number)[];
  /** Null for an array. */
  readonly keys: { key: string; line: number }[] | null;
  /** Key or index of the next value. */
  current: string | number;
  expectsKey: boolean;
}

/**
 * Lists all objects of a JSON text with their keys as written. `JSON.parse` loses the order of keys that look like
 * integers, and keys that are there twice; a configuration's datasets need both.
 * @param text Valid JSON: `JSON.parse` accepted it.
 */
export function readJsonKeys(text: string): JsonObjectKeys[] {
  const found: JsonObjectKeys[] = [];
  const open: OpenContainer[] = [];
  let line = 1;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|\n/g)) {
    const container = open.at(-1);
    if (token === "\n") line += 1;
    else if (token === "{" || token === "[") {
      const path = container === undefined ? [] : [...container.path, container.current];
      const keys = token === "{" ? [] : null;
      if (keys !== null) found.push({ path, keys });
      open.push({ path, keys, current: keys === null ? 0 : "", expectsKey: keys !== null });
    } else if (token === "}" || token === "]") open.pop();
    else if (container === undefined) continue;
    else if (token === ",") {
      if (container.keys === null) container.current = (container.current as number) + 1;
      else container.expectsKey = true;
    } else if (token.startsWith('"') && container.keys !== null && container.expectsKey) {
      container.current = JSON.parse(token) as string;
      container.keys.push({ key: container.current, line });
      container.expectsKey = false;
    }
  }
  return found;
}
