import type { ZpublishError } from "../../../src/errors.js";
import { createMemorySource } from "../../../src/open/memory-source.js";
import type { NamedVersion, Source, StoredVersions } from "../../../src/zarr/stored-tree.js";

/** A source in memory with versions, of which a test can add some, or break them. */
export interface VersionedSource extends Source {
  readonly versions: StoredVersions;
  /** Versions in the order of a list. */
  listed: readonly NamedVersion[];
  /** Error of the next listing or opening. */
  failure: ZpublishError | undefined;
  /** Names that were opened, and those whose sources were closed, in order. */
  readonly opened: string[];
  readonly closed: string[];
}

/** Creates a source of int16 arrays `t` over (y, x) with coordinates, all of whose items are one value. */
function filledSource(location: string, value: number, more: readonly string[] = []): Source {
  const arrayOf = (name: string) => ({
    ...{ name, data: new Int16Array(12).fill(value), shape: [3, 4], dims: ["y", "x"], chunks: [2, 4] },
    attrs: { units: "K" },
  });
  const axisOf = (name: string, length: number) => {
    const data = Float64Array.from({ length }, (_, index) => index);
    return { name, data, shape: [length], dims: [name] };
  };
  const axes = [axisOf("x", 4), axisOf("y", 3)];
  const arrays = [...["t", ...more].map(arrayOf), ...axes].map((each) => ({ ...each, compressor: null }));
  const deep = [{ ...arrayOf("deep"), compressor: null }];
  return createMemorySource({
    location,
    groups: [
      { path: "/", attrs: {}, arrays },
      { path: "/g", attrs: {}, arrays: deep },
    ],
  });
}

/** A tag or snapshot for {@link versionedSource}. */
export function version(
  kind: NamedVersion["kind"],
  name: string,
  snapshot: string,
  message = "",
): NamedVersion {
  return { kind, name, snapshot, time: "2026-11-05T10:20:30Z", message };
}

/**
 * Creates a source whose current state has 100 in all items of `t` and of `new`, and whose versions have the number of their snapshot:
 * `S7` has 7, and no `new`.
 */
export function versionedSource(listed: readonly NamedVersion[]): VersionedSource {
  const source: VersionedSource = {
    ...filledSource("repo", 100, ["new"]),
    ...{ listed, failure: undefined, opened: [], closed: [] },
    versions: {
      async list() {
        if (source.failure !== undefined) throw source.failure;
        return source.listed;
      },
      async open(name) {
        if (source.failure !== undefined) throw source.failure;
        const found = source.listed.find((each) => each.kind !== "branch" && each.name === name);
        if (found === undefined) return undefined;
        source.opened.push(name);
        return {
          ...filledSource(`repo at ${name}`, Number(found.snapshot.slice(1))),
          async fingerprint() {
            throw new Error("nothing of a version changes");
          },
          async close() {
            source.closed.push(name);
          },
        };
      },
    },
  };
  return source;
}
