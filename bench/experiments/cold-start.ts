import { existsSync } from "node:fs";
import { installedNode } from "../../scripts/installed-nodes.js";
import { openSmallStores } from "../data/bench-data.js";
import type { Experiment } from "./experiment.js";
import { dataProgress } from "./open-mib-store.js";
import { type ColdStart, measureColdStart, medianOf } from "./start-up.js";

/** Milliseconds to the first answer that are aimed at with V8's compile cache. */
const AIM_MS = 250;

interface Candidate {
  /** As in the table. */
  readonly node: string;
  readonly program: string;
  readonly hasCompileCache: boolean;
}

interface ColdStartRecord extends ColdStart {
  readonly node: string;
  readonly hasCompileCache: boolean;
  readonly round: number;
}

/** The start of the program with and without V8's compile cache, under this and newer versions of Node.js. */
export const coldStart: Experiment = {
  title: "time from the start of the program to its first answer, with and without V8's compile cache",
  async run(context) {
    const { rounds, parent, freshFolder, onProgress } = context;
    const [location] = await openSmallStores(1, dataProgress(context), parent);
    const candidates = installedCandidates();
    /** Where programs keep what V8 compiles: filled by a start that is not counted. */
    const cache = freshFolder("compiled");
    const start = ({ program, hasCompileCache }: Candidate) =>
      measureColdStart({
        datasets: { small: location },
        scratch: freshFolder("server"),
        node: program,
        env: hasCompileCache ? { XDG_CACHE_HOME: cache } : { NODE_DISABLE_COMPILE_CACHE: "1" },
      });
    for (const candidate of candidates) await start(candidate);
    const records: ColdStartRecord[] = [];
    for (let round = 0; round < rounds; round++) {
      for (const [i, candidate] of candidates.entries()) {
        const { node, hasCompileCache } = candidate;
        onProgress((round + i / candidates.length) / rounds, node);
        records.push({ node, hasCompileCache, round, ...(await start(candidate)) });
      }
    }
    const ofCandidate = (candidate: Candidate) =>
      records.filter(
        ({ node, hasCompileCache }) =>
          node === candidate.node && hasCompileCache === candidate.hasCompileCache,
      );
    const answeredMs = (candidate: Candidate) =>
      ofCandidate(candidate).map(({ answeredSeconds }) => answeredSeconds * 1_000);
    return {
      records,
      tables: [
        {
          columns: [
            "Node.js",
            "compile cache",
            "first answer, ms",
            "lowest",
            "highest",
            "ready, ms",
            "CPU s",
          ],
          rows: candidates.map((candidate) => [
            candidate.node,
            candidate.hasCompileCache ? "yes" : "no",
            medianOf(answeredMs(candidate), (ms) => ms),
            Math.min(...answeredMs(candidate)),
            Math.max(...answeredMs(candidate)),
            medianOf(ofCandidate(candidate), ({ readySeconds }) => readySeconds * 1_000),
            medianOf(ofCandidate(candidate), ({ cpuSeconds }) => cpuSeconds),
          ]),
        },
      ],
      goals: candidates
        .filter(({ hasCompileCache }) => hasCompileCache)
        .map((candidate) => {
          const ms = medianOf(answeredMs(candidate), (each) => each) ?? 0;
          return {
            what: `cold-start: Node.js ${candidate.node}`,
            expected: `first answer within ${AIM_MS} ms`,
            measured: `${Math.round(ms)} ms`,
            isMet: ms <= AIM_MS,
          };
        }),
      notes: [
        "One small dataset and an empty chunk cache; the files are in the system's page cache. A start before the first round, which is not counted, fills the compile cache.",
        "Node.js 20 has no compile cache.",
      ],
    };
  },
};

/** This Node.js, and those of `scripts/install-nodes.sh`. */
function installedCandidates(): Candidate[] {
  const newer = ([24, 26] as const).map((major) => ({
    node: String(major),
    program: installedNode(major).program,
  }));
  const [major = ""] = process.versions.node.split(".");
  const nodes = [
    { node: major, program: process.execPath },
    ...newer.filter(({ node, program }) => node !== major && existsSync(program)),
  ];
  return nodes.flatMap((each) =>
    (each.node === "20" ? [false] : [false, true]).map((hasCompileCache) => ({ ...each, hasCompileCache })),
  );
}
