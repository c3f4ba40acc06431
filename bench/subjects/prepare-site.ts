import { storedBytes } from "../data/bench-data.js";
import { askAtOnce } from "../load/raw-http.js";
import {
  checkDecoded,
  checkDocument,
  checkNotModified,
  checkSame,
  fetchBody,
  warmCache,
} from "./check-answers.js";
import { type RunningSubject, type Site, type Subject, storePath, type Workload } from "./subject.js";
import { zpublishSubject } from "./zpublish.js";

/** Headers that every server writes itself. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  "content-length",
  "content-type",
  "etag",
  "date",
  "uwebsockets",
]);

/**
 * Has zpublish answer every path of a row once, checks the answers against the data, and returns the site that all
 * subjects answer: where zpublish makes something that is not stored, its bytes.
 * @throws Error where an answer is wrong.
 */
export async function prepareSite(workload: Workload, scratch: string): Promise<Site> {
  const { store, paths, serving, withoutCache } = workload;
  const site: Site = { store, paths, serving, withoutCache, documents: new Map(), headers: {}, scratch };
  const server = await zpublishSubject.start(site);
  try {
    await checkAgainstData(server.baseUrl, workload);
    const [sample] = await askAtOnce(server.baseUrl, paths[0]!, 1);
    const headers = Object.fromEntries([...sample!.headers].filter(([name]) => !OWN_HEADERS.has(name)));
    if (workload.answers === "stored" || workload.answers === "not-modified") return { ...site, headers };
    const documents = new Map<string, Buffer>();
    for (const path of paths) documents.set(path, await fetchBody(server.baseUrl, path));
    return { ...site, headers, documents };
  } finally {
    await server.stop();
  }
}

/**
 * Checks every answer of a subject before it is measured.
 * @returns Headers that the load has to send.
 * @throws Error where an answer is wrong.
 */
export async function checkSubject(
  subject: Subject,
  { baseUrl }: RunningSubject,
  site: Site,
  workload: Workload,
): Promise<Record<string, string>> {
  if (workload.answers === "not-modified") {
    return { "If-None-Match": await checkNotModified(baseUrl, workload.paths[0]!) };
  }
  // A peer may write other JSON, and other chunks of the same values.
  if (!subject.isRestartable)
    await checkAgainstData(baseUrl, { ...workload, answers: peerAnswers(workload) });
  else for (const path of workload.paths) await checkSame(baseUrl, path, expectedBody(site, path));
  const hasCache = subject.hasChunkCache && !workload.withoutCache;
  if (hasCache && workload.answers === "stored" && !workload.isCold) {
    await warmCache(baseUrl, workload.paths);
  }
  return {};
}

function peerAnswers({ answers }: Workload): Workload["answers"] {
  return answers === "stored" ? "transcoded" : answers;
}

/** What a path has to be answered with, byte by byte. */
export function expectedBody({ documents, store }: Site, path: string): Buffer {
  return documents.get(path) ?? storedBytes(store, path.slice(storePath(store, "").length));
}

async function checkAgainstData(baseUrl: string, { store, paths, answers }: Workload): Promise<void> {
  const keys = paths.map((path) => path.slice(storePath(store, "").length));
  if (answers === "stored") {
    for (const [i, path] of paths.entries()) await checkSame(baseUrl, path, storedBytes(store, keys[i]!));
  } else if (answers === "transcoded") {
    await checkDecoded(baseUrl, store, keys);
  } else if (answers === "document") {
    for (const path of paths) await checkDocument(baseUrl, store, path);
  } else {
    for (const path of paths) await checkNotModified(baseUrl, path);
  }
}
