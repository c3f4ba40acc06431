import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** The repository's files below some folders, or such files themselves, by path from its root; only those with a wanted name. */
export function readSources(places: readonly string[], wanted: RegExp): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const place of places) {
    const names = wanted.test(place)
      ? [place]
      : readdirSync(join(ROOT, place), { recursive: true }).map((name) => `${place}/${name}`);
    for (const name of names.filter((name) => wanted.test(name)).sort()) {
      texts.set(name, readFileSync(join(ROOT, name), "utf8"));
    }
  }
  return texts;
}
