import type { DatasetSnapshot } from "../dataset/dataset.js";
import { documentSteps } from "../http/create-document.js";
import type { Document } from "../http/document.js";
import { beginInSlices } from "../sliced-work.js";
import type { PluginContext } from "./plugin.js";

/** What is kept for snapshots, by key; gone with them. */
export type SnapshotMemo = Pick<PluginContext, "memo" | "document">;

/** A memo that keeps nothing yet. */
export function createSnapshotMemo(): SnapshotMemo {
  const memos = new WeakMap<DatasetSnapshot, Map<string, unknown>>();

  function memo<T>(snapshot: DatasetSnapshot, key: string, value: () => T): T {
    const values = memos.get(snapshot) ?? new Map<string, unknown>();
    memos.set(snapshot, values);
    if (!values.has(key)) values.set(key, value());
    return values.get(key) as T;
  }

  return {
    memo,
    document(snapshot, key, contentType, pieces) {
      const kept = memo(snapshot, `document ${key}`, (): { made?: Document | Promise<Document> } => ({}));
      if (kept.made !== undefined) return kept.made;
      const made = beginInSlices(documentSteps(pieces(), contentType));
      kept.made = made;
      if (made instanceof Promise) {
        made.then(
          (document) => {
            kept.made = document;
          },
          () => {
            delete kept.made;
          },
        );
      }
      return made;
    },
  };
}
