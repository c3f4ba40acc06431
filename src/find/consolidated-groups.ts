import { createSlice, runCooperatively } from "../event-loop/cooperative-task.js";
import { nameProblem } from "../zarr/stored-tree.js";
import { listedDocuments } from "../zarr-store/consolidated-metadata.js";
import { describesArray } from "../zarr-store/node-documents.js";
import { readConsolidated } from "../zarr-store/objects/read-nodes.js";
import type { Findings, FoundFile, Problem } from "./file-finder.js";
import { assembleFindings } from "./findings.js";
import type { PathFilter } from "./path-filter.js";

/** Groups with arrays, as consolidated metadata lists them. */
export interface ConsolidatedGroups {
  /**
   * Finds groups in the texts of a root's documents; undefined if these list none. The same texts have the same findings.
   */
  look(zarrJson: string | undefined, zmetadata: string | undefined): Promise<Findings | undefined>;
}

/** Creates a reader of consolidated metadata. */
export function createConsolidatedGroups(filter: PathFilter): ConsolidatedGroups {
  let texts: readonly (string | undefined)[] = [];
  let findings: Findings | undefined;

  async function find(
    zarrJson: string | undefined,
    zmetadata: string | undefined,
  ): Promise<Findings | undefined> {
    const nodes = await readConsolidated(zarrJson, zmetadata);
    if (nodes === undefined) return undefined;
    const slice = createSlice();
    const known = new Map(findings?.files.map((file) => [file.path, file]));
    const files: FoundFile[] = [];
    const problems: Problem[] = [];
    const seen = new Set<string>();
    for (const [path, documents] of nodes) {
      if (slice.isOver()) await slice.next();
      if (path === "" || !describesArray(listedDocuments(documents))) continue;
      const group = path.slice(0, Math.max(0, path.lastIndexOf("/")));
      if (seen.has(group)) continue;
      seen.add(group);
      if (!isFound(group)) continue;
      const reason = group === "" ? undefined : nameProblem(group);
      if (reason === undefined) files.push(known.get(group) ?? { path: group, isStore: true });
      else problems.push({ path: group, reason });
    }
    return runCooperatively(assembleFindings(files, problems, findings));
  }

  function isFound(group: string): boolean {
    if (group === "") return true;
    const parents = group.split("/").slice(0, -1);
    return (
      filter.takesStore(group) &&
      parents.every((_, index) => filter.entersFolder(parents.slice(0, index + 1).join("/")))
    );
  }

  return {
    async look(zarrJson, zmetadata) {
      if (texts[0] === zarrJson && texts[1] === zmetadata) return findings;
      findings = await find(zarrJson, zmetadata);
      texts = [zarrJson, zmetadata];
      return findings;
    },
  };
}
