/**
 * Where a path with a slash behind it is: the same path on the same host.
 * @param path As it came, root path included; `query` without its question mark.
 * @returns Printable ASCII.
 */
export function locationWithSlash(path: string, query: string): string {
  const target = query === "" ? `${path}/` : `${path}/?${query}`;
  // `//host/…` and `/\host/…` would lead to another host: browsers take a backslash for a slash.
  const local = target.startsWith("//") ? `/.${target}` : target;
  return local.replace(/[^\x21-\x7e]+|[\\"<>^`{|}#]/g, (unsafe) => encodeURIComponent(unsafe));
}
