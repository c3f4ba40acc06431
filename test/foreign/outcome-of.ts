import type { ProgramLogLine } from "../support/servers/start-program.js";
import type { ForeignFile, ForeignOutcome } from "./foreign-file.js";
import type { InspectedFile } from "./inspect-worker.js";

/** What `compare_foreign.py` says of a file. */
export interface OracleAnswer {
  /** Why the library cannot open the file. */
  readonly opens: string | null;
  /** Why the store cannot be opened. */
  readonly served: string | null;
  readonly arrays: Readonly<Record<string, string>>;
  readonly xarray: readonly XarrayLine[];
  readonly compared: number;
  readonly crash?: string;
}

interface XarrayLine {
  readonly engine: string;
  readonly decode: string | null;
  readonly group: string;
  readonly variable?: string | null;
  readonly message: string;
  readonly expected?: string;
  readonly received?: string;
}

/**
 * Puts together what is known of a file, without the folder it is in.
 * @param answer Undefined if no library knows the file's format.
 * @param problems Lines of the server's log about it.
 */
export function outcomeOf(
  { id, path }: ForeignFile,
  { problem, refused }: InspectedFile,
  answer: OracleAnswer | undefined,
  problems: readonly ProgramLogLine[],
): ForeignOutcome {
  const oracle =
    answer?.crash !== undefined
      ? "crash"
      : answer !== undefined && answer.opens === null
        ? undefined
        : "unreadable";
  if (problem !== undefined) return { refusedFile: problem.replaceAll(path, id), ...(oracle && { oracle }) };
  const unread: string[] = [];
  const differs: Record<string, string> = {};
  let equal = 0;
  for (const [array, status] of Object.entries(answer?.arrays ?? {})) {
    if (status === "equal") equal++;
    else if (status.startsWith("unread")) {
      if (!isRefused(array, refused)) unread.push(array);
    } else if (status !== "missing" || !isRefused(array, refused)) differs[array] = status;
  }
  if (answer?.served) differs["/"] = `the store cannot be opened: ${answer.served}`;
  if (answer?.crash !== undefined) differs["/"] = `the comparison crashed: ${answer.crash}`;
  for (const line of problems)
    differs[`log ${String(line.path ?? "").replace(/^\/datasets\/[^/]*\/zarr/, "")}`] =
      `${line.code}: ${line.msg}`;
  const differences = (answer?.xarray ?? []).map(describe);
  return {
    ...(oracle && { oracle }),
    equal,
    ...(refused.length > 0 && {
      refused: Object.fromEntries(refused.map((each) => [`/${each.path}`, each.reason])),
    }),
    ...(unread.length > 0 && { unread }),
    ...(Object.keys(differs).length > 0 && { differs }),
    ...(answer && answer.compared > 0 && { compared: answer.compared }),
    ...(differences.length > 0 && { differences }),
  };
}

/** Tells whether a path is refused, or a group that it is in. */
function isRefused(path: string, refused: InspectedFile["refused"]): boolean {
  return refused.some((each) => path === `/${each.path}` || path.startsWith(`/${each.path}/`));
}

function describe({ engine, decode, group, variable, message, expected, received }: XarrayLine): string {
  const place = `${engine} ${decode === "on" ? "decoded" : "raw"} ${group === "/" ? "" : group}/${variable ?? ""}`;
  return `${place}: ${message}${expected === undefined ? "" : `: expected ${expected}, received ${received}`}`;
}
